"""Compiles Python sources; runs inside an image on its own Python (3.8 and newer), with nothing installed.

``bytecode_compile.py FOLDER JOB…``: each JOB is a file in FOLDER that lists sources, each ended by NUL. Each job gets a
process of its own, since what a process has compiled before can decide bytes of what it compiles next.
``bytecode_compile.py JOB`` is such a process: it writes JOB.made, the byte-code files, and JOB.failed, the sources that do
not compile.
"""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys


def main(arguments: list[str]) -> int:
    """Run one job, or all of them; returns the exit code."""
    if len(arguments) == 1:
        compile_job(arguments[0])
        return 0
    folder, *jobs = arguments
    return run_jobs([f"{folder}/{job}" for job in jobs])


def run_jobs(jobs: list[str]) -> int:
    """Run each job in a process of its own, as many at a time as there are processors."""
    pending = sorted(jobs, key=os.path.getsize)  # the largest first, since it decides when all are done
    running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
    while pending or running:
        while pending and len(running) < len(os.sched_getaffinity(0)):
            job = pending.pop()
            process = subprocess.Popen([sys.executable, "-S", "-W", "ignore", __file__, job])
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


def compile_job(job: str) -> None:
    """Compile the sources of one job in the order in which they are listed."""
    made = []
    failed = []
    for source in read_names(job):
        try:
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            target = py_compile.compile(source, doraise=True, invalidation_mode=mode)
        except py_compile.PyCompileError:
            failed.append(source)
        else:
            made.append(str(target))
    write_names(job + ".made", made)
    write_names(job + ".failed", failed)


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
