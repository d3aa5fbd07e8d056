"""Several commands at a time, a process each: one that fails or hangs takes nothing from the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from stackbuild.cli.main import WITH_PARENT
from stackbuild.cli.output import talk


@dataclass(frozen=True)
class Task:
    """One command.

    Attributes:
        name: What its words on stderr are told with.
        arguments: Of ``stackbuild``.
    """

    name: str
    arguments: tuple[str, ...]


def run_processes(
    tasks: Sequence[Task],
    jobs: int,
    done: Callable[[Task, str, int], None],
    *,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Run commands in processes of their own, and tell of each as it ends.

    Args:
        tasks: The commands.
        jobs: Processes at a time.
        done: Called from threads with the task, its stdout and its exit code.
        stop: Asked before each is begun; True begins no further one.

    Raises:
        KeyboardInterrupt: The person stopped the run; those that had begun were stopped, and told of, too.
    """
    running: set[subprocess.Popen[str]] = set()
    guard, stopped = threading.Lock(), threading.Event()

    def run(task: Task) -> None:
        with guard:
            if stopped.is_set() or stop():
                return
            # A session of its own: an interrupt reaches it once, from here. That this process was killed it
            # learns from the end of its stdin.
            process = subprocess.Popen(
                [sys.executable, "-m", "stackbuild.cli.main", *task.arguments],
                env={**os.environ, WITH_PARENT: "1", "PYTHONIOENCODING": "utf-8"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                # A name that is no UTF-8 must not end the reading: the process would wait for it for ever.
                errors="replace",
                start_new_session=True,
            )
            running.add(process)
        teller = threading.Thread(target=_tell, args=(task.name, process), daemon=True)
        teller.start()
        result = process.stdout.read() if process.stdout else ""
        code = process.wait()
        teller.join()
        if process.stdin:
            process.stdin.close()
        with guard:
            running.discard(process)
        done(task, result, code)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = [pool.submit(run, task) for task in tasks]
            for future in futures:
                future.result()
        except KeyboardInterrupt:
            with guard:
                stopped.set()
                for process in running:
                    process.send_signal(signal.SIGINT)
            raise  # the pool waits for the processes to clean up


def _tell(name: str, process: subprocess.Popen[str]) -> None:
    for line in process.stderr or ():
        talk(f"{name}: {line.rstrip()}")
