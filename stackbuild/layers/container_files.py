"""Files into and out of a container whose programs make a layer."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import BuildError
from stackbuild.layers.tar_writer import MTIME

# Everything a maker puts into a container for its own use; never in a layer.
WORKSHOP = "/.stackbuild"

_CHUNK = 1 << 20
_MEMBER_LIST = f"{WORKSHOP}/members"
_MEMBERS = f"{WORKSHOP}/members.tar"


@contextmanager
def workshop(engine: Engine, image: str, environment: Mapping[str, str]) -> Iterator[Container]:
    """A started container of ``image`` without network, as root, that idles; removed at the end.

    Args:
        engine: The engine.
        image: Name or id of an image with coreutils and GNU tar.
        environment: Added to the image's.
    """
    with engine.container(
        image, ["sleep", "infinity"], network="none", environment=environment, user="0:0", workdir="/"
    ) as container:
        container.start()
        yield container


def put_files(container: Container, files: Iterable[tuple[str, bytes | Path]]) -> None:
    """Put files at absolute paths; folders above them are made, large files are streamed."""
    container.put("/", tar_stream(files))


def tar_stream(files: Iterable[tuple[str, bytes | Path]]) -> Iterator[bytes]:
    """A tar of files, made while it is read: never more than one block of a file is in memory.

    Args:
        files: Absolute path, and content or the file that has it.
    """
    for path, content in files:
        header = tarfile.TarInfo(path.lstrip("/"))
        header.mode, header.mtime = 0o644, MTIME
        if isinstance(content, bytes):
            header.size = len(content)
            yield header.tobuf(tarfile.PAX_FORMAT)
            yield content
        else:
            header.size = content.stat().st_size
            yield header.tobuf(tarfile.PAX_FORMAT)
            with content.open("rb") as source:
                while block := source.read(_CHUNK):
                    yield block
        yield bytes(-header.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def take_members(
    container: Container, paths: Sequence[str]
) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """The given paths of a container in the given order, with modes, owners, xattrs and hard links.

    Args:
        container: A running container with GNU tar.
        paths: Without leading slash; a directory stands for itself alone.

    Yields:
        Each member, and its content where it is a file; read the content before the next member.

    Raises:
        BuildError: ``container-tar-failed``.
    """
    put_files(container, [(_MEMBER_LIST, "\0".join(paths).encode("utf-8", "surrogateescape"))])
    done = container.exec(
        [
            *("tar", "--create", f"--file={_MEMBERS}", "--directory=/", "--format=posix", "--no-recursion"),
            # Plain tar drops file capabilities (docker-notes, "Traps").
            *("--numeric-owner", "--xattrs", "--xattrs-include=*"),
            *("--null", "--verbatim-files-from", f"--files-from={_MEMBER_LIST}"),
        ],
        environment={"LC_ALL": "C"},
    )
    if done.exit_code != 0:
        raise BuildError(
            "the files that were made could not be taken out of the container",
            code="container-tar-failed",
            detail=last_lines(done.text),
            do="Free disk space of the engine if that is what the lines above say; else run again.",
        )
    with take_tar(container, _MEMBERS) as members:
        yield from members


def last_lines(text: str, count: int = 15) -> str:
    """The last lines of a program's output that are not blank."""
    return "\n".join([line for line in text.splitlines() if line.strip()][-count:])


@contextmanager
def take_tar(container: Container, path: str) -> Iterator[Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]]:
    """The members of a tar that lies in a container, read as they arrive.

    Args:
        container: It may have ended.
        path: The tar's absolute path.

    Yields:
        Each member, and its content where it is a file; read the content before the next member.
    """
    with _opened(container, path) as outer:
        yield _members(outer)


def _members(outer: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    # The engine wraps the tar in a tar of its own.
    for holder in outer:
        content = outer.extractfile(holder)
        if content is None:
            continue
        with tarfile.open(fileobj=content, mode="r|") as inner:
            for member in inner:
                yield member, inner.extractfile(member) if member.isreg() else None


@contextmanager
def _opened(container: Container, path: str) -> Iterator[tarfile.TarFile]:
    chunks = container.get(path)
    with tarfile.open(fileobj=_Chunks(chunks), mode="r|") as archive:
        yield archive


class _Chunks(io.RawIOBase):
    """A stream of chunks as a file that ``tarfile`` can read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Exactly ``size`` bytes while there are as many."""
        parts = []
        while size:
            if not self._rest:
                self._rest = memoryview(next(self._chunks, b""))
                if not self._rest:
                    break
            part = self._rest if size < 0 else self._rest[:size]
            self._rest = self._rest[len(part) :]
            parts.append(part)
            size -= len(part) if size > 0 else 0
        return b"".join(parts)
