"""``verify --local``: the suite in a Python of this machine."""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path

import pytest

from stackbuild.errors import UsageError
from stackbuild.findings import Verdict
from stackbuild.progress import SilentObserver
from stackbuild.verification.local import relocated, verify_environment
from stackbuild.verification.options import VerifyOptions
from stackbuild.verification.plan import PlannedGate, plan_gates
from stackbuild.verification.promise import Promise
from tests.verification.support import cpu_promise

NOTHING = Promise(source="nothing")


def test_an_environment_is_judged_and_the_report_says_that_it_is_no_image() -> None:
    report = verify_environment(Path(sys.executable), NOTHING, VerifyOptions(), SilentObserver())
    verdicts = {finding.code: finding.verdict for finding in report.findings}
    assert verdicts["dependencies-consistent"] in (Verdict.PASS, Verdict.FAIL)
    assert report.ran == "local"
    assert report.image.id == ""
    assert report.title == "verify this environment"
    assert report.headline[0] == ("environment", f"{sys.executable}: an environment, not an image")
    assert report.frozen_stack is not None
    assert report.frozen_stack.python == f"CPython {platform.python_version()}"
    assert report.frozen_stack.container_engine == ""
    assert {gate.name for gate in report.gates} >= {"interpreter", "distributions"}


def test_a_promise_is_judged_as_in_a_container() -> None:
    report = verify_environment(
        Path(sys.executable), cpu_promise(python="3.4.0"), VerifyOptions(), SilentObserver()
    )
    found = {finding.code: finding for finding in report.findings}
    assert found["python-version"].verdict is Verdict.FAIL
    assert found["dists-match-lock"].verdict is Verdict.FAIL


def test_the_containers_folders_become_this_runs() -> None:
    gate = PlannedGate(
        "x",
        "w",
        "f",
        options={"model": "/run/stackbuild/suite/m", "profile_folder": "/run/stackbuild/results", "seed": 1},
    )
    (moved,) = relocated([gate], "/s", "/r")
    assert moved.options == {"model": "/s/m", "profile_folder": "/r", "seed": 1}
    planned = plan_gates(cpu_promise(), VerifyOptions().gpus)
    assert not [
        value
        for gate in relocated(planned, "/s", "/r")
        for value in gate.options.values()
        if "/run/" in str(value)
    ]


def test_past_the_limit_nothing_is_left_running(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    stuck = tmp_path / "python"
    stuck.write_text(f"#!/bin/sh\nsleep 600 & echo $! >{pid}\nwait\n")
    stuck.chmod(0o755)
    began = time.monotonic()
    report = verify_environment(stuck, NOTHING, VerifyOptions(limit=1), SilentObserver())
    assert time.monotonic() - began < 50, "it was waited for"
    assert report.findings[0].code == "verify-timeout"
    assert _ends(int(pid.read_text()))


def test_what_a_suite_that_has_ended_left_running_is_ended_at_the_limit(tmp_path: Path) -> None:
    """It keeps the output open, which would be read for as long as it likes."""
    pid = tmp_path / "pid"
    gone = tmp_path / "python"
    gone.write_text(f"#!/bin/sh\nsleep 600 & echo $! >{pid}\n")
    gone.chmod(0o755)
    began = time.monotonic()
    verify_environment(gone, NOTHING, VerifyOptions(limit=1), SilentObserver())
    assert time.monotonic() - began < 50, "it was waited for"
    assert _ends(int(pid.read_text()))


def _ends(pid: int) -> bool:
    """Whether a process that was killed ends, which the kernel takes a moment for."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_an_interpreter_that_is_none_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        verify_environment(tmp_path / "none", NOTHING, VerifyOptions(), SilentObserver())
    assert caught.value.code == "python-not-found"


def test_an_interpreter_that_prints_anything_is_judged(tmp_path: Path) -> None:
    odd = tmp_path / "python"
    odd.write_text("#!/bin/sh\nhead -c 3000000 /dev/zero\nprintf '\\377\\033[31m'\nexit 3\n")
    odd.chmod(0o755)
    report = verify_environment(odd, NOTHING, VerifyOptions(), SilentObserver())
    assert report.findings[0].code == "image-without-python"
    assert report.log_bytes >= 3_000_000
    assert len(report.log) <= 64 * 1024
