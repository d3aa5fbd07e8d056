"""Verification on simulated GPU hosts: drivers against the CUDA of images, and hosts on which something is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.progress import SilentObserver
from stackbuild.verification.gpus import GpuSelection, parse_gpus
from stackbuild.verification.options import VerifyOptions
from stackbuild.verification.promise import Promise
from stackbuild.verification.verify import verify_image
from tests.simulated_gpu.compile import libcuda, libcuda_stub
from tests.simulated_gpu.fixtures import OnSimulatedHost
from tests.simulated_gpu.host import load_host
from tests.simulated_gpu.images import python_image
from tests.support.nvidia_config import nvidia_configuration

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.verification.model import VerificationReport

pytestmark = pytest.mark.engine

PROMISE = Promise(source="spec", stack="cuda", device="cuda")
HOSTS = {
    470: "driver-470-t4.yaml",
    535: "driver-535-two-l4.yaml",
    550: "driver-550-a100.yaml",
    580: "driver-580-h100.yaml",
}
PASS, WARN, FAIL, ERROR = Verdict.PASS, Verdict.WARN, Verdict.FAIL, Verdict.ERROR
IMAGES = ("11.8.0", "12.4.1", "12.8.1", "13.0.1")
# Each driver against the CUDA of each image.
VERDICTS = {
    470: (WARN, FAIL, FAIL, FAIL),
    535: (PASS, WARN, WARN, FAIL),
    550: (PASS, PASS, WARN, FAIL),
    580: (PASS, PASS, PASS, PASS),
}


def cuda_image(engine: Engine, cuda: str = "12.4.1", **options: Any) -> str:
    """An image with the configuration of nvidia/cuda's base of that version."""
    configured = nvidia_configuration(f"{cuda}-base-ubuntu22.04")["Env"]
    environment = dict(entry.split("=", 1) for entry in configured if not entry.startswith("PATH="))
    added: Mapping[str, str] = options.pop("environment", {})
    return python_image(engine, environment=environment | dict(added), **options)


def verified(engine: Engine, image: str, injection: str = "hook", **options: Any) -> VerificationReport:
    chosen = {"gpus": GpuSelection(count=-1), "injection": injection} | options
    return verify_image(engine, image, PROMISE, VerifyOptions(**chosen), SilentObserver())


def found(report: VerificationReport, code: str, subject: str = "") -> Finding:
    """The one finding of a code, about a subject that begins so."""
    (only,) = (f for f in report.findings if f.code == code and f.subject.startswith(subject))
    return only


@pytest.mark.parametrize("driver", HOSTS)
def test_by_cdi_a_drivers_cuda_against_an_images_where_nobody_else_looks(
    simulated_host: OnSimulatedHost, driver: int
) -> None:
    with simulated_host(HOSTS[driver], injection="cdi") as engine:
        reports = [verified(engine, cuda_image(engine, cuda), "cdi") for cuda in IMAGES]

    assert (
        tuple(found(report, "driver-too-old", "base image").verdict for report in reports)
        == (VERDICTS[driver])
    )
    assert all(found(report, "cuda-init").verdict is PASS for report in reports)


@pytest.mark.parametrize(
    ("driver", "cuda", "verdict"),
    [(470, "11.8.0", WARN), (535, "12.8.1", WARN), (535, "13.0.1", FAIL), (580, "13.0.1", PASS)],
)
def test_by_the_hook_an_image_that_it_lets_through_is_judged_all_the_same(
    simulated_host: OnSimulatedHost, driver: int, cuda: str, verdict: Verdict
) -> None:
    with simulated_host(HOSTS[driver]) as engine:
        report = verified(engine, cuda_image(engine, cuda))

    assert found(report, "driver-too-old", "base image").verdict is verdict
    assert found(report, "driver-too-old", "NVIDIA_REQUIRE_CUDA").verdict is PASS


@pytest.mark.parametrize(("host", "cuda"), [(HOSTS[470], "13.0.1"), ("driver-550-rtx-4090.yaml", "12.8.1")])
def test_what_the_hook_refuses_is_the_images_demand(
    simulated_host: OnSimulatedHost, host: str, cuda: str
) -> None:
    with simulated_host(host) as engine:
        report = verified(engine, cuda_image(engine, cuda))

    refused = found(report, "driver-too-old")
    assert (refused.verdict, refused.required) == (FAIL, f"cuda>={cuda.rpartition('.')[0]}")
    assert found(report, "cuda-init").verdict is Verdict.SKIP


