"""Verification on simulated GPU hosts: drivers against images, by hook and by CDI, and broken hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.progress import SilentObserver
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.promise import Promise
from stackbuild.verification.verify import VerifyOptions, verify_image
from tests.simulated_gpu.compile import libcuda
from tests.simulated_gpu.images import python_image

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.verification.model import VerificationReport
    from tests.simulated_gpu.fixtures import OnSimulatedHost

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROMISE = Promise(source="nothing", device="cuda", python="3.11")
CUDA = {"CUDA_VERSION": "12.8.1", "NVIDIA_REQUIRE_CUDA": "cuda>=12.8"}
HOSTS = {
    "470": "driver-470-t4.yaml",
    "535": "driver-535-two-l4.yaml",
    "550": "driver-550-a100.yaml",
    "580": "driver-580-h100.yaml",
}
IMAGES = {"11.8": "11.8.0", "12.4": "12.4.1", "12.8": "12.8.1", "13.0": "13.0.1"}
# The driver's answer where nothing but the driver decides: N native, M minor-version compatible, - neither.
ANSWERS = {
    "470": "M - - -",
    "535": "N M M -",
    "550": "N N M -",
    "580": "N N N N",
}
VERDICTS = {"N": Verdict.PASS, "M": Verdict.WARN, "-": Verdict.FAIL}


@pytest.mark.parametrize("driver", HOSTS)
def test_by_cdi_where_nobody_else_checks_the_driver_is_judged(
    simulated_host: OnSimulatedHost, driver: str
) -> None:
    with simulated_host(HOSTS[driver], injection="cdi") as engine:
        for cuda, answer in zip(IMAGES, ANSWERS[driver].split(), strict=True):
            image = python_image(
                engine,
                environment={"CUDA_VERSION": IMAGES[cuda], "NVIDIA_REQUIRE_CUDA": f"cuda>={cuda}"},
            )
            report = _verified(engine, image, injection="cdi")
            assert report.injection == "cdi"
            found = [f for f in report.findings if f.code == "driver-too-old" and "base" in f.subject]
            assert [f.verdict for f in found] == [VERDICTS[answer]], (cuda, found)
            assert _one(report, "cuda-init").verdict is Verdict.PASS


@pytest.mark.parametrize("driver", HOSTS)
def test_by_hook_an_image_that_the_toolkit_refuses_fails_as_by_cdi(
    simulated_host: OnSimulatedHost, driver: str
) -> None:
    with simulated_host(HOSTS[driver]) as engine:
        for cuda, answer in zip(IMAGES, ANSWERS[driver].split(), strict=True):
            image = python_image(
                engine,
                environment={"CUDA_VERSION": IMAGES[cuda], "NVIDIA_REQUIRE_CUDA": f"cuda>={cuda}"},
            )
            report = _verified(engine, image)
            assert report.injection == "hook"
            first = report.findings[0]
            if answer == "N":
                assert _one(report, "cuda-init").verdict is Verdict.PASS
            else:
                # The toolkit knows no minor-version compatibility: it goes by the variable alone.
                assert (first.code, first.verdict) == ("driver-too-old", Verdict.FAIL)
                assert first.required == f"cuda>={cuda}"


def test_a_host_on_which_all_is_well(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["580"]) as engine:
        report = _verified(engine, python_image(engine, environment={"CUDA_VERSION": "13.0.1"}))
        bad = [f for f in report.findings if f.verdict in (Verdict.FAIL, Verdict.ERROR)]
        assert bad == []
        assert "NVIDIA H100 80GB HBM3 (9.0" in _one(report, "devices-as-reserved").summary
        assert "driver 580.95.05, CUDA 13.0" in _one(report, "nvml-agrees").summary


def test_a_wrong_count_is_told(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["535"], failures=("wrong-count",)) as engine:
        report = _verified(engine, python_image(engine), gpus=GpuSelection(count=2))
        found = _one(report, "devices-as-reserved")
        assert (found.verdict, found.summary) == (Verdict.ERROR, "2 GPUs were reserved, CUDA shows 1")


def test_nodes_that_only_root_can_open(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["535"], failures=("unreadable-device-nodes",)) as engine:
        report = _verified(engine, python_image(engine, user="1234"))
        assert _one(report, "device-nodes").verdict is Verdict.FAIL
        assert "uid 1234" in _one(report, "device-nodes").measured
        assert _one(report, "cuda-init").verdict is Verdict.ERROR
        as_root = _verified(engine, python_image(engine, user="1234"), user="0")
        assert _one(as_root, "device-nodes").verdict is Verdict.PASS


def test_a_stub_in_place_of_libcuda(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["535"], failures=("stub-libcuda",)) as engine:
        report = _verified(engine, python_image(engine))
        assert _one(report, "stub-on-runtime-path").verdict is Verdict.FAIL


def test_a_compat_library_on_geforce(simulated_host: OnSimulatedHost) -> None:
    compat = {"usr/local/cuda/compat/libcuda.so.1": libcuda(driver="575.57.08", cuda=12090)}
    environment = {"LD_LIBRARY_PATH": "/usr/local/cuda/compat", "CUDA_VERSION": "12.2.2"}
    with simulated_host("driver-550-rtx-4090.yaml") as engine:
        report = _verified(engine, python_image(engine, files=compat, environment=environment))
        assert _one(report, "compat-lib-on-unsupported-gpu").verdict is Verdict.FAIL
        assert "(804)" in _one(report, "cuda-init").summary
    with simulated_host(HOSTS["535"]) as engine:
        report = _verified(engine, python_image(engine, files=compat, environment=environment))
        assert _one(report, "compat-lib-on-unsupported-gpu").verdict is Verdict.PASS
        assert _one(report, "cuda-init").verdict is Verdict.PASS


def test_i05_a_reservation_without_compute(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["535"]) as engine:
        gpus = GpuSelection(count=-1, capabilities=("utility",))
        report = _verified(engine, python_image(engine), gpus=gpus)
        assert _one(report, "no-compute-capability").verdict is Verdict.FAIL
        assert report.gpus == "all with utility"


def test_i01_a_closed_device_cgroup(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["535"], failures=("no-cgroups",)) as engine:
        report = _verified(engine, python_image(engine))
        assert _one(report, "no-cgroups-rootful").verdict is Verdict.ERROR


def test_an_nvml_of_another_release(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["535"], failures=("nvml-mismatch",)) as engine:
        report = _verified(engine, python_image(engine))
        assert _one(report, "nvml-driver-library-mismatch").verdict is Verdict.ERROR


def test_a_host_without_a_driver(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["535"], failures=("no-driver",)) as engine:
        first = _verified(engine, python_image(engine)).findings[0]
        assert (first.code, first.verdict) == ("gpu-request-refused", Verdict.ERROR)


def test_a_device_that_does_not_exist(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["535"]) as engine:
        report = _verified(engine, python_image(engine), gpus=GpuSelection(device_ids=("7",)))
        assert report.findings[0].code == "gpu-request-refused"
        assert "7" in report.findings[0].summary


def test_all_ways_are_compared_and_differ_where_cdi_checks_nothing(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS["550"], injection="cdi") as engine:
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
