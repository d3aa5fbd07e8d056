"""The last layer: the spec's own files."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stackbuild.errors import BuildError, SpecError
from stackbuild.layers.accounts import accounts_of, owner_ids
from stackbuild.layers.interface import layer_key
from stackbuild.layers.paths import check_path
from stackbuild.layers.tar_writer import LayerTarWriter, Sink
from stackbuild.layers.tree import Additions, FileTree
from stackbuild.spec.model import FileSpec, StackSpec

_VERSION = 1


@dataclass(frozen=True)
class SourcePath:
    """One file, folder or link to copy.

    Attributes:
        path: Where it goes in the image, without leading slash.
        kind: file, dir or symlink.
        source: Where it lies.
        mode: Permission bits it gets.
        owner: As the spec writes it; None is root.
        content: A file's sha256 in hex, a link's target, else empty.
        size: A file's bytes.
        origin: The spec entry's ``from``, for messages.
    """

    path: str
    kind: Literal["file", "dir", "symlink"]
    source: Path
    mode: int
    owner: str | None
    content: str
    size: int
    origin: str


def scan_files(files: Sequence[FileSpec], spec_dir: Path) -> tuple[SourcePath, ...]:
    """Everything the spec's ``files`` name, hashed, in path order. Nothing is left out.

    Args:
        files: The spec's entries.
        spec_dir: The folder of the spec, to which ``from`` is relative.

    Raises:
        SpecError: ``files-missing`` when a source is not there.
        BuildError: ``file-refused`` for links that leave their folder, sockets, devices and unreadable
            files; ``whiteout-refused`` for ``.wh.`` names.
    """
    found: list[tuple[int, SourcePath]] = []
    for number, entry in enumerate(files):
        found.extend((number, source) for source in _scan(entry, spec_dir))
    found.sort(key=lambda item: (item[1].path.split("/"), item[0]))
    return tuple(source for _, source in found)


def require_sources(files: Sequence[FileSpec], spec_dir: Path) -> None:
    """Refuse a spec whose ``files`` name what is not there, before anything that takes long.

    Raises:
        SpecError: ``files-missing``.
    """
    for entry in files:
        _top(entry, spec_dir)


def hash_of(sources: Sequence[SourcePath]) -> str:
    """The hash of scanned files, over names, kinds, modes, owners and content; empty without files."""
    if not sources:
        return ""
    rows = [[each.path, each.kind, each.mode, each.owner, each.content] for each in sources]
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


def files_sha256(spec: StackSpec, spec_dir: Path) -> str:
    """The hash of the spec's files, which goes into pin list and tag; empty when the spec has none."""
    return hash_of(scan_files(spec.files, spec_dir))


@dataclass(frozen=True)
class FilesMaker:
    """Makes the layer of the spec's files.

    Attributes:
        sources: What to copy, in path order.
        owners: (uid, gid) of each.
        lineage: Digests of the places they are put.
    """

    sources: tuple[SourcePath, ...]
    owners: tuple[tuple[int, int], ...]
    lineage: tuple[str, ...]

    group = "files"

    @property
    def created_by(self) -> str:
        """One line for the image's history."""
        origins = dict.fromkeys(source.origin for source in self.sources)
        return f"stackbuild: files from {', '.join(origins)}"

    def key(self) -> str:
        """Hash of all that decides the layer's bytes."""
        rows = [
            [each.path, each.kind, each.mode, ids, each.content]
            for each, ids in zip(self.sources, self.owners, strict=True)
        ]
        return layer_key("files", _VERSION, [rows, self.lineage])

    def make(self, sink: Sink, tree: FileTree) -> Additions:
        """Write the layer.

        Raises:
            BuildError: ``file-changed`` when a file is no longer what was scanned; a conflict, naming both.
        """
        writer = LayerTarWriter(sink, tree)
        for each, (uid, gid) in zip(self.sources, self.owners, strict=True):
            owner = f"files: {each.origin}"
            if each.kind == "dir":
                writer.add_directory(each.path, each.mode, uid, gid, owner=owner)
            elif each.kind == "symlink":
                writer.add_symlink(each.path, each.content, uid, gid, owner=owner)
            else:
                self._add_file(writer, each, uid, gid, owner)
        return writer.close()

    def _add_file(self, writer: LayerTarWriter, each: SourcePath, uid: int, gid: int, owner: str) -> None:
        with _readable(each.source):
            opened = each.source.open("rb")
        with opened as stream:
            if os.fstat(stream.fileno()).st_size != each.size:
                raise _changed(each)
            sha256 = writer.add_file(each.path, stream, each.size, each.mode, uid, gid, owner=owner)
        if sha256 != each.content:
            raise _changed(each)


