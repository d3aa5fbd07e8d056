"""A store that is removed under a run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stackbuild.progress import SilentObserver
from stackbuild.store.download import growing_file
from stackbuild.store.store import Store
from stackbuild.store.vanished import store_vanished


def _lock(store: Store) -> None:
    with store.lock("demo", observer=SilentObserver()):
        pass


def _layer(store: Store) -> None:
    with store.new_layer("key") as sink:
        sink.write(b"x")


def _download(store: Store) -> None:
    with growing_file(store.partial("key"), print, keep=True):
        pass


def _interrupted_layer(store: Store) -> None:
    store.root.mkdir()
    (store.root / "tmp").mkdir()
    with store.new_layer("key") as sink:
        sink.write(b"x")
        shutil.rmtree(store.root)


WRITERS: tuple[Callable[[Store], object], ...] = (
    _lock,
    _layer,
    _download,
    _interrupted_layer,
    lambda store: store.add_stream([b"x"]),
    lambda store: store.put_record("kind", "key", {}),
    lambda store: store.evict(max_bytes=None),
)


@pytest.mark.parametrize("write", WRITERS)
def test_whatever_misses_it_says_so(write: Callable[[Store], object], tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    shutil.rmtree(store.root)
    with pytest.raises(FileNotFoundError) as caught:
        write(store)
    told = store_vanished(caught.value, [tmp_path / "other", store.root])
    assert told is not None
    assert (told.code, int(told.exit_code)) == ("store-vanished", 5)
    assert "was removed while it was used" in told.what
    assert Path(told.where).is_relative_to(store.root)
    assert not Path(told.where).exists()
    assert "Run the same command again" in told.do


def test_what_is_gone_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = store.blob(store.add_stream([b"x"]))
    assert path is not None
    for gone, what in ((path, "a part of the store"), (store.root, "the store")):
        shutil.rmtree(gone, ignore_errors=True)
        path.unlink(missing_ok=True)
        with pytest.raises(FileNotFoundError) as caught:
            path.read_bytes()
        told = store_vanished(caught.value, [store.root])
        assert told is not None
        assert (told.what, told.where) == (f"{what} was removed while it was used", str(gone))


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "x", "/elsewhere/x"), FileNotFoundError(2, "x"), KeyError("x")]
)
def test_other_errors_are_none_of_it(error: BaseException, tmp_path: Path) -> None:
    assert store_vanished(error, [tmp_path]) is None
