"""The failure catalog recognises real texts, in the words that engines and tools put around them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.explain.recognise import LONGEST_LINE, OVERLAP, recognise
from stackbuild.facts.tables import Facts

# The parser of the standard library shows what a pattern may match; nothing else does.
parser = re._parser  # type: ignore[attr-defined]

FACTS = Facts()
ROWS = FACTS.table("failure_signatures").rows
FILES = sorted((Path(__file__).parent / "data").glob("*.yaml"))
TEXTS: list[tuple[str, dict[str, Any]]] = [
    (f"{file.stem}-{number}", entry)
    for file in FILES
    for number, entry in enumerate(YAML(typ="safe").load(file), start=1)
]


@pytest.mark.parametrize("entry", [entry for _, entry in TEXTS], ids=[name for name, _ in TEXTS])
def test_real_text(entry: dict[str, Any]) -> None:
    found = recognise(entry["text"].splitlines(), FACTS)
    assert [one.code for one in found] == entry["codes"]
    captured = [sighting.values for one in found for sighting in one.sightings]
    if "values" in entry:
        assert entry["values"] in captured


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_every_row_has_a_real_text(row: Any) -> None:
    texts = [line for _, entry in TEXTS for line in entry["text"].splitlines() if row.code in entry["codes"]]
    assert any(re.search(row.pattern, line) for line in texts)
    assert row.code in [one.code for one in recognise([row.signature], FACTS)]


def test_a_repeated_line_is_one_sighting_with_its_number() -> None:
    lines = ["fine", "RuntimeError: No CUDA GPUs are available", "RuntimeError: No CUDA GPUs are available"]
    first = recognise(lines, FACTS)[0]
    (sighting,) = first.sightings
    assert (sighting.line, sighting.times) == (2, 2)


def test_causes_come_before_symptoms_whatever_the_order_in_the_log() -> None:
    lines = [
        "Failed to create CUDAExecutionProvider.",
        "libcublasLt.so.12: cannot open shared object file: No such file or directory",
    ]
    assert [one.code for one in recognise(lines, FACTS)] == ["ort-cuda-major", "ort-silent-cpu-fallback"]


def test_failures_with_one_text_say_what_tells_them_apart() -> None:
    found = recognise(["Failed to initialize NVML: Unknown Error"], FACTS)
    assert len(found) == 3
    apart = [one.signature.apart for one in found]
    assert all(apart)
    assert len(set(apart)) == 3
    assert "no-cgroups" in next(one.signature.evidence for one in found if one.code == "no-cgroups-rootful")


def test_colour_and_windows_line_ends_do_not_hide_a_failure() -> None:
    line = "\x1b[31mAssertionError: Torch not \x1b[1mcompiled with CUDA enabled\x1b[0m\r\n"
    assert [one.code for one in recognise([line], FACTS)] == ["cpu-wheel-in-gpu-image"]


@pytest.mark.parametrize("before", [0, LONGEST_LINE - 40, LONGEST_LINE - OVERLAP, 3 * LONGEST_LINE + 7])
def test_a_failure_anywhere_in_an_endless_line_is_found(before: int) -> None:
    line = "x" * before + " AssertionError: Torch not compiled with CUDA enabled " + "y" * 50_000
    (found,) = recognise([line], FACTS)
    assert found.code == "cpu-wheel-in-gpu-image"
    assert found.sightings[0].times == 1
    assert len(found.sightings[0].text) < 500


# --- what keeps time linear, read from the patterns themselves


def steps(parsed: Any) -> int:
    """How many ways one start can be tried: bounds multiply in a sequence and add up over alternatives."""
    ways = 1
    for operation, argument in parsed:
        if operation in (parser.MAX_REPEAT, parser.MIN_REPEAT, parser.POSSESSIVE_REPEAT):
            most, inside = int(argument[1]), steps(argument[2])
            assert most <= 300, "every repetition has a bound"
            assert most == 1 or inside == 1, "no repetition inside another"
            ways *= max(1, most) * inside
        elif operation is parser.SUBPATTERN:
            ways *= steps(argument[3])
        elif operation is parser.BRANCH:
            ways *= max(1, sum(steps(branch) for branch in argument[1] if repeats(branch)))
    return ways


def repeats(parsed: Any) -> bool:
    return "MAX_REPEAT" in repr(list(parsed))


def literal_runs(parsed: Any) -> list[str]:
    """The literal texts that every match of this sequence holds."""
    runs = [""]
    for operation, argument in parsed:
        if operation is parser.LITERAL:
            runs[-1] += chr(argument)
        elif operation is parser.SUBPATTERN:
            inner = literal_runs(argument[3])
            runs[-1] += inner[0]
            runs += inner[1:]
        elif operation is not parser.AT:
            runs.append("")
    return runs


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_no_pattern_can_run_away(row: Any) -> None:
    parsed = parser.parse(row.pattern)
    assert steps(parsed) <= 10**6
    assert parsed.getwidth()[1] <= OVERLAP, "a match fits where two pieces of a line overlap"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_every_match_holds_one_of_the_words_looked_for_first(row: Any) -> None:
    parsed = list(parser.parse(row.pattern))
    single = len(parsed) == 1 and parsed[0][0] is parser.BRANCH
    for branch in parsed[0][1][1] if single else [parsed]:
        runs = literal_runs(branch)
        assert any(word in run for word in row.contains for run in runs)
    assert min(map(len, row.contains)) >= 3