@pytest.mark.parametrize("injection", ["hook", "runtime", "cdi"])
def test_on_a_sound_host_every_gate_about_reaching_the_gpu_passes(
    simulated_host: OnSimulatedHost, injection: str
) -> None:
    with simulated_host(HOSTS[580], injection="cdi" if injection == "cdi" else "hook") as engine:
        report = verified(engine, cuda_image(engine, "13.0.1"), injection)

    reached = ("device-nodes", "libcuda-not-in-container", "cuda-init", "nvml-agrees", "devices-as-reserved")
    assert {code: found(report, code).verdict for code in reached} == dict.fromkeys(reached, PASS)
    assert "NVIDIA H100 80GB HBM3 (9.0, 85.5 GB)" in found(report, "devices-as-reserved").summary
    assert report.injection == injection


@pytest.mark.parametrize(
    ("failure", "injection", "code", "verdict", "words"),
    [
        ("unreadable-device-nodes", "cdi", "device-nodes", FAIL, "is 0600 of 0:0"),
        ("no-cgroups", "hook", "device-nodes", ERROR, "device cgroup is closed"),
        ("nvml-mismatch", "cdi", "nvml-driver-library-mismatch", ERROR, "Driver/library version mismatch"),
        ("hook-nvml-mismatch", "hook", "gpu-request-refused", ERROR, "driver/library version mismatch"),
        ("no-driver", "hook", "gpu-request-refused", ERROR, "libnvidia-ml.so.1"),
        ("nvml-mismatch", "cdi", "cuda-init", ERROR, "as NVML says too"),
        ("uvm-missing", "cdi", "cuda-init", ERROR, "CUDA_ERROR_UNKNOWN (999)"),
        ("stub-libcuda", "cdi", "stub-on-runtime-path", FAIL, "stub"),
        ("wrong-count", "hook", "devices-as-reserved", ERROR, "2 GPUs were reserved, CUDA shows 1"),
    ],
)
def test_what_is_wrong_with_a_host_is_found(
    simulated_host: OnSimulatedHost, failure: str, injection: str, code: str, verdict: Verdict, words: str
) -> None:
    user = "1000" if failure == "unreadable-device-nodes" else None
    gpus = parse_gpus("2" if injection == "hook" else "all")
    with simulated_host(HOSTS[535], injection=injection, failures=(failure,)) as engine:
        report = verified(engine, cuda_image(engine), injection, gpus=gpus, user=user)

    said = found(report, code)
    assert said.verdict is verdict
    assert words in said.summary
    assert not report.complete


def test_mig_mode_without_an_instance_is_named(simulated_host: OnSimulatedHost) -> None:
    host = load_host(HOSTS[550])
    gpu = host.gpus[0].model_copy(update={"mig_without_devices": True})
    with simulated_host(host, injection="cdi", gpus=(gpu,)) as engine:
        report = verified(engine, cuda_image(engine), "cdi")

    assert found(report, "mig-no-instance").verdict is ERROR
    assert (
        "NVIDIA A100-SXM4-40GB is in MIG mode and has no instance" in found(report, "mig-no-instance").summary
    )
    assert "CUDA_ERROR_NO_DEVICE (100)" in found(report, "cuda-init").summary


def test_a_reserved_mig_device_is_the_one_that_is_judged(simulated_host: OnSimulatedHost) -> None:
    with simulated_host("driver-550-a100-mig.yaml") as engine:
        report = verified(engine, cuda_image(engine), gpus=parse_gpus("device=0:1"))

    assert found(report, "devices-as-reserved").verdict is PASS
    assert "MIG 2g.10gb (8.0, 10.3 GB)" in found(report, "devices-as-reserved").summary
    assert found(report, "mig-no-instance").measured == "1 MIG devices"
    assert found(report, "nvml-agrees").verdict is PASS


def test_a_compat_library_on_geforce_is_named(simulated_host: OnSimulatedHost) -> None:
    library = "usr/local/cuda-12.8/compat/libcuda.so.1"
    with simulated_host("driver-550-rtx-4090.yaml", injection="cdi") as engine:
        image = cuda_image(
            engine,
            "12.8.1",
            files={library: libcuda(driver="570.133.20", cuda=12080)},
            environment={"LD_LIBRARY_PATH": "/usr/local/cuda-12.8/compat"},
        )
        report = verified(engine, image, "cdi")

    said = found(report, "cuda-init")
    assert said.verdict is FAIL
    assert "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804)" in said.summary


def test_a_stub_in_the_image_is_the_images_fault(simulated_host: OnSimulatedHost) -> None:
    stub: dict[str, Path | bytes] = {"usr/local/cuda/lib64/stubs/libcuda.so.1": libcuda_stub()}
    with simulated_host(HOSTS[535]) as engine:
        image = cuda_image(engine, files=stub, environment={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs"})
        report = verified(engine, image)

    assert found(report, "stub-on-runtime-path").verdict is FAIL


def test_a_device_that_does_not_exist_is_told(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(HOSTS[535]) as engine:
        report = verified(engine, cuda_image(engine), gpus=parse_gpus("device=7"))
    assert found(report, "gpu-request-refused").verdict is ERROR
    assert "7: unknown device" in found(report, "gpu-request-refused").summary
