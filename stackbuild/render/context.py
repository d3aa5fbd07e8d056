"""The build context of a rendered Dockerfile: a list of files that can be a folder or a tar stream."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from stackbuild.errors import UsageError
from stackbuild.layers.files import SourcePath, scan_files
from stackbuild.layers.tar_writer import MTIME
from stackbuild.lock.model import PlatformLock
from stackbuild.render.requirements import pip_steps, requirements_text
from stackbuild.spec.model import FileSpec, StackSpec

_CHUNK = 1 << 20
_WHEELS_README = b"""\
When this folder holds wheels, the build installs from here and asks no index; their hashes are checked all the same.
"""


@dataclass(frozen=True)
class ContextEntry:
    """One path of a context.

    Attributes:
        path: Relative to the context.
        content: Bytes; a file on this machine; None for a folder; a link's target as str.
        mode: Permission bits.
    """

    path: str
    content: bytes | Path | str | None
    mode: int = 0o644


def context_entries(
    spec: StackSpec,
    spec_folder: Path,
    lock: PlatformLock,
    dockerfile: str,
    *,
    wheels: Mapping[str, Path] | None = None,
    rootfs: Path | None = None,
    keys: Sequence[Path] = (),
) -> tuple[ContextEntry, ...]:
    """Everything that goes beside the Dockerfile, in path order.

    Args:
        spec: The stack.
        spec_folder: What its paths are relative to.
        lock: One platform's lock.
        dockerfile: As rendered.
        wheels: The wheels by sha256, for builds that reach no index; none where the indexes are to be used.
        rootfs: The root file system of a bootstrapped base, where the Dockerfile asks for it.
        keys: The signing keys of the spec's ``apt-sources``, in their order.

    Raises:
        SpecError: ``files-missing``.
    """
    entries = [ContextEntry("Dockerfile", dockerfile.encode())]
    if rootfs is not None:
        entries.append(ContextEntry("rootfs.tar", rootfs))
    if keys:
        entries.append(ContextEntry("keyrings", None, 0o755))
        entries += [ContextEntry(f"keyrings/stackbuild-{number}.asc", key) for number, key in enumerate(keys)]
    if lock.wheels and lock.python is not None:
        entries += [ContextEntry("wheels", None, 0o755), ContextEntry("wheels/README", _WHEELS_README)]
        for step in pip_steps(lock.wheels, spec.indexes):
            text = requirements_text(step.wheels, from_folder=wheels is not None)
            entries.append(ContextEntry(step.file, text.encode()))
        if wheels is not None:
            entries += [
                ContextEntry(f"wheels/{wheel.file}", wheels[wheel.sha256])
                for wheel in sorted(lock.wheels, key=lambda wheel: wheel.file)
            ]
    if spec.files:
        entries.append(ContextEntry("files", None, 0o755))
        for number, entry in enumerate(spec.files):
            entries += _copied(number, entry, spec_folder)
    return tuple(sorted(entries, key=lambda entry: entry.path.split("/")))


def source_folders(spec: StackSpec, spec_folder: Path) -> tuple[bool, ...]:
    """For each of the spec's ``files``, whether it is a folder."""
    return tuple((spec_folder / entry.from_).is_dir() for entry in spec.files)


def _copied(number: int, entry: FileSpec, spec_folder: Path) -> Iterator[ContextEntry]:
    top = f"files/{number}"
    yield ContextEntry(top, None, 0o755)
    is_folder = (spec_folder / entry.from_).is_dir()
    to = "/".join(part for part in entry.to.split("/") if part not in ("", "."))
    for source in scan_files([entry], spec_folder):
        if is_folder:
            below = PurePosixPath(source.path).relative_to(to).as_posix() if to else source.path
        else:
            below = PurePosixPath(source.path).name
        if below != ".":
            yield ContextEntry(f"{top}/{below}", _content(source), source.mode)


def _content(source: SourcePath) -> Path | str | None:
    if source.kind == "dir":
        return None
    return source.content if source.kind == "symlink" else source.source


def context_tar(entries: Sequence[ContextEntry]) -> Iterator[bytes]:
    """The context as a tar stream, with fixed times and owners."""
    for entry in entries:
        info = tarfile.TarInfo(entry.path)
        info.mode, info.mtime = entry.mode, MTIME
        if entry.content is None:
            info.type = tarfile.DIRTYPE
            yield info.tobuf(tarfile.PAX_FORMAT)
        elif isinstance(entry.content, str):
            info.type, info.linkname = tarfile.SYMTYPE, entry.content
            yield info.tobuf(tarfile.PAX_FORMAT)
        else:
            with _opened(entry.content) as (size, stream):
                info.size = size
                yield info.tobuf(tarfile.PAX_FORMAT)
                while chunk := stream.read(_CHUNK):
                    yield chunk
                yield bytes(-size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


@contextmanager
def _opened(content: bytes | Path) -> Iterator[tuple[int, IO[bytes]]]:
    """Size and stream of bytes or of a file."""
    if isinstance(content, bytes):
        yield len(content), io.BytesIO(content)
        return
    with content.open("rb") as stream:
        yield os.fstat(stream.fileno()).st_size, stream


def write_context(entries: Sequence[ContextEntry], folder: Path) -> None:
    """Write the context as a folder: all of it, or what was there before.

    Args:
        entries: From :func:`context_entries`.
        folder: New, empty, or an earlier context of ours, which is replaced.

    Raises:
        UsageError: ``context-folder-taken``: the folder has something else in it.
    """
    if folder.exists() and not _may_replace(folder):
        raise UsageError(
            "the folder has other files in it, which would be lost",
            code="context-folder-taken",
            where=str(folder),
            do="Name a new folder.",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = folder.parent / f".{folder.name}.{uuid.uuid4().hex}"
    building.mkdir()
    try:
        for entry in entries:
            _write(entry, building / entry.path)
        if folder.exists():
            shutil.rmtree(folder)
        building.rename(folder)
    finally:
        if building.exists():
            shutil.rmtree(building)


def _may_replace(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    names = {child.name for child in folder.iterdir()}
    dockerfile = folder / "Dockerfile"
    ours = dockerfile.is_file() and "Rendered by stackbuild" in dockerfile.read_text(errors="replace")[:1000]
    return not names or ours


def _write(entry: ContextEntry, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.content is None:
        target.mkdir(exist_ok=True)
        return
    if isinstance(entry.content, str):
        target.symlink_to(entry.content)
        return
    if isinstance(entry.content, bytes):
        target.write_bytes(entry.content)
    else:
        shutil.copyfile(entry.content, target)
    target.chmod(stat.S_IMODE(entry.mode))
    os.utime(target, (MTIME, MTIME))
