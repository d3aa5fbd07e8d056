"""Runs the suite in a container of the image; nothing is left behind on any path."""

from __future__ import annotations

import io
import re
import tarfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo, Mount
from stackbuild.errors import NotJudgedError
from stackbuild.progress import Observer
from stackbuild.verification.files import SUITE_FOLDER
from stackbuild.verification.injection import Injected
from stackbuild.verification.model import SuiteRun
from stackbuild.verification.plan import RESULTS_FOLDER
from stackbuild.verification.suite_output import SuiteOutput

ARCHIVE_NAME = "suite.pyz"
PLAN_NAME = "plan.json"
# Where to look for an interpreter that nobody promised: PATH first, then places that images use without it.
# `python` comes before `python3`: an environment that is first on PATH has it, the distribution has not.
INTERPRETERS = (
    "python",
    "python3",
    "/opt/venv/bin/python",
    "/opt/conda/bin/python",
    "/usr/local/bin/python3",
)
_RESULTS_OPTIONS = "rw,size=256m,mode=1777"
# How the OCI runtimes word a program that is not there or cannot be run.
NO_PROGRAM = re.compile(
    r"executable file not found|exec: .*(no such file or directory|permission denied|is a directory)", re.S
)
_EXIT_TIMEOUT = 30.0


@dataclass(frozen=True)
class LaunchOptions:
    """How the container is run.

    ``user`` is the image's own when None; ``limit`` is in seconds, for the whole run; ``shm_size`` is bytes or
    for example ``1g``; with ``read_only`` the root file system is, and /tmp is in memory.
    """

    interpreters: tuple[str, ...] = INTERPRETERS
    injected: Injected = field(default_factory=Injected)
    user: str | None = None
    shm_size: str | None = None
    ulimits: Mapping[str, int] = field(default_factory=dict)
    read_only: bool = False
    limit: float = 900.0


def run_suite(
    engine: Engine,
    image: ImageInfo,
    files: Mapping[str, bytes],
    options: LaunchOptions,
    observer: Observer,
) -> SuiteRun:
    """Run the suite and collect its results as they come.

    The suite lies on a volume that a helper container of the same image fills and the real one mounts
    read-only; the image's entrypoint is overridden, its user kept, and there is no network.

    Args:
        engine: The engine that has the image.
        image: The image.
        files: Name → content of what goes to the suite's folder: archive, plan, models.
        options: How to run it.
        observer: Told of each gate as it begins.

    Raises:
        NotJudgedError: The engine died, or refused the container for a reason that is not a missing
            interpreter (``container-start-failed``; the engine's words are its ``detail``).
    """
    tried: list[str] = []
    too_old: SuiteRun | None = None  # `python` may be 2.7 where python3 is new enough
    with engine.volume() as volume:
        fill_volume(engine, image, volume, files)
        for interpreter in options.interpreters:
            with ExitStack() as stack:
                container = stack.enter_context(
                    container_under_test(engine, image, _command(interpreter), volume, options)
                )
                chunks = container.attach()
                try:
                    container.start()
                except NotJudgedError as error:
                    if not NO_PROGRAM.search(error.detail):
                        raise
                    tried.append(interpreter)
                    continue
                output = SuiteOutput(lambda name: observer.stage("verify", name))
                timed_out = _read(container, chunks, output, options.limit)
                run = _collected(container, output, tuple(tried), timed_out, options.limit)
                if not run.python_too_old:
                    return run
                too_old = too_old or run
    return too_old or SuiteRun(tried=tuple(tried), limit=options.limit)


def _command(interpreter: str) -> Sequence[str]:
    # -B: no byte-code is written; -u: results come as they are made.
    archive, plan = f"{SUITE_FOLDER}/{ARCHIVE_NAME}", f"{SUITE_FOLDER}/{PLAN_NAME}"
    return [interpreter, "-B", "-u", archive, plan, RESULTS_FOLDER]


def container_under_test(
    engine: Engine,
    image: ImageInfo,
    command: Sequence[str],
    volume: str,
    options: LaunchOptions,
    *,
    entrypoint: Sequence[str] | None = (),
    environment: Mapping[str, str] | None = None,
) -> AbstractContextManager[Container]:
    """A container of the image as the options say, without network, with the suite's folder read-only.

    Args:
        engine: The engine that has the image.
        image: The image.
        command: What to run.
        volume: Holds the suite.
        options: How to run it.
        entrypoint: None for the image's own.
        environment: Beside what the injection of devices sets.
    """
    return engine.container(
        image.id,
        command,
        entrypoint=entrypoint,
        mounts=[Mount(volume, SUITE_FOLDER)],
        tmpfs=_memory_folders(options),
        user=options.user,
        shm_size=options.shm_size,
        ulimits=options.ulimits,
        read_only=options.read_only,
        device_requests=options.injected.device_requests,
        runtime=options.injected.runtime,
        environment={**options.injected.environment, **(environment or {})},
    )


def _memory_folders(options: LaunchOptions) -> Mapping[str, str]:
    """The folders of the container that are in memory: path → mount options."""
    folders = {RESULTS_FOLDER: _RESULTS_OPTIONS}
    return {**folders, "/tmp": "rw,mode=1777"} if options.read_only else folders  # noqa: S108 - in the container


def fill_volume(engine: Engine, image: ImageInfo, volume: str, files: Mapping[str, bytes]) -> None:
    """Put files on a volume through a container of the image that never starts."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    # The helper never starts, so its command does not matter; an empty one is refused.
    with engine.container(image.id, ["/"], mounts=[Mount(volume, SUITE_FOLDER, read_only=False)]) as helper:
        helper.put(SUITE_FOLDER, raw.getvalue())


def _read(
    container: Container, chunks: Iterable[tuple[bytes, bytes]], output: SuiteOutput, limit: float
) -> bool:
    """Read until the container ends; True when it had to be ended because the limit was past."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        with suppress(NotJudgedError):  # whoever reads the output meets an engine that is gone, too
            container.kill()

    timer = threading.Timer(limit, expire)
    timer.daemon = True
    timer.start()
    try:
        for stdout, stderr in chunks:
            output.feed(stdout, stderr)
    finally:
        timer.cancel()
    output.close()
    return expired.is_set()


def _collected(
    container: Container, output: SuiteOutput, tried: tuple[str, ...], timed_out: bool, limit: float
) -> SuiteRun:
    return SuiteRun(
        results=output.results,
        python=output.python,
        python_too_old=output.python_too_old,
        finished=output.finished,
        timed_out=timed_out,
        limit=limit,
        exit_code=container.wait(_EXIT_TIMEOUT),
        out_of_memory=container.out_of_memory(),
        tried=tried,
        log=output.log,
        log_bytes=output.log_bytes,
    )
