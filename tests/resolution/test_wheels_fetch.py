from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.pylock import Pylock

from stackbuild.errors import LockError
from stackbuild.lock.model import LockedWheel, PlatformLock
from stackbuild.lock.pylock import pylock
from stackbuild.progress import SilentObserver
from stackbuild.resolution.wheels.fetch import fetch_wheels, wheel_locations
from stackbuild.site_config import IndexLocation, SiteConfig
from tests.lock.examples import platform_lock
from tests.resolution.wheel_locking import HTTP, OS, PYTHON, Shelf
from tests.support.index_server import IndexServer
from tests.support.loopback import Misbehaviour


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    shelf = Shelf(tmp_path)
    shelf.wheel("app", "1.0+cu130", "leaf")
    shelf.wheel("leaf", "2.0")
    return shelf


@pytest.fixture
def locked(shelf: Shelf) -> PlatformLock:
    wheels: tuple[LockedWheel, ...] = shelf.lock("app").wheels
    dated = [wheel.model_copy(update={"uploaded": "2026-01-02T03:04:05.678901Z"}) for wheel in wheels]
    return platform_lock(wheels=dated, os=OS, python=PYTHON)


def test_a_lock_made_at_one_site_builds_at_another(shelf: Shelf, locked: PlatformLock) -> None:
    shelf.store.evict(max_bytes=None)
    with IndexServer({"mirror": shelf.root / "default"}) as server:
        site = SiteConfig(indexes={"default": IndexLocation(url=server.url("mirror"))})
        assert wheel_locations(locked, site, http=HTTP) == {
            wheel.file: server.file_url("mirror", wheel.file).replace("+", "%2B") for wheel in locked.wheels
        }
        paths = fetch_wheels(locked, site, shelf.store, SilentObserver(), http=HTTP)
        assert [path.name for path in paths.values()] == [wheel.sha256 for wheel in locked.wheels]
        asked = len(server.server.requests)
        assert fetch_wheels(locked, site, shelf.store, SilentObserver(), http=HTTP) == paths
        assert len(server.server.requests) == asked  # what the store has asks nobody


def test_a_wheel_whose_bytes_changed(shelf: Shelf, locked: PlatformLock) -> None:
    shelf.store.evict(max_bytes=None)
    with IndexServer({"mirror": shelf.root / "default"}) as server:
        site = SiteConfig(indexes={"default": IndexLocation(url=server.url("mirror"))})
        server.misbehave("/files/leaf", Misbehaviour(replace=b"x" * locked.wheels[1].size))
        with pytest.raises(LockError) as caught:
            fetch_wheels(locked, site, shelf.store, SilentObserver(), http=HTTP)
    assert caught.value.code == "artifact-changed"
    assert locked.wheels[1].sha256 in caught.value.detail


def test_a_wheel_that_is_gone(shelf: Shelf, locked: PlatformLock) -> None:
    shelf.store.evict(max_bytes=None)
    (shelf.root / "default" / locked.wheels[1].file).unlink()
    with pytest.raises(LockError) as caught:
        fetch_wheels(locked, SiteConfig(indexes=shelf.indexes), shelf.store, SilentObserver(), http=HTTP)
    assert caught.value.code == "wheel-not-found"
    assert locked.wheels[1].file in caught.value.what


def test_pylock_is_valid_and_complete(shelf: Shelf, locked: PlatformLock) -> None:
    with IndexServer({"mirror": shelf.root / "default"}) as server:
        site = SiteConfig(indexes={"default": IndexLocation(url=server.url("mirror"))})
        text = pylock(locked, "linux/amd64", wheel_locations(locked, site, http=HTTP))
    document = tomllib.loads(text)
    parsed = Pylock.from_dict(document)
    assert [(package.name, str(package.version)) for package in parsed.packages] == [
        (wheel.name, wheel.version) for wheel in locked.wheels
    ]
    assert document["packages"][0]["dependencies"] == [{"name": "leaf", "version": "2.0"}]
    wheels = [package["wheels"][0] for package in document["packages"]]
    assert [(wheel["hashes"]["sha256"], wheel["size"]) for wheel in wheels] == [
        (wheel.sha256, wheel.size) for wheel in locked.wheels
    ]


def test_pylock_needs_a_location_for_every_wheel(locked: PlatformLock) -> None:
    with pytest.raises(LockError) as caught:
        pylock(locked, "linux/amd64", {})
    assert caught.value.code == "wheel-not-found"
