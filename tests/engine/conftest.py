"""Fixtures for tests that need a real Docker engine. Without one they fail; they are never skipped."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import pytest

from stackbuild.errors import NotJudgedError
from tests.engine.publishing import one_publish_project as one_publish_project
from tests.engine.publishing import project as project
from tests.simulated_gpu.fixtures import simulated_host as simulated_host
from tests.support.base_image import busybox_rootfs, debian_rootfs, docker_archive
from tests.support.bookworm_debs import bookworm_debs, lock_debs
from tests.support.cache import cached, locked

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.layers.tree import FileTree

BASE_SOURCES = "deb https://mirror.example.org/debian bookworm main\n"


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine that answers here; at the end no container or volume of this process may be left on it."""
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.engine.ownership import LABEL, owner_label

    try:
        connected = Engine.connect()
    except NotJudgedError as error:
        pytest.fail(f"these tests need a Docker engine, and none answers: {error}")
    with connected:
        yield connected
        connected.sweep()  # what killed processes left, which some tests start
    ours: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={owner_label()}"}
    client = docker.from_env()
    left = [*client.containers.list(all=True, filters=ours), *client.volumes.list(filters=ours)]
    client.close()
    assert not left, f"left behind by tests: {left}"


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


@dataclass(frozen=True)
class DebianBase:
    """A base bootstrapped by stackbuild from real debs, as an image and as a file."""

    image: str
    tar: Path
    tree: FileTree
    debs: Path  # folders of debs: base, python, ping, nginx


@pytest.fixture(scope="session")
def debian_base(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebianBase]:
    """Debian bookworm bootstrapped from locked debs, kept in the cache between runs."""
    from stackbuild.layers.bootstrap import bootstrap_key, bootstrap_rootfs
    from stackbuild.layers.tree import FileTree

    folder = bookworm_debs(tmp_path_factory.mktemp("debs"))
    debs = lock_debs(folder / "base")

    def make(target: Path) -> None:
        with target.open("wb") as sink:
            bootstrap_rootfs(debs, "bookworm", BASE_SOURCES, sink)

    rootfs = cached(
        f"bootstrap/{bootstrap_key([deb for deb, _ in debs], 'bookworm', BASE_SOURCES)}.tar", make
    )
    with rootfs.open("rb") as stream:
        tree = FileTree.from_tar(stream)
    for image in _loaded(engine, "debian-base", rootfs):
        yield DebianBase(image, rootfs, tree, folder)


def _loaded(engine: Engine, stem: str, rootfs: Path | bytes) -> Iterator[str]:
    ref = f"stackbuild-test/{stem}:{uuid.uuid4().hex[:12]}"
    archive, _ = docker_archive([rootfs], ref=ref)
    engine.load([archive])
    yield ref
    engine.remove_image(ref)


@pytest.fixture
def builder_stages(engine: Engine) -> Iterator[None]:
    """Removes the builder stages that rendered Dockerfiles leave as the engine's build cache.

    One test at a time: while a build runs, its stage looks like one that was left.
    """
    dangling = {"dangling": True}
    with locked("builder-stages"):
        before = {image["Id"] for image in engine._api.images(filters=dangling)}
        yield
        for image in engine._api.images(filters=dangling):
            found = engine.image(image["Id"]) if image["Id"] not in before else None
            if found is not None and any("/opt/pip" in str(row.get("CreatedBy")) for row in found.history):
                engine.remove_image(found.id)
