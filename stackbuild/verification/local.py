"""Runs the suite in a Python of this machine: it judges an environment, and says nothing of any image."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from stackbuild.errors import UsageError
from stackbuild.progress import Observer
from stackbuild.store.scratch import scratch_folder
from stackbuild.verification.elsewhere import suite_arguments
from stackbuild.verification.files import SUITE_FOLDER, stack_files
from stackbuild.verification.judge.run import judge_run
from stackbuild.verification.launch import ARCHIVE_NAME, PLAN_NAME
from stackbuild.verification.model import HostBasics, JudgedImage, SuiteRun, VerificationReport
from stackbuild.verification.options import VerifyOptions
from stackbuild.verification.plan import RESULTS_FOLDER, PlannedGate, plan_bytes, plan_gates
from stackbuild.verification.promise import Promise
from stackbuild.verification.report import Circumstances, verification_report
from stackbuild.verification.suite_archive import suite_archive
from stackbuild.verification.suite_output import SuiteOutput
from stackbuild.verification.surroundings import Surroundings
from stackbuild.verification.verify import refuse_unknown

_READ_SIZE = 65536


def verify_environment(
    python: Path, promise: Promise, options: VerifyOptions, observer: Observer
) -> VerificationReport:
    """Run the suite in an environment and judge it against a promise.

    Args:
        python: The environment's interpreter.
        promise: What it must keep; what an image would add, such as its user, is not asked of it.
        options: GPUs (those that are there: nothing is reserved), selection, limit.
        observer: Told of each gate as it begins.

    Returns:
        The report, which says that no image was judged.

    Raises:
        UsageError: ``no-such-gate``, ``python-not-found``.
        LockError: A file of the stack changed meanwhile.
    """
    refuse_unknown(options.gates)
    began, clock = datetime.now(UTC), time.monotonic()
    run = _run(python, promise, options, observer)
    findings = judge_run(promise, run, Surroundings(gpus=options.gpus, card=options.card))
    host = HostBasics(engine="", architecture=platform.machine(), kernel=platform.release())
    circumstances = Circumstances(
        ran="local",
        host=host,
        card=options.card,
        gpus=str(options.gpus),
        started=began,
        seconds=time.monotonic() - clock,
    )
    subject = JudgedImage(reference=str(python), id="", platform=promise.platform)
    return verification_report(subject, promise, run, findings, circumstances, options.gates)


def relocated(gates: Iterable[PlannedGate], suite: str, results: str) -> tuple[PlannedGate, ...]:
    """The gates with the container's two folders elsewhere.

    Args:
        gates: As planned for a container.
        suite: The suite's folder.
        results: Where gates may write.
    """

    def moved(value: object) -> object:
        if not isinstance(value, str):
            return value
        for folder, here in ((SUITE_FOLDER, suite), (RESULTS_FOLDER, results)):
            if value == folder or value.startswith(f"{folder}/"):
                return here + value[len(folder) :]
        return value

    return tuple(
        replace(gate, options={name: moved(value) for name, value in gate.options.items()}) for gate in gates
    )


def _run(python: Path, promise: Promise, options: VerifyOptions, observer: Observer) -> SuiteRun:
    with scratch_folder() as scratch:
        folder = str(scratch.path)
        suite, results = scratch.path / "suite", scratch.path / "results"
        suite.mkdir()
        results.mkdir()
        gates = relocated(plan_gates(promise, options.gpus), str(suite), str(results))
        files = {ARCHIVE_NAME: suite_archive(), PLAN_NAME: plan_bytes(gates), **stack_files(promise)}
        for name, content in files.items():
            (suite / name).write_bytes(content)
        output = SuiteOutput(lambda name: observer.stage("verify", name))
        command = [str(python), *suite_arguments(str(suite), str(results))]
        exit_code, timed_out = _stream(command, folder, output, options.limit)
        return SuiteRun(
            results=output.results,
            python=output.python,
            python_too_old=output.python_too_old,
            finished=output.finished,
            timed_out=timed_out,
            limit=options.limit,
            exit_code=exit_code,
            log=output.log,
            log_bytes=output.log_bytes,
        )


def _stream(command: Sequence[str], folder: str, output: SuiteOutput, limit: float) -> tuple[int, bool]:
    """Run to the end or the limit; returns the exit code, and whether it was the limit. Leaves no process behind."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise UsageError(
            f"This interpreter does not start: {error.strerror}.",
            code="python-not-found",
            where=command[0],
            do="Name the environment's own interpreter with --python.",
        ) from error
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _end(process)

    timer = threading.Timer(limit, expire)
    timer.daemon = True
    timer.start()
    assert process.stdout is not None
    try:
        with process.stdout as stream:
            while chunk := stream.read1(_READ_SIZE):  # type: ignore[attr-defined] # it is a BufferedReader
                output.feed(chunk)
    finally:
        timer.cancel()
        timer.join()
        _end(process)
    output.close()
    return process.wait(), expired.is_set()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the suite with all of its session that still lives.

    Also where the suite itself has ended: what it left behind keeps its output open. Nobody has waited for it
    yet, so the number of its session is still its own.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
