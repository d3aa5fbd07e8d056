"""A night as a whole: one stack's trouble is its own, and a full disk stops what has not begun."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import NotJudgedError
from stackbuild.facts.tables import Facts
from stackbuild.nightly.ground import Ground, NightOptions
from stackbuild.nightly.history.history import History
from stackbuild.nightly.model import Night
from stackbuild.nightly.night import night_id, run_night
from stackbuild.progress import SilentObserver
from stackbuild.site_config import SiteConfig
from stackbuild.store.store import Store
from tests.build.stacks import write_stack

STARTED = datetime(2026, 11, 30, 2, 15, tzinfo=UTC)
Keep = Callable[[str, Mapping[str, bytes]], Mapping[str, str]]


def _no_engine() -> Engine:
    raise NotJudgedError("No Docker engine answers.", code="engine-unreachable")


@contextmanager
def _history(folder: Path) -> Iterator[History]:
    with History(folder / "history.sqlite") as history:
        yield history


def _night(folder: Path, keep: Keep, *names: str) -> Night:
    """A night of stacks that have no lock."""
    return _night_of(folder, keep, [write_stack(folder, name).path for name in names])


def _night_of(folder: Path, keep: Keep, paths: Sequence[Path]) -> Night:
    ground = Ground(
        site=SiteConfig(),
        store=Store(folder / "store"),
        connect=_no_engine,
        environ={},
        observer=SilentObserver(),
        facts=Facts(),
        today=STARTED.date(),
        keep=keep,
    )
    with _history(folder) as history:
        return run_night(
            paths, id_="x", started=STARTED, ground=ground, options=NightOptions(pause=0), history=history
        )


def test_a_stack_without_a_lock_says_so_and_the_next_goes_on(tmp_path: Path) -> None:
    night = _night(tmp_path, lambda _stack, _documents: {}, "a", "b")
    assert [(stack.stack, stack.outcome, stack.tries) for stack in night.stacks] == [
        ("a", "spec-or-lock", 1),
        ("b", "spec-or-lock", 1),
    ]
    assert [finding.code for finding in night.findings] == ["lock-missing", "lock-missing"]
    assert (night.started, night.interrupted, int(night.exit_code)) == ("2026-11-30T02:15:00Z", False, 3)


def test_a_name_that_another_stack_has_is_told_of_the_second(tmp_path: Path) -> None:
    write_stack(tmp_path, "a")
    (tmp_path / "b.yaml").write_text((tmp_path / "a.yaml").read_text())
    night = _night_of(tmp_path, lambda _stack, _documents: {}, [tmp_path / "a.yaml", tmp_path / "b.yaml"])
    first, second = night.stacks
    assert [finding.code for finding in first.findings] == ["lock-missing"]
    assert (second.stack, second.outcome) == ("b", "spec-or-lock")
    assert [finding.code for finding in second.findings] == ["stack-name-twice"]
    assert f"The stack {tmp_path / 'a.yaml'} is called 'a' as well" in second.findings[0].summary


def test_a_full_disk_stops_what_has_not_begun(tmp_path: Path) -> None:
    def keep(stack: str, _documents: Mapping[str, bytes]) -> Mapping[str, str]:
        raise OSError(errno.ENOSPC, "No space left on device", stack)

    night = _night(tmp_path, keep, "a", "b")
    assert [(stack.stack, stack.outcome) for stack in night.stacks] == [
        ("a", "spec-or-lock"),
        ("b", "not-judged"),
    ]
    assert [finding.code for finding in night.stacks[0].findings] == ["lock-missing", "disk-full"]
    (left,) = night.stacks[1].findings
    assert (left.code, str(left.verdict)) == ("disk-full", "ERROR")
    assert left.summary == "Not begun: the disk is full."


def test_a_mistake_of_stackbuild_in_one_stack_is_told_and_stops_no_other(tmp_path: Path) -> None:
    def keep(stack: str, _documents: Mapping[str, bytes]) -> Mapping[str, str]:
        return {"a": {}}[stack]

    night = _night(tmp_path, keep, "a", "b", "c")
    mistakes = [finding for finding in night.findings if finding.code == "internal-error"]
    assert [finding.subject for finding in mistakes] == ["b", "c"]
    assert "KeyError" in mistakes[0].summary
    assert "test_night.py" in mistakes[0].details["traceback"]


def test_a_store_that_was_removed_is_no_mistake_of_stackbuild(tmp_path: Path) -> None:
    def keep(stack: str, _documents: Mapping[str, bytes]) -> Mapping[str, str]:
        shutil.rmtree(tmp_path / "store")
        return {}

    night = _night(tmp_path, keep, "a", "b")
    (finding,) = night.stacks[1].findings
    assert (finding.code, str(finding.verdict)) == ("store-vanished", "ERROR")
    assert str(tmp_path / "store") in finding.summary
    assert night.stacks[1].outcome == "not-judged"


def test_an_interrupt_ends_the_night_with_what_is_judged(tmp_path: Path) -> None:
    def keep(stack: str, _documents: Mapping[str, bytes]) -> Mapping[str, str]:
        if stack == "b":
            raise KeyboardInterrupt
        return {}

    night = _night(tmp_path, keep, "a", "b", "c")
    assert [stack.stack for stack in night.stacks] == ["a"]
    assert night.interrupted
    assert int(night.exit_code) == 130


def test_ids_sort_by_time_and_are_unique() -> None:
    ids = {night_id(STARTED) for _ in range(3)}
    assert len(ids) > 1
    assert all(id_.startswith("20261130T021500Z-") for id_ in ids)
