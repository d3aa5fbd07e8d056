"""The card of a machine, from recorded answers."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from stackbuild.facts.tables import Facts
from stackbuild.host.card import render_card
from stackbuild.host.inventory import take_inventory
from stackbuild.host.model import Host, HostGpu
from stackbuild.host.nvml import NvmlAnswer
from stackbuild.host.probe import Answer, EngineAnswer, Platform
from tests.host.recorded import RecordedProbe, engine

DATA = Path(__file__).parent / "data"
TODAY = date(2026, 11, 30)
FACTS = Facts()
H200 = HostGpu(name="NVIDIA H200", compute_capability="9.0", memory_mib=143771, brand="nvidia")
OPEN_580 = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (build@u22)  "
    "Tue Sep 23 09:55:41 UTC 2025\nGCC version:  gcc version 13.3.0\n"
)
CLOSED_535 = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
NVML_580 = NvmlAnswer("580.95.05", "13.0", (H200, H200))
TOOLKIT_118 = {"nvidia-ctk": "NVIDIA Container Toolkit CLI version 1.18.1\ncommit: 0123abc\n"}
PROFILERS = {
    "nsys": "NVIDIA Nsight Systems version 2025.3.2.474-253236389321v0\n",
    "ncu": "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 36398880) (public-release)\n",
}


def inventory(probe: RecordedProbe) -> Host:
    return take_inventory(probe, FACTS, TODAY)


def test_a_machine_with_nothing_is_a_card_all_the_same() -> None:
    host = inventory(RecordedProbe())
    assert (host.name, host.posture, host.tier, host.driver, host.injection) == (
        "gpu-01",
        "linux",
        1,
        None,
        "none",
    )
    assert host.tier_reason == "no Docker engine answers"
    text = render_card(host, FACTS, TODAY)
    assert "NVIDIA driver  not found" in text
    assert "images         CPU images" in text


def test_a_whole_gpu_server() -> None:
    host = inventory(
        RecordedProbe(
            files={
                "/etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n',
                "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8480+\n",
                "/sys/class/dmi/id/sys_vendor": "Supermicro\n",
                "/sys/class/dmi/id/product_name": "To be filled by O.E.M.\n",
                "/sys/class/dmi/id/bios_version": "2.4\n",
                "/sys/class/dmi/id/bios_date": "03/14/2025\n",
                "/proc/driver/nvidia/version": OPEN_580,
            },
            tools={"gcc": "gcc (Ubuntu 13.3.0-6ubuntu2) 13.3.0\n", **TOOLKIT_118, **PROFILERS},
            library=NVML_580,
            docker=engine("nvidia"),
            packages={"torch": "2.14.1+cu130", "onnxruntime-gpu": "1.31.1"},
        )
    )
    assert (host.os, host.kernel, host.glibc) == ("Ubuntu 24.04.3 LTS", "6.8.0-79-generic", "2.39")
    assert host.firmware == "Supermicro, firmware 2.4 (03/14/2025)"
    assert host.cpu == "Intel(R) Xeon(R) Platinum 8480+, 64 CPUs"
    assert (host.driver, host.driver_source, host.driver_flavor) == ("580.95.05", "nvml", "open")
    assert (host.driver_branch, host.driver_end_of_life) == ("R580 LTSB", "2028-06")
    assert (host.max_cuda, host.max_cuda_source) == ("13.0", "nvml")
    assert (host.toolkit, host.injection, host.docker) == ("1.18.1", "jit-cdi", "28.5.2")
    assert host.profilers == {"nsys": "2025.3.2.474", "ncu": "2025.3.1.0"}
    assert (host.compiler, host.torch, host.onnxruntime) == (
        "gcc 13.3.0",
        "2.14.1+cu130",
        "onnxruntime-gpu 1.31.1",
    )
    assert (host.tier, host.tier_reason) == (5, None)
    text = render_card(host, FACTS, TODAY)
    assert "2 ×            NVIDIA H200, compute capability 9.0, 151 GB, brand nvidia" in text
    assert "native         torch 2.14.1, cu130, bases up to CUDA 13.0" in text


def test_the_kernel_module_answers_when_nvml_does_not() -> None:
    host = inventory(
        RecordedProbe(
            files={
                "/proc/driver/nvidia/version": CLOSED_535,
                "/proc/driver/nvidia/gpus/0000:17:00.0/information": (
                    "Model: \t\t NVIDIA L40S\nIRQ:   \t\t 120\nGPU UUID: \t GPU-0a1b2c3d-0000-1111-2222-333344445555\n"
                ),
            },
            library=NvmlAnswer(problem="NVML does not start: Driver/library version mismatch"),
        )
    )
    assert (host.driver, host.driver_source, host.driver_flavor) == ("535.183.01", "proc", "proprietary")
    assert (host.max_cuda, host.max_cuda_source) == ("12.2", "proc, and what R535 has in the facts")
    assert [(gpu.name, gpu.compute_capability) for gpu in host.gpus] == [("NVIDIA L40S", "8.9")]
    assert "NVML does not start: Driver/library version mismatch" in host.notes
    assert "driver branch R535 reached its end of life in 2026-06" in host.notes


@pytest.mark.parametrize(
    ("file", "driver", "cuda"),
    [("smi-r535.txt", "535.183.01", "12.2"), ("smi-r610.txt", "610.57.04", "13.3")],
)
def test_nvidia_smi_answers_last_in_both_its_wordings(file: str, driver: str, cuda: str) -> None:
    host = inventory(RecordedProbe(tools={"nvidia-smi": (DATA / file).read_text()}))
    assert (host.driver, host.driver_source) == (driver, "nvidia-smi")
    assert (host.max_cuda, host.max_cuda_source) == (cuda, "nvidia-smi")
    assert host.gpus


def test_a_nvidia_smi_that_fails_is_a_note() -> None:
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    host = inventory(RecordedProbe(tools={"nvidia-smi": Answer(said, "ended with exit code 9")}))
    assert host.driver is None
    assert any(
        note.startswith("nvidia-smi ended with exit code 9: NVIDIA-SMI has failed") for note in host.notes
    )


def test_a_gpu_without_a_driver_is_seen_on_the_bus() -> None:
    bus = "/sys/bus/pci/devices/0000:01:00"
    host = inventory(
        RecordedProbe(
            files={
                f"{bus}.0/vendor": "0x10de\n",
                f"{bus}.0/class": "0x030000\n",
                f"{bus}.1/vendor": "0x10de\n",
                f"{bus}.1/class": "0x040300\n",  # the card's sound
            }
        )
    )
    assert "1 NVIDIA GPU on the PCI bus, and no driver: install one" in host.notes


CONFIG = "/etc/nvidia-container-runtime/config.toml"
OLD_TOOLKIT = {"nvidia-ctk": "NVIDIA Container Toolkit CLI version 1.17.8\n"}


@pytest.mark.parametrize(
    ("files", "tools", "docker", "injection"),
    [
        ({}, {}, engine(), "none"),
        ({}, OLD_TOOLKIT, engine("nvidia"), "legacy"),
        ({}, TOOLKIT_118, engine("nvidia"), "jit-cdi"),
        ({}, TOOLKIT_118, engine(), "legacy"),  # only the hook serves --gpus
        ({CONFIG: '[nvidia-container-runtime]\nmode = "auto"\n'}, TOOLKIT_118, engine("nvidia"), "jit-cdi"),
        ({CONFIG: '[nvidia-container-runtime]\nmode = "legacy"\n'}, TOOLKIT_118, engine("nvidia"), "legacy"),
        ({CONFIG: '[nvidia-container-runtime]\nmode = "cdi"\n'}, OLD_TOOLKIT, engine("nvidia"), "cdi"),
        ({CONFIG: "[[[\n"}, OLD_TOOLKIT, engine("nvidia"), "legacy"),
        ({"/etc/nv_tegra_release": "# R36"}, TOOLKIT_118, engine("nvidia"), "csv"),
        ({"/etc/cdi/nvidia.yaml": "kind: nvidia.com/gpu\n"}, {}, engine(cdi=True), "cdi"),
        ({"/var/run/cdi/nvidia.json": '{"kind": "nvidia.com/gpu"}'}, {}, engine(), "none"),
        ({"/etc/cdi/other.yaml": "kind: vendor.com/nic\n"}, {}, engine(cdi=True), "none"),
    ],
)
def test_the_injection_mode(
    files: dict[str, str], tools: dict[str, str], docker: EngineAnswer, injection: str
) -> None:
    assert inventory(RecordedProbe(files=files, tools=tools, docker=docker)).injection == injection


def test_a_toolkit_whose_configuration_is_broken_says_so() -> None:
    host = inventory(RecordedProbe(files={CONFIG: "[[[\n"}, tools=OLD_TOOLKIT))
    assert any(note.startswith(f"{CONFIG} is not TOML") for note in host.notes)


def test_wsl2() -> None:
    files = {
        "/proc/version": "Linux version 6.6.87.2-microsoft-standard-WSL2 (root@x) (gcc)",
        "/dev/dxg": "",
        "/usr/lib/wsl/lib/libcuda.so.1": "",
    }
    smi = {"/usr/lib/wsl/lib/nvidia-smi": (DATA / "smi-wsl2.txt").read_text()}
    host = inventory(RecordedProbe(files=files, tools=smi))
    assert (host.posture, host.driver) == ("wsl2", "552.22")
    hiding = inventory(
        RecordedProbe(files={**files, "/usr/lib/x86_64-linux-gnu/libcuda.so.1": ""}, tools=smi)
    )
    assert any("is a Linux driver inside WSL2" in note for note in hiding.notes)


def test_macos_and_windows() -> None:
    mac = Platform("Darwin", "25.1.0", "26.1", "arm64", "mac", "3.13.1", "", "arm", 12)
    host = inventory(RecordedProbe(known=mac, tools={"sysctl": "Apple M4 Pro\n"}, docker=engine()))
    assert (host.posture, host.os, host.cpu, host.tier) == ("macos", "macOS 26.1", "Apple M4 Pro", 2)
    assert "MPS or MLX" in render_card(host, FACTS, TODAY)
    windows = Platform("Windows", "11", "10.0.26100", "AMD64", "desk", "3.12.0", "", "Intel64 Family 6", 16)
    host = inventory(
        RecordedProbe(known=windows, tools={"nvidia-smi": (DATA / "smi-windows.txt").read_text()})
    )
    assert (host.posture, host.driver, host.max_cuda) == ("windows", "551.78", "12.4")
    assert [gpu.driver_model for gpu in host.gpus] == ["wddm", "tcc"]


def test_amd() -> None:
    host = inventory(
        RecordedProbe(files={"/dev/kfd": "", "/opt/rocm/.info/version": "7.0.2\n"}, docker=engine())
    )
    assert (host.posture, host.tier, host.tier_reason) == ("amd", 2, "its GPU is AMD's")
    assert "AMD GPU (/dev/kfd), ROCm 7.0.2" in host.notes


def test_a_broken_tool_is_a_note_and_a_remote_engine_too() -> None:
    answer = engine("nvidia")
    host = inventory(
        RecordedProbe(
            tools={
                "nvcc": Answer(problem="did not answer in 5 s"),
                "/usr/local/cuda/bin/nvcc": "release 13.0, V13.0.88",
            },
            docker=EngineAnswer(answer.info, "", "tcp://build:2376"),
        )
    )
    assert host.nvcc == "13.0.88"
    assert "the Docker engine is not on this machine: tcp://build:2376" in host.notes
    broken = inventory(RecordedProbe(tools={"nvcc": Answer(problem="did not answer in 5 s")}))
    assert broken.nvcc is None
    assert "nvcc is there and did not answer in 5 s" in broken.notes


@pytest.mark.parametrize(
    ("probe", "level", "reason"),
    [
        (RecordedProbe(docker=engine()), 2, "no NVIDIA driver answers"),
        (
            RecordedProbe(docker=engine(), library=NVML_580),
            2,
            "no NVIDIA Container Toolkit, and no CDI specification: containers get no GPU",
        ),
        (
            RecordedProbe(
                docker=engine("nvidia"), tools=TOOLKIT_118, library=NvmlAnswer("535.183.01", "12.2", (H200,))
            ),
            3,
            "driver branch R535 LTSB reached its end of life in 2026-06",
        ),
        (
            RecordedProbe(
                docker=engine("nvidia"),
                tools=TOOLKIT_118,
                library=NvmlAnswer("595.91.07", "13.2", (HostGpu(name="Tesla V100-SXM2-32GB"),)),
            ),
            3,
            "driver 595.91.07 does not drive Tesla V100-SXM2-32GB",
        ),
        (
            RecordedProbe(docker=engine("nvidia"), tools=TOOLKIT_118, library=NVML_580),
            4,
            "nsys and ncu are not there",
        ),
    ],
)
def test_tiers(probe: RecordedProbe, level: int, reason: str) -> None:
    host = inventory(probe)
    assert (host.tier, host.tier_reason) == (level, reason)
    assert f"tier {level} of 5" in render_card(host, FACTS, TODAY)
