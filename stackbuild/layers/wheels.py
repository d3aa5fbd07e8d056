"""The layer of one group of wheels, installed into the virtual environment without running anything."""

from __future__ import annotations

import configparser
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from installer import install
from installer.exceptions import InstallerError
from installer.records import InvalidRecordEntry
from packaging.utils import parse_wheel_filename

from stackbuild.counting import some_of
from stackbuild.errors import BuildError
from stackbuild.layers.interface import layer_key
from stackbuild.layers.tar_writer import LayerTarWriter, Sink
from stackbuild.layers.tree import Additions, FileTree
from stackbuild.layers.venv import VENV, VenvLayout
from stackbuild.layers.wheels_archive import Member, WheelArchive, record_hash, refused
from stackbuild.layers.wheels_destination import PlanDestination, PlannedFile
from stackbuild.lock.model import LockedWheel, PlatformLock, PythonLock
from stackbuild.lock.wheels_target import Target
from stackbuild.spec.platforms import MACHINES
from stackbuild.urls import without_credentials

_VERSION = 1
_NAMED = 6  # wheels in a line of the image's history

# What reading an entry of a damaged archive raises.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
# What the installer library raises besides, on metadata that makes no sense.
_DAMAGED = (
    *_UNREADABLE,
    InstallerError,
    InvalidRecordEntry,
    configparser.Error,
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class WheelFile:
    """A locked wheel and where its file lies (under any name)."""

    wheel: LockedWheel
    path: Path


@dataclass(frozen=True)
class WheelsMaker:
    """Makes the layer of one group of wheels.

    Attributes:
        group: cuda, torch, framework or other.
        wheels: The group's wheels, in name order.
        python: The Python they are for.
        platform: For example ``linux/amd64``.
        glibc: The base's glibc, for example ``2.36``.
        lineage: ``tree.lineage(VENV)`` of the tree below.
    """

    group: str
    wheels: tuple[WheelFile, ...]
    python: PythonLock
    platform: str
    glibc: str
    lineage: str

    @property
    def created_by(self) -> str:
        """One line for the image's history."""
        names = (f"{each.wheel.name} {each.wheel.version}" for each in self.wheels)
        return f"stackbuild: {self.group} wheels: {some_of(names, _NAMED)}"

    def key(self) -> str:
        """Hash of all that decides the layer's bytes."""
        wheels = [
            [each.wheel.file, each.wheel.sha256, each.wheel.requested, each.wheel.url] for each in self.wheels
        ]
        return layer_key(
            "wheels", _VERSION, [wheels, self.python.tag, self.python.version, self.platform, self.lineage]
        )

    def make(self, sink: Sink, tree: FileTree) -> Additions:
        """Write the layer; large files are streamed, never held.

        Raises:
            BuildError: naming wheel and entry, for a wheel that is hostile, damaged or for another platform;
                naming both wheels, for a path with two contents.
        """
        with ExitStack() as stack:
            writer = LayerTarWriter(sink, tree)
            files: list[PlannedFile] = []
            for index in range(len(self.wheels)):
                files.extend(self._plan(index, stack))
            files.sort(key=lambda planned: (planned.path.split("/"), planned.wheel))
            for planned in files:
                self._write(writer, planned)
            return writer.close()

    def _plan(self, index: int, stack: ExitStack) -> Sequence[PlannedFile]:
        each = self.wheels[index]
        check_tags(each.wheel.file, self.python, self.platform, self.glibc)
        layout = VenvLayout.of(self.python)
        with _damage_as_error(each.wheel.file):
            source = stack.enter_context(closing(WheelArchive(each.path, each.wheel)))
            destination = PlanDestination(each.wheel.file, index, layout, source.distribution)
            install(source, destination, _installer_files(each.wheel))
        return destination.files

    def _write(self, writer: LayerTarWriter, planned: PlannedFile) -> None:
        wheel = self.wheels[planned.wheel].wheel
        owner = f"{wheel.name} {wheel.version}"
        content = planned.content
        if isinstance(content, bytes):
            with _damage_as_error(wheel.file):
                writer.add_file(planned.path, content, len(content), planned.mode, owner=owner)
            return
        with _damage_as_error(wheel.file, content.name, _UNREADABLE), content.open() as stream:
            sha256 = writer.add_file(planned.path, stream, content.size, planned.mode, owner=owner)
        _check_record(wheel.file, content, sha256)


def wheels_makers(
    lock: PlatformLock, platform: str, paths: Mapping[str, Path], tree: FileTree
) -> tuple[WheelsMaker, ...]:
    """The makers of a lock's wheel groups, in layer order; a group without wheels has none.

    Args:
        lock: One platform's lock.
        platform: For example ``linux/amd64``.
        paths: Where each wheel's file lies, by sha256.
        tree: The file system the virtual environment is put on.
    """
    if lock.python is None:
        return ()
    makers = []
    for group in ("cuda", "torch", "framework", "other"):
        wheels = sorted((wheel for wheel in lock.wheels if wheel.group == group), key=lambda w: w.name)
        files = tuple(WheelFile(wheel, paths[wheel.sha256]) for wheel in wheels)
        if files:
            makers.append(
                WheelsMaker(group, files, lock.python, platform, lock.os.glibc, tree.lineage(f"{VENV}/lib"))
            )
    return tuple(makers)


def check_tags(file: str, python: PythonLock, platform: str, glibc: str) -> None:
    """Refuse a wheel that is not for this Python, machine and glibc.

    Raises:
        BuildError: ``wheel-wrong-platform``.
    """
    with _damage_as_error(file):
        tags = parse_wheel_filename(file)[3]
    if Target(python.version, glibc, MACHINES[platform]).rank(tags) is None:
        raise refused(
            file,
            f"the wheel is not for {python.tag} on {platform} with glibc {glibc}",
            code="wheel-wrong-platform",
        )


def _installer_files(wheel: LockedWheel) -> dict[str, bytes]:
    """What an installer adds to dist-info ("Recording installed projects"; PEP 610 for direct_url.json)."""
    files = {"INSTALLER": b"stackbuild\n"}
    if wheel.requested:
        files["REQUESTED"] = b""
    if wheel.url is not None:
        value = {
            "archive_info": {"hash": f"sha256={wheel.sha256}", "hashes": {"sha256": wheel.sha256}},
            "url": without_credentials(wheel.url),
        }
        files["direct_url.json"] = json.dumps(value, sort_keys=True).encode()
    return files


def _check_record(file: str, member: Member, sha256: str) -> None:
    if record_hash(bytes.fromhex(sha256)) != member.sha256:
        raise refused(
            file, f"the content of {member.name} is not what RECORD says", code="wheel-record-mismatch"
        )


@contextmanager
def _damage_as_error(
    file: str, entry: str = "", damage: tuple[type[Exception], ...] = _DAMAGED
) -> Iterator[None]:
    """Turn what damaged archives raise into an error that names the wheel, and the entry being read."""
    try:
        yield
    except BuildError as error:
        error.where = error.where or (f"{file}, {entry}" if entry else file)
        raise
    except damage as error:
        where = f"the entry {entry}" if entry else "it"
        raise refused(file, f"{where} is damaged: {error or type(error).__name__}") from error
