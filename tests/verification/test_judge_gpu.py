"""Reaching a GPU: each obstacle on the way, whose fault it is, and what it says."""

from __future__ import annotations

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.host.model import Host, HostGpu
from stackbuild.verification.gate_codes import REACH_CODES
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.judge.gpu import judge_gpu
from stackbuild.verification.surroundings import Surroundings
from tests.verification.gpu_support import L4, RTX_4090, changed, device_nodes, gpu_results, uuid
from tests.verification.support import cuda_promise, measured, torch_build

ALL = Surroundings(gpus=GpuSelection(count=-1))


def test_a_host_on_which_all_is_well_passes_every_gate() -> None:
    results = gpu_results(environment={"CUDA_VERSION": "13.0.1"})
    findings = judge_gpu(cuda_promise(), results, ALL)
    assert {found.code for found in findings if found.verdict is not Verdict.PASS} == {
        "arch-not-covered",
        "mig-no-instance",
        "libraries-as-locked",
        "cudnn-shadowed",
    }
    assert {found.code for found in findings} >= set(REACH_CODES)
    assert "NVIDIA L4 (8.9, 24.2 GB)" in _only(findings, "devices-as-reserved").summary


def test_a_cpu_stack_has_nothing_to_judge_and_a_gpu_stack_without_a_gpu_is_not_complete() -> None:
    nothing = judge_gpu(cuda_promise(device="cpu"), {}, Surroundings())
    assert not any(found.applies for found in nothing)
    skipped = judge_gpu(cuda_promise(), {}, Surroundings())
    assert [found.code for found in skipped if found.verdict is Verdict.SKIP and found.applies] == list(
        REACH_CODES
    )


@pytest.mark.parametrize(
    ("driver", "cuda", "image", "verdict", "how"),
    [
        ("470.256.02", 11040, "11.8.0", Verdict.WARN, "minor"),
        ("470.256.02", 11040, "12.4.1", Verdict.FAIL, "none"),
        ("535.216.03", 12020, "11.8.0", Verdict.PASS, "native"),
        ("535.216.03", 12020, "12.4.1", Verdict.WARN, "minor"),
        ("535.216.03", 12020, "13.0.1", Verdict.FAIL, "none"),
        ("550.127.08", 12040, "12.4.1", Verdict.PASS, "native"),
        ("550.127.08", 12040, "12.8.1", Verdict.WARN, "minor"),
        ("580.95.05", 13000, "13.0.1", Verdict.PASS, "native"),
    ],
)
def test_the_drivers_maximum_is_judged_by_the_rule_of_check(
    driver: str, cuda: int, image: str, verdict: Verdict, how: str
) -> None:
    results = gpu_results(driver, cuda, environment={"CUDA_VERSION": image})
    found = [
        found
        for found in judge_gpu(cuda_promise(compatibility=None), results, ALL)
        if found.code == "driver-too-old" and found.subject.startswith("base image")
    ]
    assert [(found.verdict, found.details["how"]) for found in found] == [(verdict, how)]


def test_what_the_spec_accepts_decides_on_minor_version_compatibility() -> None:
    results = gpu_results("550.127.08", 12040) | {"torch-import": torch_build("2.9.0+cu128", "12.8")}
    for accepted, verdict in (("minor", Verdict.PASS), ("native", Verdict.FAIL)):
        promise = cuda_promise(torch="2.9.0+cu128", compatibility=accepted)
        found = [f for f in judge_gpu(promise, results, ALL) if f.code == "driver-too-old"]
        assert {f.verdict for f in found if f.subject == "torch 2.9.0+cu128"} == {verdict}


def test_a_libcudart_that_was_loaded_is_judged_by_its_own_version() -> None:
    results = changed(
        gpu_results("535.216.03", 12020),
        "cuda-runtime",
        runtimes=[{"file": "/usr/lib/libcudart.so.13", "version": 13000, "found_by": "loader"}],
    )
    found = _only(judge_gpu(cuda_promise(), results, ALL), "driver-too-old")
    assert (found.verdict, found.subject) == (Verdict.FAIL, "libcudart /usr/lib/libcudart.so.13")


