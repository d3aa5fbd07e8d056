"""Starts the image as the service it is, and has the suite ask it from inside."""

from __future__ import annotations

import json

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import NotJudgedError
from stackbuild.progress import Observer
from stackbuild.verification.files import SERVICE_REQUEST, SUITE_FOLDER, stack_files
from stackbuild.verification.launch import (
    ARCHIVE_NAME,
    INTERPRETERS,
    LaunchOptions,
    container_under_test,
    fill_volume,
)
from stackbuild.verification.model import GateResult, SuiteRun
from stackbuild.verification.promise import Promise, PromisedService
from stackbuild.verification.suite_archive import suite_archive
from stackbuild.verification.suite_output import SuiteOutput

_NAME = "service"
_PLAN = "service.json"
_SERVICE_FLAG = "--service"
# Beside the time to become ready, for all the requests.
_REQUESTS_LIMIT = 300.0
_EXIT_TIMEOUT = 3.0
_LOG_KEPT = 16_000
_GONE = ("engine-refused", "container-start-failed", "container-ended")


def ask_service(
    engine: Engine,
    image: ImageInfo,
    promise: Promise,
    options: LaunchOptions,
    run: SuiteRun,
    observer: Observer,
) -> GateResult:
    """Start the image with its own entrypoint, wait for it, replay the recorded request.

    There is no network: the suite asks from inside the same container, on its loopback.

    Args:
        engine: The engine.
        image: The image.
        promise: With a service.
        options: As the suite was run.
        run: The suite's run, which tells the interpreter that works.
        observer: Told that it begins.

    Returns:
        The measurement of the gate ``service``; ``crashed`` when the container ended by itself.
    """
    asked = promise.service
    assert asked is not None
    observer.stage("verify", _NAME)
    files = {ARCHIVE_NAME: suite_archive(), _PLAN: _plan(promise, asked), **stack_files(promise)}
    with engine.volume() as volume:
        fill_volume(engine, image, volume, files)
        with container_under_test(
            engine, image, [], volume, options, entrypoint=None, environment=asked.service.environment
        ) as container:
            return _ask(container, _command(promise, run), asked.service.ready_within + _REQUESTS_LIMIT)


def _ask(container: Container, command: list[str], limit: float) -> GateResult:
    output = SuiteOutput()
    try:
        container.start()
        done = container.exec(command, limit=limit)
    except NotJudgedError as error:
        if error.code == "step-timeout":
            return GateResult(name=_NAME, outcome="hung", limit=limit, output=_log(container))
        if error.code not in _GONE:
            raise
        return _ended(container, error.detail)
    output.feed(done.output)
    output.close()
    result = output.results.get(_NAME)
    if result is None:
        # An entrypoint that ends takes what runs beside it along.
        return _ended(container, output.log)
    return result.model_copy(update={"output": _log(container)})


def _ended(container: Container, words: str) -> GateResult:
    log = _log(container) or words
    try:
        exit_code = container.wait(_EXIT_TIMEOUT)
    except NotJudgedError as error:
        if error.code != "verify-timeout":
            raise
        # The service runs, and what was to ask it did not.
        return GateResult(name=_NAME, outcome="garbled", reason=words or "nothing was asked", output=log)
    return GateResult(name=_NAME, outcome="crashed", exit_code=exit_code, output=log, output_bytes=len(log))


def _log(container: Container) -> str:
    return container.logs().decode("utf-8", "replace")[-_LOG_KEPT:]


def _command(promise: Promise, run: SuiteRun) -> list[str]:
    interpreter = promise.python_executable or INTERPRETERS[len(run.tried)]
    return [interpreter, "-B", f"{SUITE_FOLDER}/{ARCHIVE_NAME}", _SERVICE_FLAG, f"{SUITE_FOLDER}/{_PLAN}"]


def _plan(promise: Promise, asked: PromisedService) -> bytes:
    fields = asked.service.model_dump(exclude={"environment", "request", "answer", "tolerance", "latency"})
    request = f"{SUITE_FOLDER}/{SERVICE_REQUEST}" if asked.request is not None else ""
    return json.dumps({**fields, "request_file": request, "concurrency": promise.concurrency}).encode()
