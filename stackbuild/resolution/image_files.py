"""Files of an image, read without running anything in it: works for every platform and for images without a shell."""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine

_MOST_LINKS = 20


class ImageFiles:
    """Reads an image's files through a container that never starts."""

    def __init__(self, container: Container) -> None:
        self._container = container

    def read(self, path: str) -> bytes | None:
        """A regular file's content, through symbolic links; None when there is none.

        Args:
            path: Absolute path.
        """
        for _ in range(_MOST_LINKS):
            archive = self._container.get_if_there(path)
            if archive is None:
                return None
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                member = tar.next()
                if member is None:
                    return None
                if member.issym():
                    path = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.linkname))
                    continue
                content = tar.extractfile(member) if member.isreg() else None
                return content.read() if content else None
        return None

    def read_folder(self, path: str) -> dict[str, bytes]:
        """The regular files directly in a folder, by name; empty when there is no such folder."""
        archive = self._container.get_if_there(path)
        if archive is None:
            return {}
        files: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                name = member.name.partition("/")[2]
                content = tar.extractfile(member) if member.isreg() and name and "/" not in name else None
                if content:
                    files[name] = content.read()
        return files


@contextmanager
def image_files(engine: Engine, image: str) -> Iterator[ImageFiles]:
    """Open an image's files.

    Args:
        engine: The engine that has the image.
        image: Its name or id.
    """
    with engine.container(image, ["/"]) as container:
        yield ImageFiles(container)
