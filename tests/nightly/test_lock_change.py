"""Which night's lock a new one is held against."""

from __future__ import annotations

from pathlib import Path

from stackbuild.nightly.history.history import History
from stackbuild.nightly.lock_change import last_locked_night
from tests.nightly.nights import night, result


def test_a_lock_that_could_not_be_honoured_hides_no_change(tmp_path: Path) -> None:
    with History(tmp_path / "history.sqlite") as history:
        history.add(night(result(number=1), number=1))
        history.add(night(result(number=2, outcome="spec-or-lock"), number=2))
        history.add(night(result(number=3, outcome="not-judged", lock_sha256=""), number=3))
        last = last_locked_night(history, "torch-cu130", "linux/amd64")
    assert last is not None
    assert last.result.lock_sha256 == f"{1:064x}"
    assert last.name == "the night of 2025-12-02 02:15"


def test_without_such_a_night_there_is_none(tmp_path: Path) -> None:
    with History(tmp_path / "history.sqlite") as history:
        history.add(night(result(outcome="spec-or-lock")))
        assert last_locked_night(history, "torch-cu130", "linux/amd64") is None
        assert last_locked_night(history, "other", "linux/amd64") is None
