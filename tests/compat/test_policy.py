"""Waivers and the site's policy: what is accepted, shown, and for how long."""

from __future__ import annotations

from datetime import date

import pytest

from stackbuild.compat.check import Subject, check
from stackbuild.compat.contents import Contents, Distribution
from stackbuild.compat.offer import described_offer
from stackbuild.compat.policy import judge_policy, with_severities, with_waivers
from stackbuild.errors import ExitCode
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict, exit_code_of
from stackbuild.site_policy import Policy
from stackbuild.spec.model import Waiver

TODAY = date(2026, 11, 30)
FACTS = Facts()


def finding(verdict: Verdict = Verdict.FAIL, **more: str) -> Finding:
    return Finding(
        **{
            "code": "arch-not-covered",
            "verdict": verdict,
            "subject": "libfoo.so",
            "summary": "libfoo.so has no code for sm_90.",
            **more,
        }
    )


def waiver(**more: object) -> Waiver:
    given = {
        "code": "arch-not-covered",
        "reason": "replaced in January",
        "owner": "maria",
        "until": date(2027, 3, 1),
    }
    return Waiver.model_validate({**given, **more})


# --- waivers


def test_a_waiver_makes_a_fail_a_warn_and_shows_reason_owner_and_date() -> None:
    (changed,) = with_waivers([finding()], [waiver()], TODAY)
    assert changed.verdict is Verdict.WARN
    assert changed.waived == "replaced in January (maria, until 2027-03-01)"
    assert changed.summary == finding().summary


def test_a_waived_warn_stays_a_warn_and_is_shown() -> None:
    (changed,) = with_waivers([finding(Verdict.WARN)], [waiver()], TODAY)
    assert (changed.verdict, bool(changed.waived)) == (Verdict.WARN, True)


@pytest.mark.parametrize("match", ["", "libfoo", "sm_90"])
def test_match_is_looked_for_in_subject_and_summary(match: str) -> None:
    (changed,) = with_waivers([finding()], [waiver(match=match)], TODAY)
    assert changed.waived


@pytest.mark.parametrize("other", [{"match": "libbar"}, {"code": "driver-too-old"}])
def test_another_match_or_code_waives_nothing_and_is_unused(other: dict[str, str]) -> None:
    kept, unused = with_waivers([finding()], [waiver(**other)], TODAY)
    assert kept == finding()
    assert (unused.code, unused.verdict) == ("waiver-unused", Verdict.FAIL)
    assert unused.details == {"reason": "replaced in January", "owner": "maria", "until": "2027-03-01"}


def test_a_waiver_holds_through_its_last_day() -> None:
    last, after = date(2027, 3, 1), date(2027, 3, 2)
    assert with_waivers([finding()], [waiver()], last)[0].verdict is Verdict.WARN
    failed, expired = with_waivers([finding()], [waiver()], after)
    assert failed.verdict is Verdict.FAIL
    assert (expired.code, expired.verdict) == ("waiver-expired", Verdict.FAIL)
    assert "2027-03-01" in expired.summary


def test_an_expired_waiver_is_not_also_called_unused() -> None:
    codes = [one.code for one in with_waivers([], [waiver(until=date(2026, 1, 1))], TODAY)]
    assert codes == ["waiver-expired"]


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.ERROR, Verdict.SKIP])
def test_what_could_not_be_judged_is_never_waived(verdict: Verdict) -> None:
    kept, unused = with_waivers([finding(verdict)], [waiver()], TODAY)
    assert kept == finding(verdict)
    assert unused.code == "waiver-unused"


def test_one_waiver_serves_many_findings_and_two_waivers_one_each() -> None:
    many = [finding(), finding(subject="libfoo2.so"), finding(code="driver-too-old")]
    changed = with_waivers(many, [waiver(match="libfoo"), waiver(code="driver-too-old")], TODAY)
    assert len(changed) == 3
    assert all(one.waived for one in changed)


# --- severities


@pytest.mark.parametrize("before", [Verdict.FAIL, Verdict.WARN])
@pytest.mark.parametrize("after", ["FAIL", "WARN", "PASS"])
def test_a_site_sets_how_grave_a_code_is(before: Verdict, after: str) -> None:
    policy = Policy.model_validate({"severities": {"arch-not-covered": after}})
    (changed,) = with_severities([finding(before)], policy)
    assert changed.verdict is Verdict(after)


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.ERROR, Verdict.SKIP])
def test_severities_never_touch_what_passed_or_was_not_judged(verdict: Verdict) -> None:
    policy = Policy.model_validate({"severities": {"arch-not-covered": "FAIL"}})
    assert with_severities([finding(verdict)], policy) == (finding(verdict),)


