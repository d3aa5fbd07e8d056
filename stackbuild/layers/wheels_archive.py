"""A wheel as an untrusted archive: every entry is checked before anything of it is written.

Rules: PyPA specifications, "Binary distribution format" and "Recording installed projects".
"""

from __future__ import annotations

import csv
import hashlib
import stat
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from installer.records import parse_record_file
from installer.sources import WheelContentElement, WheelSource
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from stackbuild.errors import BuildError
from stackbuild.layers.paths import check_path
from stackbuild.lock.model import LockedWheel

# What a metadata file may unpack to: RECORD of the largest wheels known is about 2 MB.
_METADATA_LIMIT = 64 << 20
# Above the first size, a ratio that no real wheel has: deflate itself stops at 1032.
_BOMB_SIZE = 1 << 30
_BOMB_RATIO = 200
_CHUNK = 1 << 20

# Written by installers, so a wheel's own are left out; RECORD is written anew.
_INSTALLER_FILES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
# Signatures of RECORD, which cannot be listed in it.
_SIGNATURES = ("RECORD.jws", "RECORD.p7s")


def refused(file: str, what: str, *, code: str = "wheel-refused") -> BuildError:
    """The error for a wheel that must not be used.

    Args:
        file: The wheel's file name.
        what: What is wrong with it, naming the entry.
        code: The error's code.
    """
    return BuildError(
        what, code=code, where=file, do="Do not use this wheel: take another version or another source."
    )


class Member:
    """One file of a wheel, read only when asked.

    Attributes:
        name: Its path in the archive.
        size: Bytes, unpacked.
        sha256: Its hash as RECORD has it, URL-safe base64 without padding.
    """

    __slots__ = ("_archive", "_info", "sha256")

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, sha256: str) -> None:
        self._archive = archive
        self._info = info
        self.sha256 = sha256

    @property
    def name(self) -> str:
        """Its path in the archive."""
        return self._info.filename

    @property
    def size(self) -> int:
        """Bytes, unpacked."""
        return self._info.file_size

    def open(self) -> IO[bytes]:
        """A stream of its content, which never gives more than ``size`` bytes."""
        return self._archive.open(self._info)


