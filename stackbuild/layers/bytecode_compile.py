"""Compiles Python sources; runs inside an image on its own Python (3.8 and newer), with nothing installed.

``bytecode_compile.py FOLDER JOB…``: each JOB is a file in FOLDER that lists sources, each ended by NUL. Each
job gets a process of its own, since what a process has compiled before can decide bytes of what it compiles
next: ``bytecode_compile.py --job PATH``. It writes PATH.made, the byte-code files; PATH.moving, those of them
whose bytes depend on where the process lies in memory; PATH.failed, the sources that do not compile.
At the end FOLDER/result.tar holds ``moving`` and ``failed`` of all jobs, then the byte-code in path order.
"""

from __future__ import annotations

import marshal
import os
import py_compile
import subprocess
import sys
import tarfile
from types import CodeType

_PYTHON = [sys.executable, "-S", "-W", "ignore"]
_HEADER = 16  # PEP 552: magic number, flags, hash
_MOVING = "--moving"


def main(arguments: list[str]) -> int:
    """Run one job, or all of them; returns the exit code."""
    if arguments[0] == "--job":
        compile_job(arguments[1], addresses_move=_MOVING in arguments)
        return 0
    folder, *jobs = arguments
    paths = [f"{folder}/{job}" for job in jobs]
    status = run_jobs(paths)
    if status == 0:
        write_result(f"{folder}/result.tar", paths)
    return status


def run_jobs(jobs: list[str]) -> int:
    """Run each job in a process of its own, as many at a time as there are processors."""
    options = [_MOVING] if addresses_move() else []
    pending = sorted(jobs, key=os.path.getsize)  # the largest first, since it decides when all are done
    running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
    while pending or running:
        while pending and len(running) < len(os.sched_getaffinity(0)):
            job = pending.pop()
            process = subprocess.Popen([*_PYTHON, __file__, "--job", job, *options])
            running[process.pid] = (job, process)
        pid, status = os.wait()
        job, process = running.pop(pid)
        process.returncode = status
        if status != 0:
            print(f"{job} ended with status {status}", flush=True)  # noqa: T201
            for _, other in running.values():
                other.kill()
                other.wait()
            return 1
    return 0


def write_result(path: str, jobs: list[str]) -> None:
    """Gather what all jobs made into one tar, so that one request takes it out of the container."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for kind in ("moving", "failed"):
            names = sorted(name for job in jobs for name in read_names(f"{job}.{kind}"))
            write_names(f"{path}.{kind}", names)
            archive.add(f"{path}.{kind}", arcname=kind)
        for name in sorted(name for job in jobs for name in read_names(f"{job}.made")):
            archive.add(name)


def addresses_move() -> bool:
    """Whether this Python lies elsewhere in memory in each process.

    Then a set with None in it (before 3.12) or Ellipsis is in another order in each: their hash is their address.
    """
    ask = [*_PYTHON, "-c", "print(hash(None), hash(...))"]
    return len({subprocess.check_output(ask) for _ in range(4)}) > 1


def compile_job(job: str, *, addresses_move: bool) -> None:
    """Compile the sources of one job in the order in which they are listed."""
    made = []
    moving = []
    failed = []
    for source in read_names(job):
        try:
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            target = str(py_compile.compile(source, doraise=True, invalidation_mode=mode))
        except py_compile.PyCompileError:
            failed.append(source)
        else:
            made.append(target)
            if addresses_move and has_moving_set(target):
                moving.append(target)
    write_names(job + ".made", made)
    write_names(job + ".moving", moving)
    write_names(job + ".failed", failed)


def has_moving_set(path: str) -> bool:
    """Whether a byte-code file has a set whose order depends on addresses."""
    with open(path, "rb") as stream:  # noqa: PTH123
        code = marshal.loads(stream.read()[_HEADER:])  # noqa: S302 - just written by this process
    return _any_moving(code)


def _any_moving(constant: object) -> bool:
    if isinstance(constant, CodeType):
        return any(_any_moving(inner) for inner in constant.co_consts)
    if isinstance(constant, frozenset):
        return len(constant) > 1 and any(_hashed_by_address(member) for member in constant)
    return isinstance(constant, tuple) and any(_any_moving(inner) for inner in constant)


def _hashed_by_address(member: object) -> bool:
    if isinstance(member, (tuple, frozenset)):
        return any(_hashed_by_address(inner) for inner in member)
    return member is Ellipsis or (member is None and sys.version_info < (3, 12))


def read_names(path: str) -> list[str]:
    """The names of a file in which each is ended by NUL."""
    with open(path, "rb") as stream:  # noqa: PTH123
        return [os.fsdecode(name) for name in stream.read().split(b"\0") if name]


def write_names(path: str, names: list[str]) -> None:
    """Write names, each ended by NUL."""
    with open(path, "wb") as stream:  # noqa: PTH123
        stream.writelines(os.fsencode(name) + b"\0" for name in names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