def test_severities_of_other_codes_change_nothing() -> None:
    policy = Policy.model_validate({"severities": {"driver-too-old": "WARN"}})
    assert with_severities([finding()], policy) == (finding(),)


def test_a_severity_cannot_be_error_or_skip() -> None:
    with pytest.raises(ValueError, match="severities"):
        Policy.model_validate({"severities": {"arch-not-covered": "SKIP"}})


# --- what a site allows


CONTENTS = Contents(
    "ours",
    base_image="nvidia/cuda",
    base_tag="13.0.1-base-ubuntu24.04",
    distributions=(
        Distribution("torch", "2.9.1+cu130", index="pytorch-cu130"),
        Distribution("numpy", "2.3.0", index="default"),
        Distribution("local", "1.0"),
    ),
)


def codes(contents: Contents, asked: str = "native", **policy: object) -> list[str]:
    return [one.code for one in judge_policy(contents, asked, Policy.model_validate(policy))]


def test_an_empty_policy_allows_everything() -> None:
    assert codes(CONTENTS, "forward") == []


def test_bases() -> None:
    assert codes(CONTENTS, **{"allowed-bases": ["nvidia/cuda", "debian"]}) == []
    assert codes(CONTENTS, **{"allowed-bases": ["debian"]}) == ["base-not-allowed"]
    # A bootstrapped base names no repository.
    assert codes(Contents("boot"), **{"allowed-bases": ["debian"]}) == []


def test_indexes_and_the_one_that_is_not_allowed_is_named() -> None:
    assert codes(CONTENTS, **{"allowed-indexes": ["default", "pytorch-cu130"]}) == []
    (found,) = judge_policy(CONTENTS, "native", Policy.model_validate({"allowed-indexes": ["default"]}))
    assert (found.code, found.measured) == ("index-not-allowed", "pytorch-cu130")


def test_compatibility() -> None:
    assert codes(CONTENTS, "minor", compatibility=["native", "minor"]) == []
    assert codes(CONTENTS, "forward", compatibility=["native", "minor"]) == ["compatibility-not-allowed"]


# --- all of it in a check


def checked(*waivers: Waiver, **policy: object) -> tuple[list[tuple[str, str]], int]:
    contents = Contents(
        "ours", base_cuda=None, distributions=(Distribution("torch", "2.9.1+cu130"),), expects_gpu=True
    )
    hosts = [described_offer("580.65.06", ["V100"], FACTS), described_offer("580.65.06", ["H100"], FACTS)]
    report = check(
        [Subject(contents, "spec", accepts="native", waivers=waivers)],
        hosts,
        FACTS,
        Policy.model_validate(policy),
        TODAY,
    )
    told = [(one.code, str(one.verdict)) for one in report.findings if one.verdict is not Verdict.PASS]
    return told, int(exit_code_of(report.findings))


def test_without_waivers_the_old_gpu_fails() -> None:
    told, code = checked()
    assert ("gpu-dropped-by-toolkit", "FAIL") in told
    assert code == ExitCode.GATE_FAILED


def test_a_waiver_used_by_one_host_is_used() -> None:
    told, code = checked(
        waiver(code="gpu-dropped-by-toolkit", match="V100"), waiver(code="arch-not-covered", match="V100")
    )
    assert set(told) == {("gpu-dropped-by-toolkit", "WARN"), ("arch-not-covered", "WARN")}
    assert code == ExitCode.OK


def test_a_waiver_that_no_host_uses_fails_the_stack() -> None:
    told, code = checked(waiver(code="cudnn-major-conflict"))
    assert ("waiver-unused", "FAIL") in told
    assert code == ExitCode.GATE_FAILED


def test_severities_come_before_waivers() -> None:
    # What the site made a PASS needs no waiver any more.
    told, _ = checked(waiver(code="gpu-dropped-by-toolkit"), severities={"gpu-dropped-by-toolkit": "PASS"})
    assert ("waiver-unused", "FAIL") in told


def test_a_site_can_make_a_whole_check_pass() -> None:
    told, code = checked(severities={"gpu-dropped-by-toolkit": "WARN", "arch-not-covered": "WARN"})
    assert {verdict for _, verdict in told} == {"WARN"}
    assert code == ExitCode.OK