def files_maker(sources: Sequence[SourcePath], tree: FileTree) -> FilesMaker | None:
    """The maker of the files layer; None without files.

    Args:
        sources: From :func:`scan_files`.
        tree: The file system below; owners are looked up in its passwd and group.

    Raises:
        BuildError: ``owner-unknown``.
    """
    if not sources:
        return None
    accounts = accounts_of(tree)
    ids = {
        owner: owner_ids(owner, accounts.passwd, accounts.group)
        for owner in {source.owner for source in sources}
    }
    # A directory's own attributes count as well: one that exists keeps them.
    places = [f"{source.path}/x" if source.kind == "dir" else source.path for source in sources]
    lineage = tuple(sorted({tree.lineage(place) for place in places}))
    return FilesMaker(tuple(sources), tuple(ids[source.owner] for source in sources), lineage)


def _scan(entry: FileSpec, spec_dir: Path) -> Iterator[SourcePath]:
    top = _top(entry, spec_dir)
    to = "/".join(part for part in entry.to.split("/") if part not in ("", "."))
    if top.is_dir():
        for source in _walk(top):
            name = source.relative_to(top).as_posix()
            path = to if name == "." else f"{to}/{name}" if to else name
            if path:
                yield _source(entry, source, top, path)
        return
    yield _source(entry, top, top.parent, f"{to}/{top.name}".lstrip("/") if entry.to.endswith("/") else to)


def _top(entry: FileSpec, spec_dir: Path) -> Path:
    top = spec_dir / entry.from_
    if Path(entry.from_).is_absolute() or not top.exists():
        raise SpecError(
            f"files: {entry.from_} is not there, looked for beside the spec",
            code="files-missing",
            where=str(top),
            do="Write the path relative to the spec's own folder.",
        )
    return top.resolve()


def _walk(folder: Path) -> Iterator[Path]:
    yield folder
    with _readable(folder):
        children = sorted(folder.iterdir())
    for child in children:
        if child.is_dir() and not child.is_symlink():
            yield from _walk(child)
        else:
            yield child


def _source(entry: FileSpec, source: Path, top: Path, path: str) -> SourcePath:
    check_path(path, f"files: {entry.from_}")
    with _readable(source):
        status = source.lstat()
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFDIR:
            return SourcePath(path, "dir", source, 0o755, entry.owner, "", 0, entry.from_)
        if kind == stat.S_IFLNK:
            target = str(source.readlink())
            _check_link(source, target, top)
            return SourcePath(path, "symlink", source, 0o777, entry.owner, target, 0, entry.from_)
        if kind != stat.S_IFREG:
            raise _refused(source, "is neither a file, a folder nor a link")
        mode = int(entry.mode, 8) if entry.mode else 0o755 if status.st_mode & 0o111 else 0o644
        with source.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return SourcePath(path, "file", source, mode, entry.owner, sha256, status.st_size, entry.from_)


def _check_link(source: Path, target: str, top: Path) -> None:
    """Links are kept as they are, so they must be relative and end inside what is copied."""
    if target.startswith("/"):
        raise _refused(source, f"is a link to the absolute path {target}")
    try:
        end = source.resolve()
    except RuntimeError as error:
        raise _refused(source, "is a loop of links") from error
    if end != top and top not in end.parents:
        raise _refused(source, f"is a link that leaves its folder: {target}")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Says which path could not be read."""
    try:
        yield
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from error


def _refused(source: Path, what: str) -> BuildError:
    return BuildError(
        f"{source.name} {what}",
        code="file-refused",
        where=str(source),
        do="Leave it out of what files: copies.",
    )


def _changed(each: SourcePath) -> BuildError:
    return BuildError(
        "the file changed while the image was built",
        code="file-changed",
        where=str(each.source),
        do="Run again once nothing writes to it.",
    )
