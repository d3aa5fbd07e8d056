"""Asking this machine: the port, and the adapter that really asks. Every question has a time limit."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Protocol, TypeVar

from stackbuild.engine.models import EngineInfo
from stackbuild.errors import StackbuildError
from stackbuild.host.nvml import NvmlAnswer, read_nvml

T = TypeVar("T")

_LIMIT = 5.0  # seconds; a tool that is well answers in one
_GRACE = 1.0  # seconds for a tool to end once it has said everything, or once it is killed
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool said: its output (stdout and stderr), and what was wrong with it, as a clause."""

    output: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """The engine, or why none answers."""

    info: EngineInfo | None = None
    problem: str = ""
    remote: str = ""  # where it is, when it is not on this machine


@dataclass(frozen=True, slots=True)
class Platform:
    """What Python itself knows of the machine."""

    system: str  # Linux, Darwin, Windows
    release: str
    version: str  # of macOS or Windows
    machine: str
    node: str
    python: str
    libc: str = ""  # for example "glibc 2.36"
    processor: str = ""
    processors: int = 0


class Probe(Protocol):
    """What an inventory asks. Nothing of it raises: what cannot be answered is None or says its problem."""

    def platform(self) -> Platform:
        """What Python knows."""
        ...

    def read(self, path: str) -> str | None:
        """A small file's text; None when it is not there or not readable."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is such a file, folder or device."""
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder, sorted; none when it is not there."""
        ...

    def run(self, *argv: str) -> Answer | None:
        """Run a tool; None when it is not installed."""
        ...

    def nvml(self) -> NvmlAnswer:
        """What the driver's management library says."""
        ...

    def engine(self) -> EngineAnswer:
        """What the Docker engine says."""
        ...

    def package(self, name: str) -> str | None:
        """The version of a package of this Python, without importing it."""
        ...


class SystemProbe:
    """Asks the machine it runs on."""

    def __init__(self, *, limit: float = _LIMIT) -> None:
        self._limit = limit

    def platform(self) -> Platform:
        """What Python knows."""
        libc = ""
        if sys.platform == "linux":
            with contextlib.suppress(ValueError, OSError):  # musl knows no such name
                libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
        system = platform.system()
        return Platform(
            system=system,
            release=platform.release(),
            version=platform.mac_ver()[0] if system == "Darwin" else platform.version(),
            machine=platform.machine(),
            node=platform.node().split(".")[0],
            python=platform.python_version(),
            libc=libc,
            processor=platform.processor() if system != "Linux" else "",
            processors=os.cpu_count() or 0,
        )

    def read(self, path: str) -> str | None:
        """A small file's text; None when it is not there or not readable."""
        try:
            with Path(path).open("rb") as stream:
                return stream.read(_MOST_BYTES).decode(errors="replace")
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether there is such a file, folder or device."""
        return os.path.lexists(path)

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder, sorted."""
        try:
            return tuple(sorted(entry.name for entry in Path(folder).iterdir()))
        except OSError:
            return ()

    def run(self, *argv: str) -> Answer | None:
        """Run a tool; None when it is not installed."""
        program = shutil.which(argv[0])
        if program is None:
            return None
        try:
            process = subprocess.Popen(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
            )
        except OSError as error:
            return Answer(problem=f"does not start: {error.strerror or error}")
        # A thread, since a tool may print without end, or leave a child that keeps the pipe open.
        output, late = limited(partial(_output, process), self._limit)
        if late or _exit_code(process, _GRACE) is None:
            _kill(process)
            _exit_code(process, _GRACE)
            return Answer(problem=f"did not answer in {self._limit:g} s")
        shown = (output or b"").decode(errors="replace")
        return Answer(shown, f"ended with exit code {process.returncode}" if process.returncode else "")

    def nvml(self) -> NvmlAnswer:
        """What the driver's management library says."""
        answer, late = limited(read_nvml, self._limit)
        if late or answer is None:
            return NvmlAnswer(problem=f"NVML did not answer in {self._limit:g} s")
        return answer

    def engine(self) -> EngineAnswer:
        """What the Docker engine says."""
        address = os.environ.get("DOCKER_HOST", "")
        remote = address if address and not address.startswith(("unix:", "npipe:")) else ""
        answer, late = limited(_engine_info, self._limit)
        if late or answer is None:
            return EngineAnswer(
                problem=f"the Docker engine did not answer in {self._limit:g} s", remote=remote
            )
        return EngineAnswer(answer.info, answer.problem, remote)

    def package(self, name: str) -> str | None:
        """The version of a package of this Python, without importing it."""
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return None


def limited(function: Callable[[], T], seconds: float) -> tuple[T | None, bool]:
    """Call a function in a thread of its own; returns its result and whether it was too late.

    What it raises in time is raised here. A function that hangs in a system call cannot be ended: its thread
    is left behind and ends with the process.
    """
    outcome: Future[T] = Future()

    def call() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            outcome.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    try:
        return outcome.result(seconds), False
    except FutureTimeoutError:
        if outcome.done():  # the function's own TimeoutError
            raise
        return None, True


def _output(process: subprocess.Popen[bytes]) -> bytes:
    if process.stdout is None:
        return b""
    with process.stdout as stream:
        return stream.read(_MOST_BYTES)


def _engine_info() -> EngineAnswer:
    from stackbuild.engine.docker_engine import Engine

    try:
        with Engine.connect() as engine:
            return EngineAnswer(engine.info())
    except StackbuildError as error:
        return EngineAnswer(problem=error.what.rstrip("."))


def _exit_code(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a tool and its children."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
