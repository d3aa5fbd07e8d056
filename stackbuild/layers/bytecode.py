"""Layers of byte-code: compiled by the image's own Python, the same bytes on every machine.

Only the sources go into the container. Each wheel is compiled by a process of its own with a fixed hash
seed; what still differs between two runs (docker-notes: many files on Python 3.10) is named in the lock and
left out.
"""

from __future__ import annotations

import hashlib
import shlex
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import IO

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import BuildError
from stackbuild.layers.bytecode_sources import (
    STDLIB_FOLDER,
    WHEEL_FOLDER,
    Sources,
    find_sources,
    read_sources,
)
from stackbuild.layers.container_files import WORKSHOP, last_lines, put_files, take_tar
from stackbuild.layers.interface import layer_key
from stackbuild.layers.tar_writer import LayerTarWriter, Sink
from stackbuild.layers.tree import Additions, FileTree
from stackbuild.lock.model import PythonLock

_VERSION = 1
_JOBS = f"{WORKSHOP}/jobs"
_PROGRAM = f"{WORKSHOP}/bytecode_compile.py"
_RESULT = f"{_JOBS}/result.tar"
# Seconds; only a machine that does nothing any more needs as long.
_LONGEST = 3600.0


@dataclass(frozen=True)
class Compiled:
    """What one compilation made; paths have no leading slash.

    Attributes:
        results: Each byte-code file's path, content and size in bytes, in path order, to be read one after
            the other.
        moving: Those of them whose bytes depend on where Python lies in memory, in path order.
        failed: The sources that do not compile, in path order.
    """

    results: Iterator[tuple[str, IO[bytes], int]]
    moving: tuple[str, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True)
class BytecodeMaker:
    """Makes the layer of byte-code for some layers of sources.

    Attributes:
        group: What the layer holds, for example ``torch-bytecode``.
        engine: Runs the container.
        image: Name or id of an image that has the locked Python: the base, with the debs.
        python: The locked Python.
        layers: Tars of the layers with the sources.
        layer_keys: Their keys.
        left_out: Byte-code files that are not stable, as in the lock.
        stdlib: The sources are the distribution's Python, which ``image`` has already.
    """

    group: str
    engine: Engine = field(repr=False, compare=False)
    image: str
    python: PythonLock
    layers: tuple[Path, ...]
    layer_keys: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    stdlib: bool = False

    @property
    def created_by(self) -> str:
        """One line for the image's history."""
        return (
            f"stackbuild: byte-code of Python {self.python.version}: {self.group.removesuffix('-bytecode')}"
        )

    def key(self) -> str:
        """Hash of all that decides the layer's bytes."""
        program = hashlib.sha256(_program()).hexdigest()
        python = [self.python.version, self.python.tag, self.python.executable]
        inputs = [python, program, list(self.layer_keys), self._own_left_out(), self.stdlib]
        return layer_key("bytecode", _VERSION, inputs)

    def make(self, sink: Sink, tree: FileTree) -> Additions:
        """Compile and write the byte-code that is stable.

        Args:
            sink: Takes the tar.
            tree: The file system below, with the sources' layers.

        Raises:
            BuildError: ``bytecode-failed`` when Python itself fails; a source that does not compile is no error.
        """
        writer = LayerTarWriter(sink, tree)
        left_out = set(self.left_out)
        with self.compiled() as compiled:
            for path, content, size in compiled.results:
                if path not in left_out:
                    writer.add_file(path, content, size, 0o644)
        return writer.close()

    def _own_left_out(self) -> list[str]:
        """Those of ``left_out`` that come from these layers: what others leave out does not move the key."""
        if not self.left_out:
            return []
        folder = STDLIB_FOLDER if self.stdlib else WHEEL_FOLDER
        jobs = find_sources(self.layers, folder, links=self.stdlib).jobs
        own = {source for _, sources in jobs for source in sources}
        return sorted(path for path in set(self.left_out) if _source_of(path) in own)

    @contextmanager
    def compiled(self) -> Iterator[Compiled]:
        """Compile in a container that lasts as long as the block."""
        folder = STDLIB_FOLDER if self.stdlib else WHEEL_FOLDER
        sources = find_sources(self.layers, folder, links=self.stdlib)
        if not sources.count:
            yield Compiled(iter(()), (), ())
            return
        command, files_ = _job_files(self.python, sources)
        if not self.stdlib:
            files_ = chain(files_, read_sources(self.layers, folder))
        # The program is the container's own process: each request saved counts after a leaf change.
        with self.engine.container(
            self.image, command, network="none", environment={}, user="0:0", workdir="/"
        ) as container:
            put_files(container, files_)
            container.start()
            if container.wait(_LONGEST) != 0:
                raise _failed(command, container)
            with take_tar(container, _RESULT) as members:
                yield Compiled(*_read_result(members))


