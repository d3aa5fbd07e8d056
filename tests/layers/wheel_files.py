"""Wheels edited byte by byte, and the layers made of them."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

from stackbuild.layers.tree import Additions, Entry, FileTree
from stackbuild.layers.venv import VENV, VenvMaker
from stackbuild.layers.wheels import WheelFile, WheelsMaker
from stackbuild.lock.model import LockedWheel, PythonLock
from tests.layers.tars import members
from tests.support.wheels import sha256_of

PYTHON = PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311")
SITE = f"{VENV}/lib/python3.11/site-packages"

_BASE = FileTree({"opt": Entry("dir", 0o755), "usr": Entry("dir", 0o755)})


def venv_tree() -> FileTree:
    """A base with the virtual environment's skeleton."""
    return _BASE.with_layer(VenvMaker(PYTHON, _BASE.lineage(VENV)).make(io.BytesIO(), _BASE))


def locked(path: Path, **changes: object) -> WheelFile:
    """The wheel as a lock would have it."""
    name, version = path.name.split("-")[:2]
    wheel = LockedWheel(
        name=name.lower().replace("_", "-"),
        version=version,
        index="default",
        file=path.name,
        sha256=sha256_of(path),
        size=path.stat().st_size,
        group="other",
    )
    return WheelFile(wheel.model_copy(update=changes), path)


def maker(*wheels: WheelFile, tree: FileTree | None = None) -> WheelsMaker:
    """A maker for Python 3.11 on a Debian of glibc 2.36."""
    lineage = (tree or venv_tree()).lineage(f"{VENV}/lib")
    return WheelsMaker("other", wheels, PYTHON, "linux/amd64", "2.36", lineage)


def make(*wheels: WheelFile, tree: FileTree | None = None) -> tuple[bytes, Additions]:
    """The layer's tar and additions."""
    sink = io.BytesIO()
    additions = maker(*wheels).make(sink, venv_tree() if tree is None else tree)
    return sink.getvalue(), additions


def contents(*wheels: WheelFile, tree: FileTree | None = None) -> dict[str, bytes]:
    """Path to content of the regular files in the layer."""
    tar, _ = make(*wheels, tree=tree)
    return {name: data for name, (member, data) in members(tar).items() if member.isreg()}


def rewritten(
    wheel: Path,
    edit: Callable[[list[tuple[zipfile.ZipInfo, bytes]]], None],
    *,
    keep_record: bool = False,
) -> Path:
    """The wheel with its entries edited in place; RECORD is made to fit unless it is kept."""
    with zipfile.ZipFile(wheel) as archive:
        entries = [(info, archive.read(info)) for info in archive.infolist()]
    edit(entries)
    if not keep_record:
        for number, (info, _) in enumerate(entries):
            if info.filename.endswith(".dist-info/RECORD"):
                entries[number] = (info, _record(entries, info.filename))
    with zipfile.ZipFile(wheel, "w") as archive:
        for info, data in entries:
            archive.writestr(info, data)
    return wheel


def _record(entries: list[tuple[zipfile.ZipInfo, bytes]], name: str) -> bytes:
    rows = []
    for info, data in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        rows.append(f"{name},," if info.filename == name else f"{info.filename},sha256={digest},{len(data)}")
    return ("\n".join(dict.fromkeys(rows)) + "\n").encode()
