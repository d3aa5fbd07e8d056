"""What goes into the history comes out again, in the order in which it went in."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from stackbuild.errors import UsageError
from stackbuild.findings import Verdict
from stackbuild.nightly.history.history import History
from stackbuild.nightly.history.model import Series
from stackbuild.nightly.model import StackNight
from tests.nightly.nights import DRIFT, finding, night, result


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nightly" / "history.sqlite"


def test_a_result_comes_back_with_all_that_the_next_night_needs(path: Path) -> None:
    warned = finding(
        "python-near-end", Verdict.WARN, subject="python 3.10", measured="a", required="b", next_step="Go on."
    )
    added = result(
        outcome="drift",
        external=True,
        complete=False,
        registry_digest="sha256:" + "f" * 64,
        tries=3,
        change=DRIFT.model_copy(update={"pins": ()}),
        findings=(warned, finding("torch-cuda"), finding("lib", Verdict.SKIP, applies=False)),
        drift=DRIFT,
    )
    unset = [
        name for name, field in StackNight.model_fields.items() if getattr(added, name) == field.get_default()
    ]
    assert unset == [], "every field of the model is in this test"
    with History(path) as history:
        history.add(night(added))
    with History(path) as history:
        found = history.last("torch-cu130")
    assert found is not None
    assert found.findings[0] == warned
    assert found.verdicts == added.verdicts
    assert found.model_copy(update={"findings": ()}) == added.model_copy(update={"findings": ()})


def test_the_texts_of_what_passed_and_the_details_are_not_kept(path: Path) -> None:
    with History(path) as history:
        history.add(
            night(
                result(
                    findings=(
                        finding("a", summary="long story"),
                        finding("b", Verdict.FAIL, details={"log": "x" * 100_000}),
                    )
                )
            )
        )
        found = history.last("torch-cu130")
    assert found is not None
    assert [(one.code, one.verdict, one.summary, one.details) for one in found.findings] == [
        ("b", Verdict.FAIL, "b was judged", {}),
        ("a", Verdict.PASS, "passed", {}),
    ]


def test_of_a_huge_drift_the_files_that_count_are_kept_first(path: Path) -> None:
    noise = tuple(replace(DRIFT.files[1], path=f"/var/log/{number}") for number in range(3_000))
    huge = DRIFT.model_copy(update={"files": (*noise, *DRIFT.files)})
    with History(path) as history:
        history.add(night(result(outcome="drift", drift=huge)))
        found = history.last("torch-cu130")
    assert found is not None
    assert found.drift is not None
    assert (len(found.drift.files), found.drift.files[0]) == (2_000, DRIFT.files[0])
    assert found.drift.unknown == (
        "1,002 more files differ; the history keeps 2,000 of a night, its report has all.",
    )
    assert found.drift.model_copy(update={"files": (), "unknown": ()}) == DRIFT.model_copy(
        update={"files": ()}
    )


def test_the_last_good_night_is_the_one_that_a_rebuild_should_equal(path: Path) -> None:
    with History(path) as history:
        history.add(night(result(number=1), number=1))
        history.add(night(result(number=2, outcome="drift", drift=DRIFT), number=2))
        history.add(night(result(number=3, outcome="failed"), result("other", number=9), number=3))
        good, last = history.last("torch-cu130", good=True), history.last("torch-cu130")
        assert good is not None
        assert last is not None
        assert (good.lock_sha256, last.outcome) == (f"{1:064x}", "failed")
        assert history.last("nobody") is None
        assert history.stacks() == ("other", "torch-cu130")


def test_newest_is_what_was_added_last_though_clocks_go_back(path: Path) -> None:
    with History(path) as history:
        for number in (5, 3, 4):
            history.add(night(result(number=number), number=number))
        assert [point.size for point in history.stack_trend("torch-cu130")] == [
            3_004_000_000, 3_003_000_000, 3_005_000_000,
        ]  # fmt: skip
        assert [summary.started[:10] for summary in history.nights(2)] == ["2025-12-05", "2025-12-04"]
        last = history.last("torch-cu130")
        assert last is not None
        assert last.size == 3_004_000_000


def test_the_trend_holds_outcome_digests_sizes_seconds_and_verdicts(path: Path) -> None:
    with History(path) as history:
        history.add(night(result(number=1), number=1))
        history.add(night(result("other"), number=2))
        history.add(
            night(
                result(number=3, outcome="drift", findings=(finding("a", Verdict.FAIL),), drift=DRIFT),
                number=3,
            )
        )
        newest, oldest = history.stack_trend("torch-cu130")
        assert history.stack_trend("torch-cu130", 1) == (newest,)
    assert (newest.number, newest.outcome, newest.drifted, oldest.drifted) == (3, "drift", True, False)
    assert newest.verdicts == {"a": Verdict.FAIL}
    assert oldest.verdicts == {"torch-cuda": Verdict.PASS, "driver-too-old": Verdict.PASS}
    assert oldest.seconds == {"inputs": 2.5, "rebuild": 41.0, "total": 61.0}
    assert oldest.config_digest == "sha256:" + f"{1:064x}"


def test_platforms_of_a_stack_are_apart_and_share_what_ended_before_it_was_known(path: Path) -> None:
    with History(path) as history:
        history.add(night(result(), result(platform="linux/arm64", number=7), number=1))
        history.add(
            night(result(platform="", outcome="spec-or-lock", number=8), result("x", platform=""), number=2)
        )
        assert history.series() == (
            Series("torch-cu130", "linux/amd64", only=False),
            Series("torch-cu130", "linux/arm64", only=False),
            Series("x", "", only=True),
        )
        trend = history.stack_trend("torch-cu130", platform="linux/arm64")
        assert [point.outcome for point in trend] == ["spec-or-lock", "unchanged"]
        last = history.last("torch-cu130", platform="linux/arm64")
        assert last is not None
        assert last.lock_sha256 == f"{7:064x}"


def test_nights_count_their_outcomes(path: Path) -> None:
    with History(path) as history:
        assert history.nights() == ()
        history.add(night(result(), result("b"), result("c", outcome="failed"), interrupted=True))
        (summary,) = history.nights()
    assert summary.outcomes == {"unchanged": 2, "failed": 1}
    assert (summary.host, summary.seconds, summary.version) == ("builder-1", 600.5, "0.1.0")
    assert summary.interrupted


def test_a_night_is_added_once(path: Path) -> None:
    with History(path) as history:
        history.add(night())
        with pytest.raises(UsageError, match="has the night 20251201T021500Z-0000 already"):
            history.add(night())
        assert len(history.nights()) == 1


def test_of_a_stack_that_was_judged_twice_in_a_night_the_later_result_counts(path: Path) -> None:
    with History(path) as history:
        history.add(night(result(outcome="failed"), result("b"), result(number=5)))
        assert history.nights()[0].outcomes == {"unchanged": 2}
        (point,) = history.stack_trend("torch-cu130")
    assert point.size == 3_005_000_000


def test_text_that_is_no_unicode_and_names_that_mean_ill_are_kept(path: Path) -> None:
    name = "x'; DROP TABLE results; --\ud800"
    with History(path) as history:
        history.add(night(result(name, findings=(finding("a", Verdict.FAIL, summary="\udcff\x00" * 5_000),))))
        found = history.last(name)
        assert found is not None
        assert found.findings[0].summary == "\udcff\x00" * 5_000
        assert history.stacks() == (r"x'; DROP TABLE results; --\ud800",)


def test_pruning_keeps_the_newest_nights_and_gives_the_space_back(path: Path) -> None:
    with History(path) as history:
        for number in range(30):
            texts = (finding("a", Verdict.WARN, summary=random.Random(number).randbytes(9_000).hex()),)
            history.add(night(result(number=number, findings=texts), result(f"only-{number}"), number=number))
    before = path.stat().st_size
    with History(path) as history:
        assert history.prune(3) == 27
        assert history.prune(3) == 0
        assert [summary.number for summary in history.nights()] == [30, 29, 28]
        assert history.stacks() == ("only-27", "only-28", "only-29", "torch-cu130")
        last = history.last("torch-cu130")
        assert last is not None
        assert len(last.findings[0].summary) == 18_000
    assert path.stat().st_size < before / 2
    with History(path) as history, pytest.raises(ValueError, match="at least one"):
        history.prune(0)


def test_what_is_read_together_is_of_one_moment(path: Path) -> None:
    with History(path) as reader, History(path) as writer:
        writer.add(night(number=1))
        with reader.view():
            assert len(reader.nights()) == 1
            writer.add(night(number=2))
            assert len(reader.nights()) == 1
        assert len(reader.nights()) == 2


def test_what_does_not_change_is_stored_once(path: Path) -> None:
    with History(path) as history:
        for number in range(200):
            history.add(night(*(result(f"stack-{name}") for name in range(10)), number=number))
    assert path.stat().st_size / 2000 < 400, "bytes per stack and night"
