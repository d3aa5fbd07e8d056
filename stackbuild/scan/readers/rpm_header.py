"""One package out of an rpm header, as every form of rpm's database holds them.

RPM documentation, "RPM V4 package format", "Header Structure", and the tags of rpm 4.18 (``include/rpm/rpmtag.h``): the
number of entries, the size of the data, an index of 16-byte entries (tag, type, offset, count), the data. Numbers are
big-endian. The words of dependencies and their flags are those of ``include/rpm/rpmds.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stackbuild.errors import ScanError
from stackbuild.scan.byte_source import LONGEST_NAME, damaged

_NAME, _VERSION, _RELEASE, _EPOCH, _SIZE = 1000, 1001, 1002, 1003, 1009
_LICENCE, _ARCHITECTURE, _SOURCE, _MODULE = 1014, 1022, 1044, 5096
_REQUIRES = (1049, 1048, 1050)  # names, flags, versions
_PROVIDES = (1047, 1112, 1113)
_BASENAMES, _DIRECTORIES, _DIRECTORY_OF = 1117, 1118, 1116
_PATHS = 1027  # before rpm 4
_FILE_FLAGS, _GHOST = 1037, 64
_INT32, _STRING, _STRING_ARRAY, _I18N = 4, 6, 8, 9
_LESS, _GREATER, _EQUAL, _RPMLIB = 2, 4, 8, 1 << 24
_MOST_TAGS = 1 << 14
# Of files, or of dependencies of one kind, in one package; large ones have some ten thousand.
_MOST_ENTRIES = 1_000_000


@dataclass(frozen=True, slots=True)
class RpmPackage:
    """One package.

    Attributes:
        name: Its name.
        version: Version and release, with the epoch where there is one: ``2:1.4-3``.
        architecture: As rpm names it.
        source: The source package's file name.
        size: Bytes installed.
        licence: One expression.
        requires: What it needs, as ``rpm -q --requires`` prints it; what rpm itself provides is left out.
        provides: As ``rpm -q --provides`` prints it.
        module: The module it was built for (``NAME:STREAM:VERSION:CONTEXT``); empty for none.
        files: Folder without slashes around it → names in it; None where files or dependencies cannot be read.
        ghosts: The same of files that are its own and not brought by it (``%ghost``): logs, caches, alternatives.
    """

    name: str
    version: str
    architecture: str = ""
    source: str = ""
    size: int = 0
    licence: str = ""
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    module: str = ""
    files: Mapping[str, Sequence[str]] | None = field(default_factory=dict)
    ghosts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How much it says."""
        names = sum(len(names) for listed in (self.files or {}, self.ghosts) for names in listed.values())
        return len(self.requires) + len(self.provides) + names


def rpm_package(header: bytes) -> RpmPackage | None:
    """The package of a header, from the number of entries on; None for one that is damaged or has no name."""
    try:
        tags = _Header(header)
    except ScanError:
        return None
    name = tags.text(_NAME)
    if not name:
        return None
    version, epoch = f"{tags.text(_VERSION)}-{tags.text(_RELEASE)}", tags.number(_EPOCH)
    stated = RpmPackage(
        name,
        f"{epoch}:{version}" if epoch else version,
        architecture=tags.text(_ARCHITECTURE),
        source=tags.text(_SOURCE),
        size=tags.number(_SIZE),
        licence=tags.text(_LICENCE),
        module=tags.text(_MODULE),
        files=None,
    )
    try:
        return replace(
            stated,
            requires=tuple(dict.fromkeys(_dependencies(tags, *_REQUIRES))),
            provides=tuple(dict.fromkeys(_dependencies(tags, *_PROVIDES))),
            files=_files(tags, ghosts=False),
            ghosts=_files(tags, ghosts=True),
        )
    except ScanError:
        return stated


