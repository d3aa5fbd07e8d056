"""The empty store of a rebuild: gone afterwards, and swept only when nobody uses it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stackbuild.nightly.clean_store import clean_store, sweep_clean_stores


def _rooms(area: Path) -> list[str]:
    return sorted(path.name for path in area.glob("rebuild-*"))


def test_it_is_empty_and_gone_afterwards(tmp_path: Path) -> None:
    area = tmp_path / "deep" / "area"
    with clean_store(area) as store:
        sha256 = store.add_stream([b"x"])
        assert store.blob(sha256) is not None
        with clean_store(area) as other:
            assert other.blob(sha256) is None
            assert len(_rooms(area)) == 2
    assert _rooms(area) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_it_is_gone_however_the_block_ends(tmp_path: Path, error: type[BaseException]) -> None:
    def ended() -> None:
        with clean_store(tmp_path) as store:
            store.add_stream([b"x"])
            raise error

    with pytest.raises(error):
        ended()
    assert _rooms(tmp_path) == []


def test_a_sweep_takes_what_a_killed_night_left_and_nothing_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "rebuild-killed" / "blobs").mkdir(parents=True)
    (tmp_path / "rebuild-killed" / "blobs" / "x").write_bytes(b"x")
    (tmp_path / "something else").mkdir()
    with clean_store(tmp_path):
        (used,) = [name for name in _rooms(tmp_path) if name != "rebuild-killed"]
        assert sweep_clean_stores(tmp_path) == ["rebuild-killed"]
        assert _rooms(tmp_path) == [used]
    assert (tmp_path / "something else").is_dir()
    assert sweep_clean_stores(tmp_path / "never made") == []


def test_a_sweep_passes_by_what_a_night_removes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rebuild-ending").mkdir()
    really_open = os.open

    def ending(path: Path, flags: int) -> int:
        path.rmdir()
        return really_open(path, flags)

    monkeypatch.setattr(os, "open", ending)
    assert sweep_clean_stores(tmp_path) == []