def test_torchs_own_list_of_architectures_is_what_counts() -> None:
    build = torch_build("2.14.1+cu130", "13.0")
    for architectures, verdict in (
        (["sm_90", "compute_90"], Verdict.FAIL),
        (["sm_86"], Verdict.PASS),
        (["sm_75", "compute_75"], Verdict.PASS),
    ):
        loaded = measured("torch-import", **{**build.measured, "arch_list": architectures})
        results = gpu_results() | {"torch-import": loaded}
        found = [f for f in judge_gpu(cuda_promise(), results, ALL) if f.code == "arch-not-covered"]
        assert [f.verdict for f in found] == [verdict], architectures


def test_nodes_that_the_images_user_may_not_open_are_named() -> None:
    results = gpu_results() | {"device-nodes": device_nodes(refused="EACCES", mode="0660")}
    found = _only(judge_gpu(cuda_promise(), results, ALL), "device-nodes")
    assert found.verdict is Verdict.FAIL
    assert "3 of 3 device nodes" in found.summary
    assert "group 44" in found.next_step

    results["device-nodes"] = device_nodes(refused="EPERM")
    found = _only(judge_gpu(cuda_promise(), results, ALL), "device-nodes")
    assert found.verdict is Verdict.ERROR
    assert "no-cgroups" in found.next_step


def test_a_node_without_a_driver_behind_it_is_left_to_cuda_to_say() -> None:
    results = gpu_results() | {"device-nodes": device_nodes(refused="ENXIO")}
    assert _only(judge_gpu(cuda_promise(), results, ALL), "device-nodes").verdict is Verdict.PASS


def test_i05_utility_without_compute_fails_though_nvidia_smi_would_work() -> None:
    results = changed(
        gpu_results(), "cuda-driver", found=False, load_error="no such file", init=None, file=""
    )
    findings = judge_gpu(cuda_promise(), results, ALL)
    found = _only(findings, "no-compute-capability")
    assert found.verdict is Verdict.FAIL
    assert "compute,utility" in found.next_step
    assert _only(findings, "cuda-init").verdict is Verdict.SKIP


def test_neither_library_is_the_hosts_fault() -> None:
    results = changed(
        gpu_results(), "cuda-driver", found=False, load_error="no such file", init=None, file=""
    )
    results = changed(results, "nvml", found=False, load_error="no such file", init=None)
    findings = judge_gpu(cuda_promise(), results, ALL)
    assert _only(findings, "libcuda-not-in-container").verdict is Verdict.ERROR
    assert _only(findings, "nvml-agrees").verdict is Verdict.ERROR


def test_a_stub_is_the_images_fault() -> None:
    stub = "/usr/local/cuda/lib64/stubs/libcuda.so"
    findings = judge_gpu(cuda_promise(), gpu_results(file=stub, init=34), ALL)
    assert _only(findings, "stub-on-runtime-path").verdict is Verdict.FAIL
    assert "CUDA_ERROR_STUB_LIBRARY" in _only(findings, "cuda-init").summary


@pytest.mark.parametrize(
    ("init", "verdict", "words"),
    [
        (100, Verdict.ERROR, "sees no device"),
        (802, Verdict.ERROR, "fabric manager"),
        (999, Verdict.ERROR, "nvidia-uvm"),
        (804, Verdict.FAIL, "forward compatibility"),
        (12345, Verdict.ERROR, "12345"),
    ],
)
def test_cuinits_error_is_translated(init: int, verdict: Verdict, words: str) -> None:
    found = _only(judge_gpu(cuda_promise(), gpu_results(init=init), ALL), "cuda-init")
    assert found.verdict is verdict
    assert words in found.summary
    assert found.next_step


def test_a_mismatch_of_libcuda_alone_is_the_images_fault() -> None:
    found = _only(judge_gpu(cuda_promise(), gpu_results(init=803), ALL), "cuda-init")
    assert found.verdict is Verdict.FAIL
    assert "compat" in found.next_step


def test_a_mismatch_that_nvml_reports_too_is_the_hosts_fault() -> None:
    results = gpu_results(init=803)
    results = changed(results, "nvml", init=18, error="Driver/library version mismatch")
    findings = judge_gpu(cuda_promise(), results, ALL)
    found = _only(findings, "cuda-init")
    assert found.verdict is Verdict.ERROR
    assert "as NVML says too" in found.summary
    assert "Restart the host" in found.next_step
    assert [finding.code for finding in findings if finding.verdict is Verdict.FAIL] == []