def _dependencies(tags: _Header, names: int, flags: int, versions: int) -> Iterator[str]:
    """``NAME``, or ``NAME OPERATOR VERSION`` where a version is asked for."""
    rows = zip(tags.texts(names), tags.numbers(flags), tags.texts(versions), strict=False)
    found = 0
    for name, flag, version in rows:
        found += 1
        if flag & _RPMLIB or name.startswith("rpmlib("):
            continue
        signs = ((_LESS, "<"), (_GREATER, ">"), (_EQUAL, "="))
        operator = "".join(sign for bit, sign in signs if flag & bit)
        yield f"{name} {operator} {version}" if operator and version else name
    if found != tags.count(names):
        raise damaged("its dependencies have other numbers of names, flags and versions")


def _files(tags: _Header, *, ghosts: bool) -> Mapping[str, Sequence[str]]:
    paths = [*_paths(tags)]
    flags = tags.numbers(_FILE_FLAGS) or [0] * len(paths)
    if len(flags) != len(paths):
        raise damaged("its files have another number of flags")
    found: dict[str, list[str]] = {}
    for (folder, name), flag in zip(paths, flags, strict=True):
        if bool(flag & _GHOST) == ghosts:
            found.setdefault(folder, []).append(name)
    return found


def _paths(tags: _Header) -> Iterator[tuple[str, str]]:
    """Folder and name of each file."""
    names, places = tags.texts(_BASENAMES), tags.numbers(_DIRECTORY_OF)
    folders = [folder.strip("/") for folder in tags.texts(_DIRECTORIES)]
    if len(places) != len(names) or max(places, default=-1) >= len(folders):
        raise damaged("its files lie in folders that it does not name")
    for name, place in zip(names, places, strict=True):
        yield folders[place], name
    for path in () if names else tags.texts(_PATHS):
        folder, _, name = path.rpartition("/")
        yield folder.strip("/"), name


class _Header:
    """The values of a header by tag; of a tag that is there twice the last, as rpm takes it."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 8:
            raise damaged("it ends in its first eight bytes")
        count, size = struct.unpack_from(">II", data)
        self._data_at = 8 + 16 * count
        self._end = self._data_at + size
        if count > _MOST_TAGS or self._end > len(data):
            raise damaged(f"it claims {count} entries and {size} bytes of data")
        self._data = data
        index = struct.iter_unpack(">IIII", data[8 : self._data_at])
        self._places = {tag: (kind, self._data_at + at, number) for tag, kind, at, number in index}

    def count(self, tag: int) -> int:
        """How many values a tag has; 0 where it is not there."""
        return self._places[tag][2] if tag in self._places else 0

    def text(self, tag: int) -> str:
        """The text, or the first of several; empty where it is not there or has no end."""
        kind, at, _ = self._places.get(tag, (0, self._end, 0))
        end = self._data.find(b"\0", at, self._end)
        return _decoded(self._data[at:end]) if kind in (_STRING, _STRING_ARRAY, _I18N) and end >= 0 else ""

    def number(self, tag: int) -> int:
        """The number, or the first of several; 0 where it is not there."""
        kind, at, _ = self._places.get(tag, (0, self._end, 0))
        return (
            int(struct.unpack_from(">I", self._data, at)[0]) if kind == _INT32 and at + 4 <= self._end else 0
        )

    def texts(self, tag: int) -> list[str]:
        """All texts. Raises ``file-damaged`` where there are fewer than the index says."""
        if tag not in self._places:
            return []
        kind, at, count = self._places[tag]
        if kind not in (_STRING, _STRING_ARRAY, _I18N) or count > min(self._end - at, _MOST_ENTRIES):
            raise damaged(f"tag {tag} claims {count} texts")
        parts = self._data[at : self._end].split(b"\0", count)
        if len(parts) <= count:
            raise damaged(f"tag {tag} ends after {len(parts) - 1} of {count} texts")
        return [_decoded(part) for part in parts[:count]]

    def numbers(self, tag: int) -> Sequence[int]:
        """All numbers. Raises ``file-damaged`` where there are fewer than the index says."""
        if tag not in self._places:
            return ()
        kind, at, count = self._places[tag]
        if kind != _INT32 or count > _MOST_ENTRIES or at + 4 * count > self._end:
            raise damaged(f"tag {tag} claims {count} numbers")
        return struct.unpack_from(f">{count}I", self._data, at)


def _decoded(text: bytes) -> str:
    return text[:LONGEST_NAME].decode("utf-8", "backslashreplace")
