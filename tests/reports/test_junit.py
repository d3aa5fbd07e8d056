"""JUnit XML, as CI systems read it."""

from __future__ import annotations

from collections import Counter

import pytest
from defusedxml import ElementTree

from stackbuild.reports.junit import render_junit
from tests.reports.documents import HOSTILE, USUAL


def test_every_finding_is_a_case_and_verdicts_are_what_ci_shows() -> None:
    root = ElementTree.fromstring(render_junit(USUAL))
    assert root.tag == "testsuites"
    assert set(root.attrib) == {"name", "tests", "failures", "errors", "time"}, "the schema knows no others"
    (suite,) = root
    assert suite.attrib == {
        "name": "verify torch-cpu:latest",
        "tests": "6",
        "failures": "1",
        "errors": "1",
        "skipped": "2",
        "time": "3.210",
        "timestamp": "2026-11-30T12:00:00",
    }
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases == {
        "torch-matmul": [],
        "ort-version [onnxruntime]": ["failure"],
        "python-version": ["system-out"],
        "ort-session": ["error"],
        "nvml-agrees": ["skipped"],
        "mixed-cuda-majors": ["skipped"],
    }
    failure = suite.find(".//failure")
    assert failure.get("message") == "onnxruntime is 1.31.1, promised is 1.30.0"
    assert failure.get("type") == "ort-version"
    assert "next step: Build again from the lock." in failure.text
    assert suite.find("system-out").text == "first line\nlast line\n"


def test_the_order_of_elements_is_the_schemas() -> None:
    root = ElementTree.fromstring(render_junit(USUAL))
    assert [child.tag for child in root[0]] == ["properties", *["testcase"] * 6, "system-out"]
    properties = {entry.get("name"): entry.get("value") for entry in root.iter("property")}
    assert properties["GPUs"] == "none"
    assert properties["stack.kernel"] == "6.1.0-18"
    assert properties["complete"] == "false"


def test_strict_makes_a_warning_a_failure_as_the_exit_code_does() -> None:
    root = ElementTree.fromstring(render_junit(USUAL, strict=True))
    assert root.get("failures") == "2"
    failed = Counter(failure.get("type") for failure in root.iter("failure"))
    assert failed == {"ort-version": 1, "python-version": 1}


def test_text_of_an_image_stays_text() -> None:
    text = render_junit(HOSTILE)
    assert not [char for char in text if ord(char) < 0x20 and char != "\n"]
    text.encode("utf-8")
    root = ElementTree.fromstring(text)
    assert {element.tag for element in root.iter()} == {
        "testsuites",
        "testsuite",
        "properties",
        "property",
        "testcase",
        "failure",
        "skipped",
        "system-out",
    }
    assert "<script>" in root.find(".//failure").text


@pytest.mark.parametrize("log", ["\x00" * 100, bytes(range(256)).decode("utf-8", "replace")])
def test_a_log_of_any_bytes_can_be_read_back(log: str) -> None:
    document = HOSTILE.__class__(title="t", headline=(), parts=USUAL.parts, complete=True, log=log)
    assert ElementTree.fromstring(render_junit(document)).find(".//system-out") is not None
