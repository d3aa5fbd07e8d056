"""The page as text: what a reader is told, and that nothing in it can act; a browser's view is a test of its own."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest

from stackbuild.drift.model import Drift
from stackbuild.errors import UsageError
from stackbuild.findings import Verdict
from stackbuild.nightly.history.history import History
from stackbuild.nightly.model import Outcome
from stackbuild.nightly.page.values import OUTCOME_CLASSES, OUTCOME_WORDS
from stackbuild.nightly.page.write import write_page
from tests.nightly.nights import DRIFT, finding, night, result
from tests.nightly.page.pages import ATTACK, NOW, Page, index, stack, written
from tests.nightly.year import year


def test_before_the_first_night(tmp_path: Path) -> None:
    page = index(written(tmp_path))
    assert "No night has been run yet." in page.text
    assert "table" not in page.tags


def test_after_the_first_night(tmp_path: Path) -> None:
    folder = written(tmp_path, night())
    page, own = index(folder), stack(folder)
    assert "1 unchanged" in page.text
    assert "unchanged since 2025-12-01, 1 night 2025-12-01" in page.text
    assert "3.0 GB 40 s none 1 newer version within the spec's ranges" in page.text
    assert page.values("href") == ["stacks/torch-cu130.html"]
    assert "Gates through one night" in own.text
    assert "A trend needs two nights with an image." in own.text
    assert "None in the nights shown" in own.text
    assert "numpy python 2.1.0 2.1.1 PASS It fits." in own.text
    assert "base name nvidia/cuda:13.0.3-base-ubuntu24.04, digest sha256:b" in own.text
    assert "compute_capabilities torch sm_90, compute_90" in own.text
    assert "cudnn" not in own.text, "what the image does not have is not listed"


def test_a_state_and_since_when(tmp_path: Path) -> None:
    failed = finding(
        "torch-cuda", Verdict.FAIL, summary="torch runs on the CPU.", next_step="Take the CUDA wheel."
    )
    page = written(
        tmp_path,
        night(number=0),
        night(result(outcome="failed", findings=(failed,)), number=1),
        night(number=2),
        night(result(outcome="failed", complete=False, findings=(failed,)), number=3),
        night(result(outcome="failed", findings=(failed,)), result("a-well"), number=4),
        night(result(outcome="failed", findings=(failed,)), result("a-well"), number=5),
    )
    text = index(page).text
    assert "1 failed 1 unchanged" in text
    assert (
        "torch-cu130 000000000000 failed since 2025-12-05, 2 nights torch runs on the CPU. → Take the CUDA wheel. 2025-12-03"
        in text
    )
    assert text.index("torch-cu130") < text.index("a-well"), "what needs attention comes first"
    own = stack(page).text
    assert "torch-cuda torch runs on the CPU. Take the CUDA wheel." in own
    assert "2025-12-04 failed torch-cuda torch runs on the CPU." in own
    assert "torch-cuda 2 PASS, 4 FAIL" in own


def test_a_result_that_is_not_complete_is_told(tmp_path: Path) -> None:
    error = finding("gpu-there", Verdict.ERROR, summary="No GPU.")
    page = written(
        tmp_path, night(result(outcome="not-judged", complete=False, findings=(error,)), result("well"))
    )
    assert "Not complete : 1 stack has a gate that could not be judged." in index(page).text
    assert "not judged not complete since" in index(page).text


def test_a_state_that_is_not_complete_any_more_is_another_state(tmp_path: Path) -> None:
    page = written(tmp_path, night(number=0), night(result(complete=False), number=1))
    assert "unchanged not complete since 2025-12-02, 1 night" in index(page).text


def test_a_change_is_one_line_in_the_table_and_explained_on_its_page(tmp_path: Path) -> None:
    page = written(tmp_path, night(), night(result(outcome="drift", drift=DRIFT, number=1), number=1))
    line = "breaking: cuda 12.6 → 13.0; numpy 2.1.0 → 2.1.1, libfoo 1.2-3 added; from layer 7, other wheels"
    assert f"2025-12-02 drift: {line}" in index(page).text
    own = stack(page).text
    for told in (
        line,
        "The first difference is in layer 7 from the bottom, other wheels: numpy 2.1.0 became 2.1.1.",
        "cuda 12.6 13.0 yes A CUDA major ends old drivers.",
        "numpy python 2.1.0 2.1.1 changed: version",
        "libfoo deb – 1.2-3 added",
        "numpy 2.1.1 1 changed /opt/venv/lib/python3.12/site-packages/numpy/version.py: changed content",
        "1 file of known noise.",
    ):
        assert told in own
    assert "/var/log/dpkg.log" not in own


def test_a_new_lock_is_no_drift(tmp_path: Path) -> None:
    page = written(tmp_path, night(), night(result(change=DRIFT, number=1), number=1))
    assert "2025-12-02 change: breaking: cuda" in index(page).text
    assert "2 unchanged" in stack(page).text


def test_a_new_lock_and_the_same_drift_after_it_are_two_changes(tmp_path: Path) -> None:
    page = written(
        tmp_path, night(result(change=DRIFT)), night(result(outcome="drift", drift=DRIFT), number=1)
    )
    assert re.findall(r"(drift|change) (2025-12-0\d) breaking", stack(page).text) == [
        ("drift", "2025-12-02"),
        ("change", "2025-12-01"),
    ]


def test_every_outcome_has_a_word_and_a_shape_the_worst_first() -> None:
    assert tuple(OUTCOME_WORDS) == tuple(OUTCOME_CLASSES) == get_args(Outcome)
    assert list(OUTCOME_CLASSES.values())[-3:] == ["error", "warn", "pass"]


def test_the_same_drift_night_after_night_is_told_once(tmp_path: Path) -> None:
    renamed = DRIFT.model_copy(update={"before": DRIFT.before.model_copy(update={"name": "another night"})})
    page = written(
        tmp_path,
        *(
            night(result(outcome="drift", drift=drift), number=n)
            for n, drift in enumerate((DRIFT, renamed, DRIFT))
        ),
    )
    own = stack(page)
    assert "2025-12-03 and 2 nights before, since 2025-12-01" in own.text
    assert own.tags.count("details") == 2, "one change; the gates that passed"


def test_a_huge_drift_stays_readable(tmp_path: Path) -> None:
    files = tuple(
        replace(DRIFT.files[0], path=f"/f/{number}", owner=f"package-{number % 500} 1.0")
        for number in range(5_000)
    )
    page = written(tmp_path, night(result(outcome="drift", drift=DRIFT.model_copy(update={"files": files}))))
    assert "470 more packages with files that differ." in stack(page).text
    assert (page / "stacks" / "torch-cu130.html").stat().st_size < 60_000


def test_long_texts_are_cut_where_they_stand(tmp_path: Path) -> None:
    long = finding("a", Verdict.FAIL, summary="word " * 2_000, measured="x" * 10_000, next_step="y" * 10_000)
    page = written(
        tmp_path, *(night(result(outcome="failed", findings=(long,)), number=n) for n in range(30))
    )
    assert "… (9403 more characters)" not in index(page).text
    assert "more characters)" in stack(page).text
    assert (page / "stacks" / "torch-cu130.html").stat().st_size < 40_000


def test_a_stack_that_vanished_stays_until_its_nights_are_gone(tmp_path: Path) -> None:
    page = written(tmp_path, night(result("old"), number=0), night(result("new"), number=1))
    text = index(page).text
    assert "stacks 1; 1 more is known and not in the last night: 1 unchanged" in text
    assert "not in the last night; this is of 2025-12-01" in text
    assert text.index(" new ") < text.index(" old ")
    assert "The last night did not have this stack." in stack(page, "old").text
    (page / "stacks" / "mine.html").write_text("<p>written by hand</p>")
    with History(tmp_path / "history.sqlite") as history:
        history.prune(1)
        write_page(history, page, now=NOW)
    assert _names(page / "stacks") == ["mine.html", "new.html"]
    assert " old " not in index(page).text


def test_an_interrupted_night_says_so(tmp_path: Path) -> None:
    page = written(
        tmp_path, night(result("a"), result("b"), number=0), night(result("a"), number=1, interrupted=True)
    )
    assert (
        "The last night was interrupted : stacks that it did not reach are shown as they were before."
        in index(page).text
    )


def test_of_a_stack_that_is_never_built_the_whole_night_is_timed(tmp_path: Path) -> None:
    page = written(
        tmp_path, *(night(result(external=True, seconds={"total": 70.0 + n}), number=n) for n in range(2))
    )
    assert "1 min 11 s whole night" in index(page).text
    assert "Time of the whole night 1 min 11 s" in stack(page).text


def test_a_night_of_no_stack(tmp_path: Path) -> None:
    page = written(tmp_path, night(number=0), night(number=1).model_copy(update={"stacks": ()}))
    assert "No stack was judged in the last night." in index(page).text
    assert "not in the last night; this is of 2025-12-01" in index(page).text


@pytest.mark.parametrize(
    ("days", "told"), [(0, ""), (1, ""), (5, "The last night was 5 days ago."), (-5, "")]
)
def test_an_old_night_is_told_and_a_clock_that_went_back_is_not(tmp_path: Path, days: int, told: str) -> None:
    text = index(written(tmp_path, night(), now=NOW + timedelta(days=days))).text
    assert (told in text) if told else ("ago" not in text)


def test_platforms_of_one_stack_have_pages_of_their_own(tmp_path: Path) -> None:
    page = written(tmp_path, night(result(), result(platform="linux/arm64", outcome="failed"), result("one")))
    assert _names(page / "stacks") == [
        "one.html", "torch-cu130--linux-amd64.html", "torch-cu130--linux-arm64.html",
    ]  # fmt: skip
    assert "torch-cu130 (linux/arm64) 000000000000 failed" in index(page).text


def test_names_and_texts_that_mean_ill_do_nothing(tmp_path: Path) -> None:
    hostile = Drift.model_validate(
        {
            **DRIFT.model_dump(),
            "pins": [{"pin": ATTACK, "before": ATTACK, "after": ATTACK, "breaking": True, "why": ATTACK}],
            "packages": [{"kind": ATTACK, "name": ATTACK, "change": "added", "what": [ATTACK]}],
            "files": [{"path": ATTACK, "change": "changed", "owner": ATTACK, "before": ATTACK}],
            "metadata": [ATTACK],
            "unknown": [ATTACK],
        }
    )
    texts = {
        "summary": ATTACK,
        "subject": ATTACK,
        "measured": ATTACK,
        "required": ATTACK,
        "next_step": ATTACK,
    }
    names = (ATTACK, "../../etc/passwd", ".", "", "a/b", "x" * 4_000, "\ud800", "con\n\x00", "Torch", "torch")
    fields = {
        "platform": ATTACK, "outcome": "drift", "findings": (finding("a", Verdict.FAIL, **texts),), "drift": hostile,
        "change": hostile, "pins": {ATTACK: {ATTACK: [ATTACK]}}, "config_digest": ATTACK, "compared_with": ATTACK,
        "reports": {ATTACK: ATTACK, "js": "javascript:alert(1)", "up": "../../x", "root": "/etc/passwd", "good": "a b/#.html"},
    }  # fmt: skip
    (tmp_path / "page" / "a b").mkdir(parents=True)
    for name in ("a b/#.html", "javascript:alert(1)"):
        (tmp_path / "page" / name).write_text("a report")
    page = written(
        tmp_path,
        *(
            night(*(result(name, **fields) for name in names), number=n, host=ATTACK, version=ATTACK)
            for n in range(2)
        ),
    )
    assert {path.parent.name for path in tmp_path.rglob("*.html")} == {"page", "stacks", "a b"}
    assert len(list((page / "stacks").iterdir())) == len(names)
    for path in (page / "index.html", *(page / "stacks").iterdir()):
        read = Page(path.read_text(encoding="utf-8"))
        assert read.tags.count("script") == 1 if path.name == "index.html" else "script" not in read.tags
        assert not {"img", "iframe", "link", "object", "base"} & set(read.tags)
        assert not [name for _, name, _ in read.attributes if name.startswith("on") or name == "style"]
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", read.source)
        for link in read.values("href"):
            assert re.fullmatch(
                r"(stacks/[\w.-]+\.html(#changes)?|\.\./index\.html|\.\./[\w%./:()-]+)", link
            ), link
    links = stack(page, "Torch").values("href")
    assert "../a%20b/%23.html" in links
    assert "../javascript%3Aalert%281%29" in links, "a file of that name, and no scheme"
    assert "up (not there any more)" in stack(page, "Torch").text
    assert not [link for link in links if "passwd" in link or link[-1] == "x"]


def test_the_policy_names_exactly_the_style_and_script_that_are_there(tmp_path: Path) -> None:
    folder = written(tmp_path, night())
    for path, script in ((folder / "index.html", True), (folder / "stacks" / "torch-cu130.html", False)):
        text = path.read_text(encoding="utf-8")
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
        rules = dict(rule.split(" ", 1) for rule in policy.replace("&#39;", "'").split("; "))
        (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
        assert rules["default-src"] == "'none'"
        assert rules["style-src"] == _hash(style)
        scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
        assert rules["script-src"] == (_hash(*scripts) if script else "'none'")
        assert "http" not in text.replace("http-equiv", "")


def test_every_picture_has_words(tmp_path: Path) -> None:
    folder = written(tmp_path, *year(3, 40))
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        pictures = re.findall(r"<svg [^>]*>", text)
        assert pictures
        for picture in pictures:
            assert 'aria-hidden="true"' in picture or re.search(r'role="img" aria-label="[^"]+"', picture), (
                picture
            )


def test_an_index_of_many_stacks_stays_small(tmp_path: Path) -> None:
    page = written(tmp_path, *year(10, 92))
    # 200 stacks must stay below 1.5 MB, and a stack's row does not grow with the nights past these.
    rows, nights, rest = (page / "index.html").read_text().partition('<section aria-labelledby="nights">')
    assert len(rows.encode()) / 10 < 1_500_000 / 200 / 2
    assert len((nights + rest).encode()) < 20_000
    assert Page(rows + "</main></body></html>").tags.count("tr") == 11


def test_a_folder_that_cannot_be_written_is_told_and_keeps_what_it_has(tmp_path: Path) -> None:
    page = written(tmp_path, night())
    before = (page / "index.html").read_bytes()
    (page / "stacks" / "torch-cu130.html").unlink()
    (page / "stacks").rmdir()
    (page / "stacks").write_text("in the way")
    with (
        History(tmp_path / "history.sqlite") as history,
        pytest.raises(UsageError, match="cannot be written") as failure,
    ):
        write_page(history, page, now=NOW)
    assert failure.value.code == "output-unwritable"
    assert (page / "index.html").read_bytes() == before
    assert _names(page) == ["index.html", "stacks"], "nothing half-written is left"


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_reports_beside_a_page_are_linked_from_its_first_night_on(tmp_path: Path) -> None:
    report = tmp_path / "kept/night/torch-cu130/drift.md"
    report.parent.mkdir(parents=True)
    report.write_text("what differs")
    with History(tmp_path / "history.sqlite") as history:
        history.add(night(result(reports={"drift.md": "../kept/night/torch-cu130/drift.md"})))
        write_page(history, tmp_path / "page", now=NOW)
    shown = (tmp_path / "page/stacks/torch-cu130.html").read_text()
    assert '<a href="../../kept/night/torch-cu130/drift.md">drift.md</a>' in shown


def test_a_night_whose_lock_could_not_be_honoured_hides_no_change(tmp_path: Path) -> None:
    tampered = DRIFT.model_copy(update={"pins": (), "first_layer": None, "packages": DRIFT.packages[1:]})
    page = written(
        tmp_path,
        night(number=0),
        night(result(change=DRIFT, number=1), number=1),
        night(result(change=tampered, outcome="spec-or-lock", number=2), number=2),
    )
    assert "2025-12-02 change: breaking: cuda 12.6 → 13.0" in index(page).text
    assert "change 2025-12-03" not in stack(page).text


def test_gates_are_counted_once(tmp_path: Path) -> None:
    findings = (
        finding("passes"),
        finding("idle", Verdict.SKIP, applies=False, summary="No torch."),
        finding("waits", Verdict.SKIP, summary="No GPU."),
        finding("fails", Verdict.FAIL),
    )
    own = stack(written(tmp_path, night(result(findings=findings, outcome="failed", complete=False)))).text
    assert "1 more gate passed whenever there was something to judge passes" in own
    assert "1 more gate has nothing to judge in the newest night idle No torch." in own
    assert "SKIP waits waits" not in own
    assert "SKIP waits No GPU." in own


def test_several_nights_of_one_day_are_told_by_their_time(tmp_path: Path) -> None:
    page = written(
        tmp_path,
        night(number=0),
        night(number=1),
        night(result(change=DRIFT, number=1), number=1, id="again", started="2025-12-02T16:10:00Z"),
    )
    assert "2025-12-02 16:10 change: breaking" in index(page).text
    assert "change 2025-12-02 16:10" in stack(page).text
    assert "since 2025-12-01, 3 nights" in index(page).text, "of a day with one night the date is enough"


def test_past_nights_are_listed_with_outcome_and_exit_code(tmp_path: Path) -> None:
    failed = result(
        outcome="failed", findings=(finding("torch-cuda", Verdict.FAIL),), reports={"scan.html": "r/1.html"}
    )
    (tmp_path / "page" / "r").mkdir(parents=True)
    (tmp_path / "page" / "r" / "1.html").write_text("a report")
    page = written(
        tmp_path,
        night(failed, result("other", outcome="drift"), number=0),
        night(number=1),
        night(result("other"), number=2, interrupted=True),
    )
    listed = index(page).text.partition(" Nights Night Exit code Took Stacks ")[2]
    assert listed.startswith(
        "2025-12-03 02:15 UTC 130 10 min 00 s 1 unchanged interrupted "
        "2025-12-02 02:15 UTC 0 10 min 00 s 1 unchanged "
        "2025-12-01 02:15 UTC 1 10 min 00 s 1 failed 1 drift"
    ), listed
    assert "exit code 130 stacks" in index(page).text
    own = stack(page)
    assert "2025-12-02 02:15 UTC unchanged 0 none kept 2025-12-01 02:15 UTC failed 1 scan.html" in own.text
    assert "../r/1.html" in own.values("href")
