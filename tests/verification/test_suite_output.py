"""Reading the marked stream, however it is cut into chunks."""

from __future__ import annotations

import json

import pytest

from stackbuild.verification.suite_output import SuiteOutput

EVENTS = [
    {"event": "suite", "version": "1", "python": "3.11.2"},
    {"event": "begin", "name": "interpreter"},
    {"event": "gate", "name": "interpreter", "outcome": "measured", "seconds": 0.1, "measured": {"uid": 0}},
    {"event": "gate", "name": "dies", "outcome": "crashed", "signal": 11, "signal_name": "SIGSEGV"},
    {"event": "end", "gates": 2},
]
STREAM = b"a banner\n" + b"".join(b"@stackbuild@ " + json.dumps(event).encode() + b"\n" for event in EVENTS)


@pytest.mark.parametrize("size", [1, 7, 64, len(STREAM)])
def test_chunks_of_any_size_give_the_same_results(size: int) -> None:
    begun: list[str] = []
    output = SuiteOutput(begun.append)
    for start in range(0, len(STREAM), size):
        output.feed(STREAM[start : start + size])
    output.close()
    assert begun == ["interpreter"]
    assert set(output.results) == {"interpreter", "dies"}
    assert output.results["dies"].signal_name == "SIGSEGV"
    assert output.python == "3.11.2"
    assert output.finished
    assert output.log == "a banner\n"


def test_a_stream_that_was_cut_is_not_finished_and_its_last_line_is_log() -> None:
    output = SuiteOutput()
    output.feed(STREAM[:-20])
    output.close()
    assert not output.finished
    assert set(output.results) == {"interpreter", "dies"}
    assert output.log.startswith("a banner\n@stackbuild@ ")


def test_megabytes_beside_the_results_are_counted_and_cut() -> None:
    output = SuiteOutput()
    for _ in range(40):
        output.feed(b"x" * 1024 * 1024)
    output.feed(b"\n" + STREAM, b"a last word on stderr\n")
    output.close()
    assert output.finished
    assert output.log_bytes > 40 * 1024 * 1024
    assert len(output.log) <= 64 * 1024
    assert output.log.endswith("a banner\n")


@pytest.mark.parametrize(
    "line",
    [
        b"@stackbuild@ not json",
        b'@stackbuild@ {"no": "event"}',
        b'@stackbuild@ {"event": "gate", "name": "x"}',
    ],
)
def test_a_line_that_cannot_be_read_is_no_result(line: bytes) -> None:
    output = SuiteOutput()
    output.feed(line + b"\n")
    assert output.results == {}
    assert output.log == line.decode() + "\n"
