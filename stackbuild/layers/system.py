"""The system layer: the user, its group and home, the working directory and the volumes."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from stackbuild.errors import BuildError
from stackbuild.layers.accounts import User, accounts_of, with_user
from stackbuild.layers.interface import layer_key
from stackbuild.layers.tar_writer import LayerTarWriter, Sink
from stackbuild.layers.tree import Additions, Entry, FileTree
from stackbuild.spec.model import ImageSpec

_VERSION = 1
_DEFAULTS = {
    "etc/passwd": Entry("file", 0o644),
    "etc/group": Entry("file", 0o644),
    "etc/shadow": Entry("file", 0o640),
    "etc/gshadow": Entry("file", 0o640),
}


@dataclass(frozen=True)
class SystemMaker:
    """Makes the system layer.

    Attributes:
        texts: (path, new text, entry whose mode, owner and xattrs it keeps) of each account file that changes.
        directories: (path, uid, gid) of each directory that is not there yet.
        lineage: Digests of the places below which all this is written.
        summary: What it adds, in words.
    """

    texts: tuple[tuple[str, str, Entry], ...]
    directories: tuple[tuple[str, int, int], ...]
    lineage: tuple[str, ...]
    summary: str

    group = "system"

    @property
    def created_by(self) -> str:
        """One line for the image's history."""
        return f"stackbuild: {self.summary}"

    def key(self) -> str:
        """Hash of all that decides the layer's bytes."""
        texts = [[path, text, kept.mode, kept.uid, kept.gid, kept.xattrs] for path, text, kept in self.texts]
        return layer_key("system", _VERSION, [texts, self.directories, self.lineage])

    def make(self, sink: Sink, tree: FileTree) -> Additions:
        """Write the layer: the account files as edited, then the directories.

        Raises:
            BuildError: when a directory's place is taken by a file.
        """
        writer = LayerTarWriter(sink, tree)
        for path, text, kept in self.texts:
            data = text.encode("utf-8", "surrogateescape")
            writer.add_file(
                path, data, len(data), kept.mode, kept.uid, kept.gid, kept.xattrs, owner="image.user"
            )
        for path, uid, gid in self.directories:
            writer.add_directory(path, 0o755, uid, gid, owner="image")
        return writer.close()


def system_maker(image: ImageSpec, tree: FileTree) -> SystemMaker | None:
    """The maker of what the spec's ``image`` block needs in the file system.

    Home, working directory and volumes belong to the image's user; those that exist keep mode and owner.

    Args:
        image: The spec's image block.
        tree: The file system below, with the base's own account files.

    Returns:
        The maker, or None when all of it is there already.

    Raises:
        BuildError: ``uid-taken``, ``gid-taken``, ``path-escape``.
    """
    before = accounts_of(tree)
    after, user = before, None
    if image.user is not None:
        after, user = with_user(before, image.user)
    texts = tuple(
        (path, new, tree.get(path) or _DEFAULTS[path])
        for path, old, new in (
            ("etc/group", before.group, after.group),
            ("etc/gshadow", before.gshadow, after.gshadow),
            ("etc/passwd", before.passwd, after.passwd),
            ("etc/shadow", before.shadow, after.shadow),
        )
        if new is not None and new != old
    )
    directories = _missing_directories(image, user, tree)
    if not texts and not directories:
        return None
    places = [path for path, *_ in texts] + [path for path, *_ in directories]
    summary = ", ".join(
        ([f"user {user.name} ({user.uid}:{user.gid})"] if user and texts else [])
        + [f"/{path}" for path, *_ in directories]
    )
    return SystemMaker(texts, directories, tuple(tree.lineage(path) for path in places), summary)


def _missing_directories(
    image: ImageSpec, user: User | None, tree: FileTree
) -> tuple[tuple[str, int, int], ...]:
    wanted = [*image.volumes, *([image.workdir] if image.workdir else []), *([user.home] if user else [])]
    uid, gid = (user.uid, user.gid) if user else (0, 0)
    missing = set()
    for place in wanted:
        if ".." in place.split("/"):
            raise BuildError(f"the directory {place} leaves its folder", code="path-escape", where="image")
        path = posixpath.normpath(place).lstrip("/")
        resolved = tree.resolve(path, follow_last=True)
        existing = tree.get(resolved)
        if resolved and (existing is None or existing.kind != "dir"):
            missing.add(resolved)
    return tuple((path, uid, gid) for path in sorted(missing, key=lambda path: path.split("/")))
