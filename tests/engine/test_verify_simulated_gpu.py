"""Verification on simulated GPU hosts: what is asked of the reservation, and what differs by injection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.progress import SilentObserver
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.promise import Promise
from stackbuild.verification.verify import VerifyOptions, verify_image
from tests.simulated_gpu.images import python_image

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.verification.model import VerificationReport
    from tests.simulated_gpu.fixtures import OnSimulatedHost

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROMISE = Promise(source="nothing", device="cuda", python="3.11")
CUDA = {"CUDA_VERSION": "12.8.1", "NVIDIA_REQUIRE_CUDA": "cuda>=12.8"}
TWO_L4 = "driver-535-two-l4.yaml"


def test_nodes_that_only_root_can_open(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(TWO_L4, failures=("unreadable-device-nodes",)) as engine:
        report = _verified(engine, python_image(engine, user="1234"))
        assert _one(report, "device-nodes").verdict is Verdict.FAIL
        assert "uid 1234" in _one(report, "device-nodes").measured
        assert _one(report, "cuda-init").verdict is Verdict.ERROR
        as_root = _verified(engine, python_image(engine, user="1234"), user="0")
        assert _one(as_root, "device-nodes").verdict is Verdict.PASS


def test_i05_a_reservation_without_compute(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(TWO_L4) as engine:
        gpus = GpuSelection(count=-1, capabilities=("utility",))
        report = _verified(engine, python_image(engine), gpus=gpus)
        assert _one(report, "no-compute-capability").verdict is Verdict.FAIL
        assert report.gpus == "all with utility"


def test_all_ways_are_compared_and_differ_where_cdi_checks_nothing(simulated_host: OnSimulatedHost) -> None:
    with simulated_host("driver-550-a100.yaml", injection="cdi") as engine:
        same = _verified(
            engine, python_image(engine, environment={"CUDA_VERSION": "12.4.1"}), injection="all"
        )
        assert _one(same, "injection-modes-agree").verdict is Verdict.PASS
        assert same.injection == "all"
        image = python_image(engine, environment=CUDA)
        differing = _one(_verified(engine, image, injection="all"), "injection-modes-agree")
        assert differing.verdict is Verdict.WARN
        assert "by hook" in differing.summary


def _verified(engine: Engine, image: str, **options: Any) -> VerificationReport:
    chosen = {"gpus": GpuSelection(count=-1), **options}
    return verify_image(engine, image, PROMISE, VerifyOptions(**chosen), SilentObserver())


def _one(report: VerificationReport, code: str) -> Finding:
    found = [finding for finding in report.findings if finding.code == code]
    assert len(found) == 1, [(f.code, f.verdict, f.summary) for f in report.findings]
    return found[0]