def unstable_bytecode(maker: BytecodeMaker) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compile twice and compare.

    Args:
        maker: Names the sources; its ``left_out`` is not looked at.

    Returns:
        The byte-code files that differ between the runs, or could by where Python lies in memory; and the
        sources that do not compile. Both in path order without leading slash.
    """
    runs = []
    unstable: set[str] = set()
    failures: set[str] = set()
    for _ in range(2):
        with maker.compiled() as compiled:
            runs.append(
                {path: hashlib.sha256(content.read()).hexdigest() for path, content, _ in compiled.results}
            )
            unstable.update(compiled.moving)
            failures.update(compiled.failed)
    first, second = runs
    unstable.update(path for path in {*first, *second} if first.get(path) != second.get(path))
    return tuple(sorted(unstable)), tuple(sorted(failures))


def _source_of(bytecode: str) -> str:
    """The source of a byte-code file: ``x/__pycache__/y.cpython-311.pyc`` comes from ``x/y.py`` (PEP 3147)."""
    folder, _, name = bytecode.rpartition("/")
    return f"{folder.removesuffix('__pycache__')}{name.removesuffix('.pyc').rpartition('.')[0]}.py"


def _program() -> bytes:
    return files("stackbuild.layers").joinpath("bytecode_compile.py").read_bytes()


def _job_files(python: PythonLock, sources: Sources) -> tuple[list[str], Iterator[tuple[str, bytes | Path]]]:
    """The command that compiles, and the files it needs beside the sources."""
    jobs = {f"{number:04}": paths for number, (_, paths) in enumerate(sources.jobs)}
    lists = [(f"{_JOBS}/{job}", _names(f"/{path}" for path in paths)) for job, paths in jobs.items()]
    # A closed environment: no PYTHON* variable of the image has a say in the bytes.
    environment = ["env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "PYTHONHASHSEED=0"]
    command = [*environment, python.executable, "-S", "-W", "ignore", _PROGRAM, _JOBS, *jobs]
    return command, iter([(_PROGRAM, _program()), *lists])


def _failed(command: list[str], container: Container) -> BuildError:
    return BuildError(
        "the image's Python could not compile the installed packages",
        code="bytecode-failed",
        where=shlex.join(command[: command.index(_PROGRAM)]),
        detail=last_lines(container.logs().decode(errors="replace")),
        do="See the lines above; free memory or disk space if that is what they say.",
    )


def _names(names: Iterator[str]) -> bytes:
    return "".join(f"{name}\0" for name in names).encode("utf-8", "surrogateescape")


def _read_result(
    members: Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]],
) -> tuple[Iterator[tuple[str, IO[bytes], int]], tuple[str, ...], tuple[str, ...]]:
    """The byte-code still to be read, and the two lists that stand before it."""
    lists = [_all_names(content) for _, content in islice(members, 2)]
    results = ((member.name, content, member.size) for member, content in members if content is not None)
    return results, lists[0], lists[1]


def _all_names(content: IO[bytes] | None) -> tuple[str, ...]:
    text = content.read().decode("utf-8", "surrogateescape") if content is not None else ""
    return tuple(name.lstrip("/") for name in text.split("\0") if name)
