"""Asks the engine whether it would give a container the GPUs, before anything else is done."""

from __future__ import annotations

from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import NotJudgedError
from stackbuild.verification.injection import Injected
from stackbuild.verification.launch import NO_PROGRAM

# Devices are handed over before the program is looked for, so a program that is not there is the answer yes.
_NOWHERE = "/run/stackbuild/no-such-program"
REFUSALS = ("container-start-failed", "engine-refused")


def refusal(engine: Engine, image: ImageInfo, asked: Injected) -> str:
    """The engine's words when it refuses the GPUs; empty when it gives them.

    Raises:
        NotJudgedError: The engine died.
    """
    try:
        with engine.container(
            image.id,
            [_NOWHERE],
            device_requests=asked.device_requests,
            runtime=asked.runtime,
            environment=asked.environment,
        ) as container:
            container.start()
    except NotJudgedError as error:
        if error.code not in REFUSALS:
            raise
        return "" if NO_PROGRAM.search(error.detail) else error.detail or error.what
    return ""
