from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.cli.store import parse_size
from stackbuild.errors import UsageError
from stackbuild.store.store import Store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("STACKBUILD_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    return Store(tmp_path / "store")


def test_usage(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    store.add_stream([b"x" * 1500])
    assert run(["store", "usage"]) == 0
    assert f"{store.root}: 1.5 kB" in capfd.readouterr().out
    assert run(["store", "usage", "--format", "json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert shown["bytes"] == 1500
    assert shown["kinds"]["blobs"] == {"files": 1, "bytes": 1500}


def test_evict(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    sha256 = store.add_stream([b"x" * 1500])
    assert run(["store", "evict", "--max-size", "2K"]) == 0
    assert store.blob(sha256)
    assert run(["store", "evict", "--all"]) == 0
    assert store.blob(sha256) is None
    assert "removed 1 file, 1.5 kB; 0 B are left" in capfd.readouterr().out
    assert run(["store", "evict"]) == 2


def test_verify_removes_what_is_damaged(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    sha256 = store.add_stream([b"x"])
    assert run(["store", "verify"]) == 0
    (store.root / "blobs" / sha256[:2] / sha256).write_bytes(b"y")
    assert run(["store", "verify"]) == 1
    assert sha256 in capfd.readouterr().out
    assert run(["store", "verify"]) == 0


def test_sizes() -> None:
    assert [parse_size(text) for text in ("1000", "2k", "1.5MB", "20G")] == [
        1000,
        2000,
        1_500_000,
        20 * 10**9,
    ]
    with pytest.raises(UsageError):
        parse_size("much")
