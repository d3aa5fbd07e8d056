"""Small wheels, well-formed and hostile, made on the spot."""

from __future__ import annotations

import base64
import hashlib
import io
import stat
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

HostileKind = Literal["parent-path", "absolute-path", "symlink", "whiteout", "data-escape", "bad-record"]
HOSTILE_KINDS: tuple[HostileKind, ...] = (
    "parent-path",
    "absolute-path",
    "symlink",
    "whiteout",
    "data-escape",
    "bad-record",
)

_MOMENT = (2023, 11, 14, 22, 13, 20)
_REGULAR = stat.S_IFREG | 0o644
_EXECUTABLE = stat.S_IFREG | 0o755
_SYMLINK = stat.S_IFLNK | 0o777


def make_wheel(
    directory: Path,
    name: str,
    version: str,
    *,
    requires: Sequence[str] = (),
    extras: Sequence[str] = (),
    files: Mapping[str, bytes | str] | None = None,
    executables: Sequence[str] = (),
    entry_points: Mapping[str, str] | None = None,
    tag: str = "py3-none-any",
    requires_python: str | None = None,
    metadata: Sequence[str] = (),
) -> Path:
    """Write a well-formed wheel and return its path; equal arguments give equal bytes.

    Args:
        directory: Where the wheel goes; made when absent.
        name: Distribution name as its author spells it.
        version: PEP 440 version, with a local label where wanted.
        requires: ``Requires-Dist`` values.
        extras: ``Provides-Extra`` values.
        files: Path inside the wheel to content; default: one package of the distribution's name.
            ``NAME-VERSION.data/scripts/x`` and friends go through unchanged.
        executables: Those of ``files`` that carry the executable bit.
        entry_points: Console scripts: script name to ``module:function``.
        tag: Compatibility tag, for example ``cp311-cp311-manylinux_2_28_x86_64``.
        requires_python: ``Requires-Python`` value.
        metadata: Further header lines of ``METADATA``, for example ``License-Expression: MIT``.
    """
    members = _members(
        name, version, requires, extras, files, executables, entry_points, tag, requires_python, metadata
    )
    return _write(directory, name, version, tag, members)


def make_hostile_wheel(directory: Path, name: str, version: str, kind: HostileKind) -> Path:
    """Write a wheel whose metadata is in order but whose content attacks the image.

    Args:
        directory: Where the wheel goes.
        name: Distribution name.
        version: PEP 440 version.
        kind: ``parent-path`` has a member below ``../``; ``absolute-path`` one that starts with ``/``;
            ``symlink`` one that is a link to ``/etc/passwd``; ``whiteout`` one named ``.wh.NAME``;
            ``data-escape`` one that leaves its scheme through ``.data/scripts/../``; ``bad-record``
            one whose bytes are not those that RECORD names.
    """
    members = _members(name, version, (), (), None, (), None, "py3-none-any", None, ())
    package = _package(name)
    evil = b"# not wanted\n"
    if kind == "parent-path":
        members["../../../../../etc/profile.d/evil.sh"] = (evil, _REGULAR)
    elif kind == "absolute-path":
        members["/etc/profile.d/evil.sh"] = (evil, _REGULAR)
    elif kind == "symlink":
        members[f"{package}/link"] = (b"/etc/passwd", _SYMLINK)
    elif kind == "whiteout":
        members[f"{package}/.wh.module.py"] = (b"", _REGULAR)
    elif kind == "data-escape":
        members[f"{package}-{version}.data/scripts/../../../etc/evil"] = (evil, _EXECUTABLE)
    return _write(directory, name, version, "py3-none-any", members, broken_record=kind == "bad-record")


def sha256_of(path: Path) -> str:
    """The sha256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _package(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _members(
    name: str,
    version: str,
    requires: Sequence[str],
    extras: Sequence[str],
    files: Mapping[str, bytes | str] | None,
    executables: Sequence[str],
    entry_points: Mapping[str, str] | None,
    tag: str,
    requires_python: str | None,
    metadata: Sequence[str],
) -> dict[str, tuple[bytes, int]]:
    package = _package(name)
    if files is None:
        files = {f"{package}/__init__.py": f'__version__ = "{version}"\n'}
    members = {
        path: (_bytes(content), _EXECUTABLE if path in executables else _REGULAR)
        for path, content in files.items()
    }
    head = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *metadata]
    head += [f"Requires-Python: {requires_python}"] if requires_python else []
    head += [f"Provides-Extra: {extra}" for extra in extras]
    head += [f"Requires-Dist: {requirement}" for requirement in requires]
    info = f"{package}-{version}.dist-info"
    members[f"{info}/METADATA"] = ("\n".join([*head, "", ""]).encode(), _REGULAR)
    purelib = "true" if tag.endswith("-any") else "false"
    wheel = ["Wheel-Version: 1.0", "Generator: tests", f"Root-Is-Purelib: {purelib}", f"Tag: {tag}", ""]
    members[f"{info}/WHEEL"] = ("\n".join(wheel).encode(), _REGULAR)
    if entry_points:
        lines = ["[console_scripts]", *(f"{key} = {value}" for key, value in entry_points.items()), ""]
        members[f"{info}/entry_points.txt"] = ("\n".join(lines).encode(), _REGULAR)
    return members


def _write(
    directory: Path,
    name: str,
    version: str,
    tag: str,
    members: Mapping[str, tuple[bytes, int]],
    *,
    broken_record: bool = False,
) -> Path:
    package = _package(name)
    record_path = f"{package}-{version}.dist-info/RECORD"
    record = io.StringIO()
    for path, (content, _mode) in members.items():
        digest = hashlib.sha256(content + (b"x" if broken_record else b"")).digest()
        encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        record.write(f"{path},sha256={encoded},{len(content)}\n")
    record.write(f"{record_path},,\n")
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{package}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, (content, mode) in members.items():
            archive.writestr(_entry(path, mode), content)
        archive.writestr(_entry(record_path, _REGULAR), record.getvalue())
    return wheel


def _entry(path: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, date_time=_MOMENT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    entry.external_attr = mode << 16
    return entry
