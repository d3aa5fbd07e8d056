"""How GPUs reach a container: what each way asks of the engine, which are tried, and how runs compare."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stackbuild.engine.models import EngineInfo
from stackbuild.findings import Finding, Verdict
from stackbuild.host.model import Host
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.injection import Injected, candidate_modes, injected, unavailable
from stackbuild.verification.model import SuiteRun
from stackbuild.verification.modes import ModeRun, merged_findings

TWO = GpuSelection(device_ids=("GPU-1", "GPU-2"))
ENGINE = EngineInfo("28.5.2", "overlay2", False, True, ("nvidia", "runc"), "x86_64", "ID")
OLD = replace(ENGINE, cdi=False, runtimes=("runc",))


def test_the_hook_is_the_engines_own_request() -> None:
    (request,) = injected("hook", GpuSelection(count=-1)).device_requests
    assert (request.driver, request.count) == ("", -1)
    assert request.capabilities == (("gpu", "compute", "utility"),)


@pytest.mark.parametrize(
    ("gpus", "devices"),
    [
        (GpuSelection(count=-1), ("all",)),
        (GpuSelection(count=2), ("0", "1")),
        (TWO, ("GPU-1", "GPU-2")),
    ],
)
def test_runtime_and_cdi_name_the_devices(gpus: GpuSelection, devices: tuple[str, ...]) -> None:
    by_runtime = injected("runtime", gpus)
    assert by_runtime.runtime == "nvidia"
    assert by_runtime.device_requests == ()
    assert by_runtime.environment["NVIDIA_VISIBLE_DEVICES"] == ",".join(devices)
    assert "compute" in by_runtime.environment["NVIDIA_DRIVER_CAPABILITIES"]
    (request,) = injected("cdi", gpus).device_requests
    assert request.driver == "cdi"
    assert request.device_ids == tuple(f"nvidia.com/gpu={device}" for device in devices)


def test_no_gpu_asks_for_nothing() -> None:
    assert injected("cdi", GpuSelection()) == Injected()


def test_what_the_engine_cannot_do_is_not_tried() -> None:
    assert candidate_modes(ENGINE, None) == ("hook", "runtime", "cdi")
    assert candidate_modes(OLD, None) == ("hook",)
    assert "runtime nvidia" in unavailable("runtime", OLD)
    assert "CDI" in unavailable("cdi", OLD)


def test_the_hosts_card_says_which_comes_first() -> None:
    assert candidate_modes(ENGINE, Host(injection="cdi"))[0] == "cdi"
    assert candidate_modes(ENGINE, Host(injection="csv"))[0] == "runtime"
    assert candidate_modes(ENGINE, Host(injection="legacy"))[0] == "hook"


def test_runs_that_agree_and_runs_that_do_not() -> None:
    passed = Finding(code="driver-too-old", verdict=Verdict.PASS, summary="native", subject="torch")
    failed = passed.model_copy(update={"verdict": Verdict.FAIL})
    same = merged_findings([_run("hook", passed), _run("cdi", passed)], {"runtime": "not there"})
    assert (same[0].code, same[0].verdict) == ("injection-modes-agree", Verdict.PASS)
    assert [found.subject for found in same[1:]] == ["hook: torch", "cdi: torch"]

    differing, *_ = merged_findings([_run("hook", failed), _run("cdi", passed)], {})
    assert differing.verdict is Verdict.WARN
    assert "driver-too-old torch is FAIL by hook, PASS by cdi" in differing.summary

    alone, *_ = merged_findings([_run("hook", passed)], {"cdi": "no CDI"})
    assert (alone.verdict, alone.applies) == (Verdict.SKIP, False)
    assert alone.details["absent"] == {"cdi": "no CDI"}


def _run(mode: str, *findings: Finding) -> ModeRun:
    return ModeRun(mode, SuiteRun(), findings)  # type: ignore[arg-type]