def test_a_compat_library_on_geforce_fails_as_check_says() -> None:
    file = "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06"
    environment = {"CUDA_VERSION": "13.0.1"}
    results = gpu_results("550.127.05", 12040, gpus=(RTX_4090,), file=file, init=804, environment=environment)
    results = changed(results, "cuda-driver", version=13000)
    findings = judge_gpu(cuda_promise(), results, ALL)
    found = _only(findings, "compat-lib-on-unsupported-gpu")
    assert (found.verdict, "804" in found.summary) == (Verdict.FAIL, True)


def test_a_compat_library_does_not_speak_for_the_driver() -> None:
    file = "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06"
    results = gpu_results("535.216.03", 12020, file=file, environment={"CUDA_VERSION": "13.0.1"})
    results = changed(results, "cuda-driver", version=13000)
    findings = judge_gpu(cuda_promise(compatibility="forward"), results, ALL)
    base = next(f for f in findings if f.code == "driver-too-old" and f.subject.startswith("base"))
    assert (base.verdict, base.details["how"]) == (Verdict.PASS, "forward")
    assert "CUDA maximum 12.2" in base.measured
    assert _only(findings, "nvml-agrees").verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("gate", "values", "words"),
    [
        ("nvml", {"driver": "575.51.03"}, "NVML says driver 575.51.03, libcuda is of 580.95.05"),
        ("nvml", {"cuda": 12090}, "NVML says CUDA 12.9, libcuda says 13.0"),
        (
            "device-nodes",
            {"kernel_driver": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Thu"},
            "the kernel module says 570.86.10",
        ),
    ],
)
def test_two_accounts_of_one_driver_must_agree(gate: str, values: dict[str, object], words: str) -> None:
    found = _only(judge_gpu(cuda_promise(), changed(gpu_results(), gate, **values), ALL), "nvml-agrees")
    assert found.verdict is Verdict.ERROR
    assert words in found.summary


def test_the_number_of_devices_is_the_number_reserved() -> None:
    two = Surroundings(gpus=GpuSelection(count=2))
    found = _only(judge_gpu(cuda_promise(), gpu_results(), two), "devices-as-reserved")
    assert (found.verdict, found.summary) == (Verdict.ERROR, "2 GPUs were reserved, CUDA shows 1")
    named = Surroundings(gpus=GpuSelection(device_ids=(f"GPU-{uuid(7)}",)))
    found = _only(judge_gpu(cuda_promise(), gpu_results(), named), "devices-as-reserved")
    assert f"{uuid(7)} was reserved and is not shown" in found.summary


def test_the_devices_are_those_of_the_hosts_card() -> None:
    for card, words in (
        (HostGpu(name="NVIDIA L4", compute_capability="8.9", memory_mib=23034), ""),
        (HostGpu(name="NVIDIA L4", memory_mib=46068), "the host's card says 48.3 GB"),
        (HostGpu(name="NVIDIA L40S"), "NVIDIA L4 is no GPU of this host's card"),
    ):
        surroundings = Surroundings(gpus=ALL.gpus, card=Host(gpus=(card,)))
        found = _only(judge_gpu(cuda_promise(), gpu_results(), surroundings), "devices-as-reserved")
        assert found.verdict is (Verdict.ERROR if words else Verdict.PASS)
        assert words in found.summary


def test_mig_without_an_instance_is_the_hosts_fault() -> None:
    on = {**L4, "mig": True, "mig_devices": []}
    found = _only(judge_gpu(cuda_promise(), gpu_results(gpus=(on,)), ALL), "mig-no-instance")
    assert found.verdict is Verdict.ERROR
    slices = [{"uuid": f"MIG-{uuid(0)}", "name": "MIG 3g.20gb"}]
    on = {**on, "mig_devices": slices}
    found = _only(judge_gpu(cuda_promise(), gpu_results(gpus=(on,)), ALL), "mig-no-instance")
    assert (found.verdict, found.measured) == (Verdict.PASS, "1 MIG devices")


def _only(findings: tuple[Finding, ...], code: str) -> Finding:
    (found,) = [found for found in findings if found.code == code]
    return found
