"""Judging the output of a run that took place elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stackbuild.findings import Verdict
from stackbuild.layers.chain import chain_key
from stackbuild.verification.bound import Bound, promise_digest
from stackbuild.verification.collect import collect
from stackbuild.verification.elsewhere import ElsewhereImage
from stackbuild.verification.judge.run import judge_run
from stackbuild.verification.promise import Promise
from stackbuild.verification.suite_archive import suite_sha256
from stackbuild.verification.suite_output import MARK
from stackbuild.verification.surroundings import Surroundings
from tests.verification.support import cpu_promise, whole_run

CONFIG = "sha256:" + "b" * 64


def _image(promise: Promise | None = None) -> ElsewhereImage:
    return ElsewhereImage(
        reference="team/torch:1",
        runs="team/torch@sha256:" + "a" * 64,
        id="",
        config_digest=CONFIG,
        diff_ids=("sha256:" + "c" * 64,),
        platform="linux/amd64",
        promise=promise or cpu_promise(),
    )


def _bound(**changes: Any) -> dict[str, Any]:
    image = _image()
    bound = Bound(
        image=image.reference,
        runs=image.runs,
        config_digest=CONFIG,
        layers=chain_key(image.diff_ids),
        promise_sha256=promise_digest(image.promise),
        suite_sha256=suite_sha256(),
        gpus="none",
        by="k8s-job",
    )
    return {**bound.model_dump(mode="json", by_alias=True), **changes}


def _output(bound: dict[str, Any] | None = None, *, end: bool = True) -> bytes:
    """What a suite in which all is well prints."""
    run = whole_run()
    events: list[dict[str, Any]] = [{"event": "suite", "version": "1", "python": "3.11.2"}]
    events[0]["bound"] = _bound() if bound is None else bound
    events += [{"event": "gate", **json.loads(result.model_dump_json())} for result in run.results.values()]
    for event in events:
        event.pop("signal_name", None)
    events += [{"event": "end", "gates": len(run.results)}] if end else []
    return b"".join(MARK + json.dumps(event).encode() + b"\n" for event in events)


def test_the_findings_are_those_of_the_same_judge() -> None:
    report = collect(_output(), _image())
    assert report.findings == judge_run(cpu_promise(), whole_run(), Surroundings())
    assert report.ran == "collected"
    assert report.image.id == CONFIG
    assert dict(report.headline)["judged"].endswith("from the output of a run elsewhere")
    assert [gate.name for gate in report.gates][:2] == ["interpreter", "distributions"]


@pytest.mark.parametrize(
    "prefix",
    [b"verify-1  | ", b"2026-11-30T12:00:00.123456789Z ", b"[pod/x/verify] ", b"0: "],
    ids=["compose", "times", "pod", "srun"],
)
def test_what_readers_of_logs_put_before_a_line_does_not_matter(prefix: bytes) -> None:
    lines = _output().splitlines(keepends=True)
    text = b"banner of the image\n" + b"".join(prefix + line for line in lines) + b"slurmstepd: done\n"
    report = collect(text, _image())
    assert report.findings == collect(_output(), _image()).findings
    assert report.log == "slurmstepd: done\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_what_windows_writes_can_be_read(encoding: str) -> None:
    text = _output().decode().replace("\n", "\r\n").encode(encoding)
    assert collect(text, _image()).findings == collect(_output(), _image()).findings


def test_of_several_tries_the_last_counts() -> None:
    first = _output(end=False)[:4000]
    assert collect(first + b"\n" + _output(), _image()).findings == collect(_output(), _image()).findings


def test_cut_output_is_an_error_and_what_is_there_is_judged() -> None:
    whole = _output()
    for end in (len(whole) // 2, len(whole) - 30):
        report = collect(whole[:end], _image())
        assert (report.findings[0].code, report.findings[0].verdict) == ("collected-cut", Verdict.ERROR)
        assert "gates have a result" in report.findings[0].summary
        assert not report.complete
        assert any(finding.verdict is Verdict.PASS for finding in report.findings)


@pytest.mark.parametrize(
    ("bound", "code"),
    [
        (_bound(**{"config-digest": "sha256:" + "d" * 64}), "collected-other-image"),
        (_bound(**{"config-digest": "", "layers": "0" * 64}), "collected-other-image"),
        (_bound(**{"promise-sha256": "0" * 64}), "collected-other-promise"),
        (_bound(**{"suite-sha256": "0" * 64}), "collected-other-suite"),
        (_bound(gpus="a lot"), "collected-unreadable"),
        ({"image": "x"}, "collected-unreadable"),
        ({}, "collected-unreadable"),
    ],
)
def test_output_of_something_else_says_nothing_of_this_image(bound: dict[str, Any], code: str) -> None:
    report = collect(_output(bound), _image())
    assert (report.findings[0].code, report.findings[0].verdict) == (code, Verdict.ERROR)
    assert report.findings[0].next_step
    assert {finding.verdict for finding in report.findings[1:]} == {Verdict.SKIP}
    assert report.gates == ()
    assert report.frozen_stack is not None
    assert report.frozen_stack.frameworks == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 5000,
        bytes(range(256)) * 100,
        b"exec /opt/venv/bin/python: no such file or directory\n",
        MARK + b'{"event": "suite"}\n',
        MARK + b'{"event": "suite", "python": "3", "bound": [1]}\n',
        MARK + b"[]\n" + MARK + b"null\n" + MARK + b'"x"\n',
        b"\xff\xfe\x00",
    ],
)
def test_a_file_that_is_no_output_is_an_error_with_what_it_says(content: bytes) -> None:
    report = collect(content, _image())
    assert report.findings[0].code == "collected-unreadable"
    assert not report.complete


def test_megabytes_of_log_between_results_are_no_harm() -> None:
    noise = b"x" * 1_000_000 + b"\n" + b"\xff\x00" * 500_000 + b"\n"
    lines = _output().splitlines(keepends=True)
    report = collect(lines[0] + noise.join(lines[1:]), _image())
    assert report.findings == collect(_output(), _image()).findings
    assert report.log_bytes > 10_000_000
    assert len(report.log) <= 64 * 1024


def test_too_old_a_python_is_said_as_for_a_container_here() -> None:
    content = MARK + b'{"event": "python-too-old", "version": "3.6.8"}\n'
    assert collect(content, _image()).findings[0].code == "python-too-old-for-suite"
