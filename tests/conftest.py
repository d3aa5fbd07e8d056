"""Fixtures for all tests: nothing of the machine's own configuration or store reaches a test."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.index_server import IndexServer
from tests.support.registry import Registry

SiteFile = Callable[..., Path]

# How long an example takes says how busy the machine is, and nothing of the code. The examples are the same each
# time: a failure is then of the change at hand, and no change is held up by what it did not touch. To look for
# further ones: --hypothesis-profile=search.
settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")
_GARBAGE_THRESHOLD = 20_000


def pytest_configure() -> None:
    """Hear Ctrl-C, and let the processes that tests start hear it and find byte-code.

    A shell starts what it puts into the background with SIGINT ignored, and children inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests start stackbuild as a process again and again: with nowhere to keep byte-code, each would compile all of it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # Else a tenth of the time goes into looking for garbage among the modules and tests that stay to the end.
    gc.set_threshold(_GARBAGE_THRESHOLD)


def pytest_collection_finish() -> None:
    """Look for no garbage among what was imported and collected."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drop STACKBUILD_* and point the store at a folder of this test's own."""
    for name in list(os.environ):
        if name.startswith("STACKBUILD_") and name != "STACKBUILD_TEST_CACHE":
            monkeypatch.delenv(name)
    for name in ("SOURCE_DATE_EPOCH", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STACKBUILD_STORE", str(tmp_path_factory.getbasetemp() / "no-store-asked-for"))


@pytest.fixture
def store_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store's folder, named by STACKBUILD_STORE."""
    root = tmp_path / "store"
    monkeypatch.setenv("STACKBUILD_STORE", str(root))
    return root


@pytest.fixture
def site_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SiteFile:
    """Writes a site file from tables of values and names it by STACKBUILD_CONFIG.

    Called as ``site_file(indexes={"pytorch-cpu": {"folder": "/x"}}, registries={"docker.io": ADDRESS})``.
    """

    def write(**tables: object) -> Path:
        path = tmp_path / "stackbuild.toml"
        path.write_text(_toml(tables))
        monkeypatch.setenv("STACKBUILD_CONFIG", str(path))
        return path

    return write


@pytest.fixture
def wheel_folder(tmp_path: Path) -> Path:
    """An empty folder for wheels."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.fixture
def index_server(wheel_folder: Path) -> Iterator[IndexServer]:
    """An index named ``default`` that serves ``wheel_folder``."""
    with IndexServer({"default": wheel_folder}) as server:
        yield server


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A real registry, one for the session; use repository names of your own."""
    with Registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


def _toml(tables: Mapping[str, object]) -> str:
    """TOML of strings, booleans, lists and tables; JSON's spelling of those is TOML's."""
    simple = [
        f"{key.replace('_', '-')} = {json.dumps(_plain(v))}" for key, v in tables.items() if not _table(v)
    ]
    nested = [
        line
        for key, value in tables.items()
        if isinstance(value, Mapping)
        for line in (
            f"[{key.replace('_', '-')}]",
            *(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items()),
        )
    ]
    return "\n".join([*simple, *nested, ""])


def _table(value: object) -> bool:
    return isinstance(value, Mapping)


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def _inline(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    return json.dumps(_plain(value))
