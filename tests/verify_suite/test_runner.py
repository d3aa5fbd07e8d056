"""The runner, with gates that crash, hang, are killed, print megabytes or lie."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.verify_suite.support import events_of, results_of, tiny


def test_a_worker_loads_once_and_each_gate_has_a_process_of_its_own(tmp_path: Path) -> None:
    gates = [
        tiny("load", loads=True),
        tiny("one", "well", needs=["load"], options={"device": "cpu"}),
        tiny("two", "well", needs=["load"]),
    ]
    results = results_of(tmp_path, gates)
    worker = results["load"]["measured"]["worker"]
    one, two = results["one"]["measured"], results["two"]["measured"]
    assert one["loaded"] == two["loaded"] == [worker]
    assert len({worker, one["pid"], two["pid"]}) == 3
    assert one["session"] == one["pid"]
    assert one["options"] == {"device": "cpu"}


@pytest.mark.parametrize(
    ("signal_name", "outcome"), [("SIGSEGV", "crashed"), ("SIGABRT", "crashed"), ("SIGKILL", "killed")]
)
def test_a_gate_that_dies_is_told_by_its_signal_and_the_next_one_runs(
    tmp_path: Path, signal_name: str, outcome: str
) -> None:
    gates = [tiny("dies", options={"signal": signal_name}), tiny("well")]
    results = results_of(tmp_path, gates)
    assert results["dies"]["outcome"] == outcome
    assert results["dies"]["signal_name"] == signal_name
    assert results["well"]["outcome"] == "measured"


def test_an_exception_is_told_with_its_words(tmp_path: Path) -> None:
    results = results_of(tmp_path, [tiny("raises"), tiny("exits")])
    assert results["raises"]["outcome"] == "raised"
    assert results["raises"]["error"]["type"] == "RuntimeError"
    assert results["raises"]["error"]["message"] == "no kernel image is available"
    assert "tiny_gates.py" in results["raises"]["error"]["traceback"]
    assert results["exits"]["error"] == {
        "type": "SystemExit",
        "message": "driver too old",
        "traceback": results["exits"]["error"]["traceback"],
    }


def test_a_gate_that_leaves_without_an_answer_has_crashed_even_with_exit_code_0(tmp_path: Path) -> None:
    results = results_of(tmp_path, [tiny("vanishes"), tiny("well")])
    assert results["vanishes"]["outcome"] == "crashed"
    assert results["vanishes"]["exit_code"] == 0
    assert results["well"]["outcome"] == "measured"


def test_a_gate_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    results = results_of(tmp_path, [tiny("hangs", limit=2), tiny("well")])
    assert time.monotonic() - began < 50, "it was waited for"
    assert results["hangs"]["outcome"] == "hung"
    assert results["hangs"]["limit"] == 2
    child = int(results["hangs"]["output"].split()[1])
    _wait_until_gone(child)
    assert results["well"]["outcome"] == "measured"


def test_a_worker_that_hangs_while_it_loads_is_ended_and_what_needs_it_is_skipped(tmp_path: Path) -> None:
    gates = [
        tiny("hangs", limit=0.5, loads=True),
        tiny("dependent", "well", needs=["hangs"]),
        tiny("independent", "well"),
    ]
    results = results_of(tmp_path, gates)
    assert results["hangs"]["outcome"] == "hung"
    assert results["dependent"]["outcome"] == "skipped"
    assert results["dependent"]["needs"] == ["hangs"]
    assert results["independent"]["outcome"] == "measured"


def test_a_worker_that_dies_while_it_loads_tells_its_own_signal(tmp_path: Path) -> None:
    gates = [
        tiny("dies", loads=True, options={"signal": "SIGSEGV"}),
        tiny("dependent", "well", needs=["dies"]),
        tiny("independent", "well"),
    ]
    results = results_of(tmp_path, gates)
    assert (results["dies"]["outcome"], results["dies"]["signal_name"]) == ("crashed", "SIGSEGV")
    assert results["dependent"]["outcome"] == "skipped"
    assert results["independent"]["outcome"] == "measured"


def test_megabytes_of_garbage_on_stdout_are_counted_and_cut(tmp_path: Path) -> None:
    result = results_of(tmp_path, [tiny("shouts")])["shouts"]
    assert result["outcome"] == "measured"
    assert result["output_bytes"] == 200 * 65536 + len("first words\n") + len("\nlast words\n")
    assert result["output"].startswith("first words\n")
    assert result["output"].endswith("last words\n")
    assert "bytes left out" in result["output"]
    assert len(result["output"]) < 20_000


def test_a_gate_cannot_forge_another_ones_result(tmp_path: Path) -> None:
    events = events_of(tmp_path, [tiny("forges"), tiny("dies", options={"signal": "SIGSEGV"})])
    told = {event["name"]: event["outcome"] for event in events if event["event"] == "gate"}
    assert told == {"forges": "measured", "dies": "crashed"}


def test_an_answer_that_is_too_large_is_refused(tmp_path: Path) -> None:
    result = results_of(tmp_path, [tiny("bloats")])["bloats"]
    assert result["outcome"] == "garbled"
    assert "at most 8388608" in result["reason"]


def test_a_gate_that_reads_standard_input_does_not_eat_the_next_request(tmp_path: Path) -> None:
    results = results_of(tmp_path, [tiny("reads_input"), tiny("well")])
    assert results["reads_input"]["measured"] == {"read": ""}
    assert results["well"]["outcome"] == "measured"


def test_a_process_left_behind_does_not_hold_up_the_run(tmp_path: Path) -> None:
    began = time.monotonic()
    results = results_of(tmp_path, [tiny("leaves_child"), tiny("well")])
    assert time.monotonic() - began < 50, "it was waited for"
    assert results["leaves_child"]["measured"] == {"left": True}


def test_workers_run_side_by_side(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    options = {"folder": str(place), "number": 3}
    gates = [tiny(worker, "meets", worker=worker, options=options) for worker in ("one", "two", "three")]
    results = results_of(tmp_path, gates)
    assert [result["outcome"] for result in results.values()] == ["measured"] * 3


def test_each_gate_is_announced_before_its_result(tmp_path: Path) -> None:
    events = events_of(tmp_path, [tiny("one", "well"), tiny("two", "well")])
    assert [(event["event"], event.get("name")) for event in events] == [
        ("suite", None),
        ("begin", "one"),
        ("gate", "one"),
        ("begin", "two"),
        ("gate", "two"),
        ("end", None),
    ]


def test_a_plan_whose_needs_come_later_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="gate one needs two, which no earlier gate is"):
        events_of(tmp_path, [tiny("one", "well", needs=["two"]), tiny("two", "well")])


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 50
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} still runs")