class WheelArchive(WheelSource):
    """The wheel as the ``installer`` library's source; its streams are :class:`Member` objects.

    Args:
        path: The file, under any name.
        wheel: The locked wheel it is.

    Raises:
        BuildError: naming wheel and entry, when the wheel is hostile, damaged or not the locked one.
    """

    def __init__(self, path: Path, wheel: LockedWheel) -> None:
        self.file = wheel.file
        distribution, version = _distribution(wheel)
        super().__init__(distribution=distribution, version=version)
        self._zip = zipfile.ZipFile(path)
        try:
            self._infos = _checked_entries(self._zip, self.file, path.stat().st_size)
            self._dist_info = self._sole_folder(".dist-info")
            self._data = self._sole_folder(".data")
            self._check_metadata()
        except BaseException:
            self._zip.close()
            raise

    def close(self) -> None:
        """Close the file; members can no longer be read."""
        self._zip.close()

    @property
    def dist_info_dir(self) -> str:
        """Name of the dist-info folder."""
        return self._dist_info

    @property
    def data_dir(self) -> str:
        """Name of the data folder; wheels spell it in several ways."""
        return self._data or super().data_dir

    @property
    def dist_info_filenames(self) -> list[str]:
        """Names of the files in the dist-info folder."""
        prefix = f"{self._dist_info}/"
        return [name.removeprefix(prefix) for name in self._infos if name.startswith(prefix)]

    def read_dist_info(self, filename: str) -> str:
        """The text of a file of the dist-info folder.

        Raises:
            BuildError: when it is missing, too large or not UTF-8.
        """
        name = f"{self._dist_info}/{filename}"
        info = self._infos.get(name)
        if info is None:
            raise refused(self.file, f"the wheel has no {name}")
        if info.file_size > _METADATA_LIMIT:
            raise refused(self.file, f"{name} says that it is {info.file_size} bytes long")
        try:
            return self._zip.read(info).decode("utf-8")
        except UnicodeDecodeError as error:
            raise refused(self.file, f"{name} is not UTF-8 text") from error

    def get_contents(self) -> Iterator[WheelContentElement]:
        """All files to install, in path order, each with what RECORD says of it.

        Raises:
            BuildError: ``wheel-record-mismatch`` when RECORD and the archive differ.
        """
        record = self._record()
        dist_info = f"{self._dist_info}/"
        for name, info in sorted(self._infos.items()):
            folder, _, base = name.rpartition("/")
            if folder == self._dist_info and base in _INSTALLER_FILES:
                continue
            if "__pycache__" in folder.split("/"):
                continue  # byte-code is made by the image's own Python
            if name not in record and not (name.startswith(dist_info) and base in _SIGNATURES):
                raise self._mismatch(f"{name} is not in the wheel's RECORD")
            declared, size = record.get(name, ("", ""))
            if size and size != str(info.file_size):
                raise self._mismatch(f"{name} has {info.file_size} bytes, its RECORD says {size}")
            sha256 = self._sha256(info, declared)
            mode = info.external_attr >> 16
            executable = bool(stat.S_ISREG(mode) and mode & 0o111)
            member = Member(self._zip, info, sha256)
            yield (name, f"sha256={sha256}", str(info.file_size)), cast("BinaryIO", member), executable

    def _record(self) -> dict[str, tuple[str, str]]:
        name = f"{self._dist_info}/RECORD"
        rows: dict[str, tuple[str, str]] = {}
        try:
            for path, declared, size in parse_record_file(self.read_dist_info("RECORD").splitlines()):
                if path in rows:
                    raise self._mismatch(f"{name} lists {path} twice")
                rows[path] = (declared, size)
        except csv.Error as error:
            raise self._mismatch(f"{name} is not CSV: {error}") from error
        for path in rows:
            if path not in self._infos:
                raise self._mismatch(f"{name} lists {path}, which the wheel does not hold")
        return rows

    def _sha256(self, info: zipfile.ZipInfo, declared: str) -> str:
        """The hash RECORD declares; worked out here only where RECORD has another algorithm or none."""
        algorithm, _, value = declared.partition("=")
        if algorithm == "sha256":
            return value
        if declared and algorithm not in ("sha384", "sha512", "blake2b", "sha3_256", "sha3_512"):
            raise self._mismatch(f"{info.filename} has the hash {declared!r} in RECORD, which is too weak")
        digests = {"sha256": hashlib.sha256(), algorithm or "sha256": hashlib.new(algorithm or "sha256")}
        with self._zip.open(info) as stream:
            while block := stream.read(_CHUNK):
                for digest in digests.values():
                    digest.update(block)
        if declared and record_hash(digests[algorithm].digest()) != value:
            raise self._mismatch(f"the content of {info.filename} is not what RECORD says")
        return record_hash(digests["sha256"].digest())

    def _sole_folder(self, suffix: str) -> str:
        folders = {name.split("/", 1)[0] for name in self._infos if "/" in name}
        found = sorted(folder for folder in folders if folder.endswith(suffix))
        if len(found) > 1:
            raise refused(self.file, f"the wheel has several {suffix} folders: {', '.join(found)}")
        return found[0] if found else ""

    def _check_metadata(self) -> None:
        if not self._dist_info:
            raise refused(self.file, "the wheel has no .dist-info folder")
        named = self._dist_info.removesuffix(".dist-info").rpartition("-")[0]
        if canonicalize_name(named) != canonicalize_name(self.distribution):
            raise refused(self.file, f"its {self._dist_info} belongs to another distribution")
        for name in ("WHEEL", "METADATA", "RECORD"):
            if f"{self._dist_info}/{name}" not in self._infos:
                raise refused(self.file, f"the wheel has no {self._dist_info}/{name}")

    def _mismatch(self, what: str) -> BuildError:
        return refused(self.file, what, code="wheel-record-mismatch")


def record_hash(digest: bytes) -> str:
    """A digest as RECORD writes it: URL-safe base64 without padding."""
    return urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def _distribution(wheel: LockedWheel) -> tuple[str, str]:
    try:
        name, version, _, _ = parse_wheel_filename(wheel.file)
        same = name == canonicalize_name(wheel.name) and version == Version(wheel.version)
    except (InvalidWheelFilename, InvalidVersion) as error:
        raise refused(wheel.file, f"its name is not a wheel's: {error}") from error
    if not same:
        raise refused(wheel.file, f"the lock says that it is {wheel.name} {wheel.version}")
    distribution, spelled_version = wheel.file.split("-")[:2]
    return distribution, spelled_version


def _checked_entries(archive: zipfile.ZipFile, file: str, file_size: int) -> dict[str, zipfile.ZipInfo]:
    """The archive's files by name, folders left out.

    Raises:
        BuildError: naming the entry that is refused.
    """
    entries: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for info in archive.infolist():
        name = info.filename
        if "\0" in info.orig_filename:
            raise refused(file, f"the name of the entry {info.orig_filename!r} holds a zero byte")
        check_path(name.removesuffix("/"))
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind == stat.S_IFLNK:
            raise refused(file, f"the entry {name} is a symbolic link")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise refused(file, f"the entry {name} is neither a file nor a folder")
        if name.endswith("/"):
            continue
        if name in entries:
            raise refused(file, f"the wheel holds two entries named {name}")
        if info.header_offset < 0:
            raise refused(file, f"the entry {name} begins before the file does")
        if info.flag_bits & 0x1:
            raise refused(file, f"the entry {name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refused(file, f"the entry {name} is compressed with method {info.compress_type}")
        entries[name] = info
        total += info.file_size
    if total > _BOMB_SIZE and total > _BOMB_RATIO * file_size:
        raise refused(file, f"its {file_size} bytes would unpack to {total}, like a bomb", code="wheel-bomb")
    return entries
