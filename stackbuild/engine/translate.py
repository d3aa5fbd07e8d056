"""Docker's failures in our words: which are the image's, which the engine's (DESIGN §3.8)."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager

import docker.errors
import requests.exceptions
import urllib3.exceptions

from stackbuild.errors import BuildError, NotJudgedError, StackbuildError, UsageError

_CONNECTION_LOST = (
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    ConnectionError,
)


def is_disk_full(message: str) -> bool:
    """True when an engine's message says that its disk, or its inodes or quota, are used up."""
    lowered = message.lower()
    return "no space left on device" in lowered or "disk quota exceeded" in lowered


def disk_full(where: str, detail: str = "") -> BuildError:
    """The error for a full disk of the engine."""
    return BuildError(
        "The disk of the Docker engine is full.",
        code="disk-full",
        where=where,
        detail=detail,
        do="Free some space there (docker system df shows what takes it), then run the same command again.",
    )


def engine_died(action: str, detail: str = "") -> NotJudgedError:
    """The error for an engine that stopped answering in the middle of ``action``."""
    return NotJudgedError(
        f"The Docker engine stopped answering while it was to {action}.",
        code="engine-died",
        detail=detail,
        do="See whether it still runs (docker info, and its log), then run the same command again.",
    )


def from_api_message(action: str, message: str) -> StackbuildError:
    """The error for a request that the engine refused with ``message``."""
    if is_disk_full(message):
        return disk_full("", message)
    if "invalid reference format" in message:
        return _bad_image_name(action, message.strip())
    return NotJudgedError(
        f"The Docker engine could not {action}.", code="engine-refused", detail=message.strip()
    )


def _bad_image_name(action: str, detail: str) -> UsageError:
    return UsageError(
        f"The Docker engine could not {action}: that is not the name of an image.",
        code="bad-image-name",
        detail=detail,
        do="Write it as REPOSITORY[:TAG], in lower case, such as demo-cpu:latest.",
    )


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Raise our errors in place of docker-py's.

    Args:
        action: What the engine is asked to do, as a verb phrase: "load the image".

    Raises:
        UsageError: ``bad-image-name``.
        BuildError: ``disk-full``.
        NotJudgedError: ``engine-died`` when the connection broke, ``engine-refused`` otherwise.
    """
    try:
        yield
    except docker.errors.APIError as error:
        raise from_api_message(action, str(error.explanation or error)) from error
    except docker.errors.NullResource as error:  # docker-py asks nothing for an empty name
        raise _bad_image_name(action, "the name is empty") from error
    except docker.errors.DockerException as error:
        raise from_api_message(action, str(error)) from error
    except _CONNECTION_LOST as error:
        raise engine_died(action, str(error)) from error
