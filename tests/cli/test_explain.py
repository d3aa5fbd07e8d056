"""``stackbuild explain`` from the shell."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from stackbuild.cli.main import run


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Explain = Callable[..., Answer]


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Explain:
    def asked(*arguments: str, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(["explain", *arguments])
        return Answer(code, *capsys.readouterr())

    return asked


def shell(*arguments: str, stdin: bytes) -> Answer:
    """As a process of its own."""
    command = [sys.executable, "-m", "stackbuild", "explain", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("code", ["driver-too-old", "lock-missing", "ort-session", "no-cgroups-rootful"])
def test_a_code_prints_its_page(explain: Explain, code: str) -> None:
    done = explain(code)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{code}: ")
    assert "\n  evidence " in done.stdout
    assert "\n  do " in done.stdout


def test_a_code_as_json(explain: Explain) -> None:
    document = json.loads(explain("driver-too-old", "--format", "json").stdout)
    (page,) = document["codes"]
    assert page["code"] == "driver-too-old"
    assert page["next-step"].startswith("Update the driver")


def test_a_mistyped_code_is_a_usage_error_that_names_near_ones(explain: Explain) -> None:
    done = explain("drvier-too-old")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "driver-too-old" in done.stderr
    assert "[unknown-code]" in done.stderr


def test_of_several_codes_the_known_are_explained_and_the_others_named(explain: Explain) -> None:
    done = explain("driver-too-old", "nonsense-code", "lock-mising", "lock-stale")
    assert done.returncode == 2
    assert [line.split(":")[0] for line in done.stdout.splitlines() if line[:1].isalpha()] == [
        "driver-too-old",
        "lock-stale",
    ]
    assert "There is no code 'nonsense-code' and no code 'lock-mising'" in done.stderr
    assert "Did you mean lock-missing for lock-mising?" in done.stderr


def test_nothing_is_suggested_for_what_is_near_to_nothing(explain: Explain) -> None:
    done = explain("nonsense-code")
    assert done.returncode == 2
    assert "Did you mean" not in done.stderr
    assert "docs/gates.md lists all codes." in done.stderr


def test_a_pasted_error_is_recognised_without_quotes_too(explain: Explain) -> None:
    quoted = explain("RuntimeError: CUDA error: no kernel image is available for execution on the device")
    unquoted = explain("no", "kernel", "image", "is", "available", "for", "execution", "on", "the device")
    assert quoted.returncode == unquoted.returncode == 0
    assert quoted.stdout.startswith("arch-not-covered\n")
    assert unquoted.stdout.startswith("arch-not-covered\n")


def test_a_log_on_stdin_with_bytes_that_are_no_text() -> None:
    log = (
        b"fine\n\xff\xfe\x00\n"
        + b"CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
    )
    document = json.loads(shell("--format", "json", stdin=log).stdout)
    (found,) = document["recognised"]
    assert found["code"] == "ptx-not-compilable"
    assert found["sightings"][0]["line"] == 3
    assert document["collect"] == []


def test_a_text_that_is_not_known_says_what_to_collect(explain: Explain) -> None:
    done = explain("-", stdin=b"Segmentation fault (core dumped)\n")
    assert done.returncode == 0
    assert "not recognised" in done.stdout
    assert "nvidia-smi" in done.stdout
    document = json.loads(explain("-", "--format", "json", stdin=b"Segmentation fault\n").stdout)
    assert document["recognised"] == []
    assert document["collect"]
