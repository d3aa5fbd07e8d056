"""Fixtures for tests that need a real Docker engine. Without one they fail; they are never skipped."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stackbuild.errors import NotJudgedError
from tests.support.base_image import busybox_rootfs, debian_rootfs, docker_archive

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine that answers here; at the end nothing of ours may be left on it."""
    from stackbuild.engine.docker_engine import Engine

    try:
        connected = Engine.connect()
    except NotJudgedError as error:
        pytest.fail(f"these tests need a Docker engine, and none answers: {error}")
    with connected:
        yield connected
        swept = connected.sweep()
        assert not swept, f"left behind by tests and now removed: {swept}"


@pytest.fixture
def image_name(engine: Engine) -> Iterator[Callable[[str], str]]:
    """Gives image references of this test's own; their images are removed at its end."""
    given: list[str] = []

    def name(stem: str) -> str:
        given.append(f"stackbuild-test/{stem}:{uuid.uuid4().hex[:12]}")
        return given[-1]

    yield name
    for ref in given:
        engine.remove_image(ref)


@pytest.fixture(scope="session")
def busybox_image(engine: Engine) -> Iterator[str]:
    """A loaded image of 2 MB with busybox: the reference."""
    yield from _loaded(engine, "busybox", busybox_rootfs())


@pytest.fixture(scope="session")
def debian_python_image(engine: Engine) -> Iterator[str]:
    """A loaded Debian bookworm image with Python and venv: the reference."""
    yield from _loaded(engine, "debian-python", debian_rootfs())


def _loaded(engine: Engine, stem: str, rootfs: Path | bytes) -> Iterator[str]:
    ref = f"stackbuild-test/{stem}:{uuid.uuid4().hex[:12]}"
    archive, _ = docker_archive([rootfs], ref=ref)
    engine.load([archive])
    yield ref
    engine.remove_image(ref)
