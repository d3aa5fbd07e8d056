"""What can happen to a stack's inputs, each named for what it is and with its exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stackbuild.errors import ExitCode
from tests.engine.nights import NightProject, Nights, nights, one_night_project, verdicts
from tests.support.debs import make_deb
from tests.support.loopback import Misbehaviour
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.engine
__all__ = ["nights", "one_night_project"]  # fixtures


def _replaced(project: NightProject) -> None:
    make_wheel(project.wheels, "trunk", "1.0", files={"trunk.py": "VERSION = 'replaced'\n"})


def _limiting(project: NightProject) -> None:
    project.index.misbehave("/default/", Misbehaviour(status=429, headers={"Retry-After": "0"}))


# What happens → the wheel, how, code, verdict, outcome, exit code, what hinders a rebuild (empty: nothing does).
CASES: dict[str, tuple[str, Callable[[NightProject], None], str, str, str, ExitCode, str]] = {
    "wheel replaced under its name": (
        "trunk", _replaced, "artifact-changed", "FAIL", "spec-or-lock", ExitCode.SPEC_OR_LOCK,
        "trunk 1.0 cannot be had as locked",
    ),
    "wheel gone": (
        "sprig", lambda project: (project.wheels / "sprig-1.0-py3-none-any.whl").unlink(),
        "broken-upstream", "FAIL", "spec-or-lock", ExitCode.SPEC_OR_LOCK, "sprig 1.0 cannot be had as locked",
    ),
    "wheel yanked": (
        "bough", lambda project: project.index.yank("bough-1.0-py3-none-any.whl", "broken"),
        "wheel-yanked", "FAIL", "spec-or-lock", ExitCode.SPEC_OR_LOCK, "",
    ),
    "index limits its clients": (
        "twig", _limiting, "index-rate-limited", "ERROR", "not-judged", ExitCode.NOT_JUDGED,
        "index default could not be asked",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_happens_to_a_wheel_is_named(nights: Nights, case: str) -> None:
    wheel, happens, code, verdict, outcome, exit_code, hinders = CASES[case]
    project = nights.project
    name = project.write("wheels", wheels=[project.wheel(wheel, "1.0")])
    happens(project)
    ended, stack = nights.of(name)
    assert ended == exit_code
    assert stack.outcome == outcome
    assert verdicts(stack)[code] == verdict
    rebuilt = next(finding for finding in stack.findings if finding.code == "rebuild-reproduces")
    assert rebuilt.verdict == ("SKIP" if hinders else "PASS")
    assert hinders in rebuilt.summary
    assert bool(stack.diff_ids) is not bool(hinders)
    assert stack.complete is not bool(hinders)
    assert stack.tries == (2 if verdict == "ERROR" else 1), "only infrastructure is tried again"
    summary = next(finding.summary for finding in stack.findings if finding.code == code)
    table = nights.table(name)
    assert summary in table, "a person sees it at once"
    assert (rebuilt.summary if hinders else "rebuilt from nothing") in table


def test_a_deb_that_is_gone_asks_for_a_new_lock(nights: Nights, tmp_path: Path) -> None:
    project = nights.project
    deb = make_deb(tmp_path, "bark", "1.0")
    project.apt.add(deb)
    project.apt.write()
    name = project.write("debs", debs=[deb])
    project.apt.forget(deb.name)
    project.apt.add(make_deb(tmp_path, "bark", "1.1"))
    project.apt.write()
    code, stack = nights.of(name)
    assert (code, stack.outcome) == (3, "spec-or-lock")
    (finding,) = [finding for finding in stack.findings if finding.code == "deb-superseded"]
    assert finding.verdict == "FAIL"
    assert "bark" in f"{finding.subject} {finding.summary}"
    (rebuilt,) = [finding for finding in stack.findings if finding.code == "rebuild-reproduces"]
    assert rebuilt.summary == "not rebuilt: bark 1.0 cannot be had as locked"


def test_a_base_tag_that_is_deleted_is_no_drift(nights: Nights) -> None:
    project = nights.project
    name = project.write("deleted")
    project.delete_tag("busybox")
    try:
        code, stack = nights.of(name)
    finally:
        project.put_back("busybox")
    assert (code, stack.outcome) == (3, "spec-or-lock")
    assert verdicts(stack)["tag-removed"] == "FAIL"
    assert verdicts(stack)["rebuild-reproduces"] == "PASS", (
        "what is locked is there: it is built all the same"
    )


def test_a_base_tag_that_moved_is_drift_and_the_lock_still_builds(nights: Nights) -> None:
    project = nights.project
    name = project.write("moved")
    project.move_tag("busybox", CUDA_VERSION="13.0.0")
    try:
        code, stack = nights.of(name)
    finally:
        project.put_back("busybox")
    assert (code, stack.outcome) == (6, "drift")
    assert verdicts(stack)["base-tag-moved"] == "WARN"
    assert verdicts(stack)["rebuild-reproduces"] == "PASS"
    assert stack.drift is None
    code, stack = nights.of(name)
    assert (code, stack.outcome) == (0, "unchanged"), "the tag is back"


def test_an_index_that_limits_for_a_while_is_asked_again_at_the_end(nights: Nights) -> None:
    project = nights.project
    name = project.write("patient", wheels=[project.wheel("shoot", "1.0")])
    limited = Misbehaviour(status=429, headers={"Retry-After": "0"}, times=5)
    project.index.misbehave("/default/simple/shoot/", limited)
    code, stack = nights.of(name)
    assert (code, stack.outcome, stack.tries) == (0, "unchanged", 2)


def test_a_registry_that_limits_its_clients_is_no_drift_and_no_failure(nights: Nights) -> None:
    project = nights.project
    name = project.write("limited")
    limited = Misbehaviour(status=429, headers={"Retry-After": "0"}, times=4)
    project.front.misbehave("/manifests/", limited)
    code, stack = nights.of(name, "--retries", "0")
    assert (code, stack.outcome) == (5, "not-judged")
    assert verdicts(stack)["registry-rate-limited"] == "ERROR"
    assert verdicts(stack)["rebuild-reproduces"] == "PASS", (
        "the engine has the base: it is built all the same"
    )
