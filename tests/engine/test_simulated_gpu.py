"""Simulated GPU hosts on a real engine: what the device request, the hook and CDI bring into a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pynvml
import pytest

from stackbuild.engine.models import DeviceRequest
from stackbuild.errors import NotJudgedError
from stackbuild.verification.gpus import device_requests, parse_gpus
from tests.simulated_gpu.compile import libcuda, libcuda_stub, libnvidia_ml
from tests.simulated_gpu.fixtures import OnSimulatedHost
from tests.simulated_gpu.images import python_image
from tests.simulated_gpu.probe import Seen, look
from tests.support.nvidia_config import require_cuda

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine

pytestmark = pytest.mark.engine

L4S = "driver-535-two-l4.yaml"
MIB = 1 << 20
_UUIDS = [f"GPU-51300000-0000-4000-8000-{index:012x}" for index in (0, 1)]


def cdi(*names: str) -> DeviceRequest:
    return DeviceRequest(driver="cdi", device_ids=tuple(f"nvidia.com/gpu={name}" for name in names))


def gpus(text: str) -> DeviceRequest:
    (request,) = device_requests(parse_gpus(text))
    return request


ALL = gpus("all")


def uuids(seen: Seen) -> list[str]:
    from_nvml = [device["uuid"] for device in seen.nvml["devices"]]
    from_cuda = [device["uuid"] for device in seen.cuda["devices"]]
    assert from_cuda == [uuid.removeprefix("GPU-").replace("-", "") for uuid in from_nvml]
    return from_nvml


def refusal(engine: Engine, image: str, *requests: DeviceRequest, **options: object) -> str:
    with pytest.raises(NotJudgedError) as caught:
        look(engine, image, *requests, **options)
    assert caught.value.code == "container-start-failed"
    return caught.value.detail


def test_driver_and_gpus_are_those_of_the_host(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(L4S) as engine:
        seen = look(engine, python_image(engine), ALL)

    assert (seen.cuda["init"], seen.cuda["version"]) == (0, 12020)
    assert (seen.nvml["driver"], seen.nvml["cuda"], seen.nvml["nvml"]) == (
        "535.216.03",
        12020,
        "12.535.216.03",
    )
    assert uuids(seen) == _UUIDS
    assert seen.cuda["devices"][1] == {
        "name": "NVIDIA L4",
        "memory": 23034 * MIB,
        "free": 23018 * MIB,
        "uuid": "51300000000040008000000000000001",
        "capability": [8, 9],
        "multiprocessors": 58,
    }
    assert seen.nvml["devices"][1] == {
        "name": "NVIDIA L4",
        "uuid": _UUIDS[1],
        "memory": 23034 * MIB,
        "memory-v2": 23034 * MIB,
        "capability": [8, 9],
        "brand": 14,
        "minor": 1,
        "bus": "00000000:02:00.0",
        "power-limit": 72_000,
        "clock": 2040,
        "throttle": 0,
        "temperature": 40,
        "ecc": 1,
        "mig": None,
        "mig-devices": [],
    }
    assert seen.nodes == dict.fromkeys(("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"), "0o666")


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("1", _UUIDS[:1]),
        ("2", _UUIDS),
        ("device=1", _UUIDS[1:]),
        (f"device={_UUIDS[1]}", _UUIDS[1:]),
        ("device=1,0", _UUIDS),
    ],
)
def test_a_container_gets_the_gpus_it_reserved(
    simulated_host: OnSimulatedHost, selection: str, expected: list[str]
) -> None:
    with simulated_host(L4S) as engine:
        assert uuids(look(engine, python_image(engine), gpus(selection))) == expected


def test_the_nvidia_runtime_takes_its_request_from_the_environment(simulated_host: OnSimulatedHost) -> None:
    request = {"NVIDIA_VISIBLE_DEVICES": "1", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    with simulated_host(L4S) as engine:
        assert "nvidia" in engine.info().runtimes
        image = python_image(engine)
        assert uuids(look(engine, image, environment=request, runtime="nvidia")) == _UUIDS[1:]
        assert look(engine, image, environment=request).nodes == {}


def test_without_a_reservation_there_is_nothing_of_a_gpu(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(L4S) as engine:
        seen = look(engine, python_image(engine))

    assert seen.nodes == {}
    assert seen.cuda["error"].startswith("libcuda.so.1: cannot open shared object file")
    assert seen.nvml["error"] == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND


def test_utility_alone_brings_nvml_and_no_libcuda(simulated_host: OnSimulatedHost) -> None:
    request = DeviceRequest(count=-1, capabilities=(("gpu", "utility"),))
    with simulated_host(L4S) as engine:
        seen = look(engine, python_image(engine), request)

    assert len(seen.nvml["devices"]) == 2
    assert seen.cuda["error"].startswith("libcuda.so.1: cannot open shared object file")


@pytest.mark.parametrize(("selection", "unknown"), [("3", "2"), ("device=7", "7"), ("device=GPU-x", "GPU-x")])
def test_a_gpu_the_host_has_not_is_refused(
    simulated_host: OnSimulatedHost, selection: str, unknown: str
) -> None:
    with simulated_host(L4S) as engine:
        detail = refusal(engine, python_image(engine), gpus(selection))
    assert f"nvidia-container-cli: device error: {unknown}: unknown device" in detail


def test_count_and_ids_together_are_refused_by_the_engine(simulated_host: OnSimulatedHost) -> None:
    request = DeviceRequest(count=1, device_ids=("0",), capabilities=ALL.capabilities)
    with simulated_host(L4S) as engine:
        assert "cannot set both Count and DeviceIDs" in refusal(engine, python_image(engine), request)


# Requirements of the image


def test_an_image_that_needs_a_newer_driver_is_refused_at_start(simulated_host: OnSimulatedHost) -> None:
    with simulated_host("driver-550-rtx-4090.yaml") as engine:
        image = python_image(engine, environment={"NVIDIA_REQUIRE_CUDA": require_cuda("12.8")})
        detail = refusal(engine, image, ALL)
        told_not_to = look(engine, image, ALL, environment={"NVIDIA_DISABLE_REQUIRE": "1"})

    assert (
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver "
        "to a newer version, or use an earlier cuda container" in detail
    )
    assert told_not_to.cuda["version"] == 12040


def test_another_alternative_of_the_requirement_lets_a_datacenter_gpu_start(
    simulated_host: OnSimulatedHost,
) -> None:
    with simulated_host(L4S) as engine:
        image = python_image(engine, environment={"NVIDIA_REQUIRE_CUDA": require_cuda("12.8")})
        assert look(engine, image, ALL).cuda["version"] == 12020


def test_an_image_of_the_first_generation_requires_its_cuda_version(simulated_host: OnSimulatedHost) -> None:
    with simulated_host("driver-470-t4.yaml") as engine:
        image = python_image(engine, environment={"CUDA_VERSION": "11.8.0"})
        assert "unsatisfied condition: cuda>=11.8" in refusal(engine, image, ALL)


# CDI


@pytest.mark.parametrize(
    ("selection", "names"),
    [("all", ["all"]), ("device=1", ["1"]), ("device=0", [_UUIDS[0]]), ("2", ["0", "1"])],
)
def test_cdi_injects_the_same(simulated_host: OnSimulatedHost, selection: str, names: list[str]) -> None:
    with simulated_host(L4S) as engine:
        by_hook = look(engine, python_image(engine), gpus(selection))
    with simulated_host(L4S, injection="cdi") as engine:
        assert engine.info().cdi
        by_cdi = look(engine, python_image(engine), cdi(*names))
    assert by_cdi == by_hook


def test_cdi_checks_no_requirement(simulated_host: OnSimulatedHost) -> None:
    with simulated_host("driver-470-t4.yaml", injection="cdi") as engine:
        image = python_image(engine, environment={"NVIDIA_REQUIRE_CUDA": "cuda>=13.0"})
        seen = look(engine, image, cdi("all"))
    assert (seen.cuda["init"], seen.cuda["version"]) == (0, 11040)


def test_cdi_names_a_device_it_does_not_know(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(L4S, injection="cdi") as engine:
        detail = refusal(engine, python_image(engine), cdi("7"))
    assert "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=7" in detail


def test_the_hook_works_on_the_newer_engine_too(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(L4S, injection="cdi") as engine:
        assert uuids(look(engine, python_image(engine), gpus("device=1"))) == _UUIDS[1:]


# MIG


@pytest.mark.parametrize("injection", ["hook", "cdi"])
def test_of_mig_devices_nvml_lists_all_and_cuda_one(simulated_host: OnSimulatedHost, injection: str) -> None:
    with simulated_host("driver-550-a100-mig.yaml", injection=injection) as engine:
        seen = look(engine, python_image(engine), ALL if injection == "hook" else cdi("all"))

    assert [device["name"] for device in seen.cuda["devices"]] == ["NVIDIA A100-SXM4-40GB MIG 3g.20gb"]
    assert seen.cuda["devices"][0]["memory"] == 19968 * MIB
    (gpu,) = seen.nvml["devices"]
    assert (gpu["mig"], gpu["memory"]) == (1, 40960 * MIB)
    assert [(mig["name"][-8:], mig["multiprocessors"], mig["memory-mib"]) for mig in gpu["mig-devices"]] == [
        (" 3g.20gb", 42, 19968),
        (" 2g.10gb", 28, 9856),
    ]


@pytest.mark.parametrize("injection", ["hook", "cdi"])
def test_one_mig_device_can_be_reserved(simulated_host: OnSimulatedHost, injection: str) -> None:
    with simulated_host("driver-550-a100-mig.yaml", injection=injection) as engine:
        request = gpus("device=0:1") if injection == "hook" else cdi("0:1")
        seen = look(engine, python_image(engine), request)

    assert [device["name"] for device in seen.cuda["devices"]] == ["NVIDIA A100-SXM4-40GB MIG 2g.10gb"]
    (mig,) = seen.nvml["devices"][0]["mig-devices"]
    assert mig["name"] == "NVIDIA A100-SXM4-40GB MIG 2g.10gb"


# What can be wrong


@pytest.mark.parametrize("injection", ["hook", "cdi"])
@pytest.mark.parametrize(
    ("failure", "user", "init", "nvml"),
    [
        ("nvml-mismatch", None, 803, pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH),
        ("uvm-missing", None, 999, None),
        ("unreadable-device-nodes", "1000", 100, pynvml.NVML_ERROR_NO_PERMISSION),
        ("unreadable-device-nodes", None, 0, None),
        ("stub-libcuda", None, 34, None),
    ],
)
def test_failures_show_as_on_a_real_host(
    simulated_host: OnSimulatedHost,
    injection: str,
    failure: str,
    user: str | None,
    init: int,
    nvml: int | None,
) -> None:
    with simulated_host(L4S, injection=injection, failures=(failure,)) as engine:
        request = ALL if injection == "hook" else cdi("all")
        seen = look(engine, python_image(engine), request, user=user)

    assert seen.cuda["init"] == init
    assert seen.nvml.get("error") == nvml


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (100, "CUDA_ERROR_NO_DEVICE"),
        (802, "CUDA_ERROR_SYSTEM_NOT_READY"),
        (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
        (999, "CUDA_ERROR_UNKNOWN"),
    ],
)
def test_cuinit_gives_the_error_the_host_has(simulated_host: OnSimulatedHost, code: int, name: str) -> None:
    with simulated_host(L4S, cu_init=code) as engine:
        seen = look(engine, python_image(engine), ALL)

    assert seen.cuda == {"init": code, "name": name, "version": 12020}
    assert len(seen.nvml["devices"]) == 2


@pytest.mark.parametrize("injection", ["hook", "cdi"])
def test_a_host_can_inject_one_gpu_fewer_than_reserved(
    simulated_host: OnSimulatedHost, injection: str
) -> None:
    with simulated_host(L4S, injection=injection, failures=("wrong-count",)) as engine:
        seen = look(engine, python_image(engine), ALL if injection == "hook" else cdi("all"))
    assert uuids(seen) == _UUIDS[:1]


def test_a_closed_device_cgroup_is_nvmls_unknown_error(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(L4S, failures=("no-cgroups",)) as engine:
        seen = look(engine, python_image(engine), ALL)
    assert (seen.cuda["init"], seen.nvml) == (100, {"error": pynvml.NVML_ERROR_UNKNOWN})


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (
            "no-driver",
            "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object",
        ),
        ("hook-nvml-mismatch", "initialization error: nvml error: driver/library version mismatch"),
    ],
)
def test_the_hook_refuses_on_a_host_whose_driver_does_not_answer(
    simulated_host: OnSimulatedHost, failure: str, words: str
) -> None:
    with simulated_host(L4S, failures=(failure,)) as engine:
        assert f"nvidia-container-cli: {words}" in refusal(engine, python_image(engine), ALL)


def test_without_a_driver_cdi_has_no_device(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(L4S, injection="cdi", failures=("no-driver",)) as engine:
        assert "unresolvable CDI devices" in refusal(engine, python_image(engine), cdi("all"))


# Libraries of a driver inside the image


@pytest.mark.parametrize(
    ("host", "init", "version"),
    [
        ("driver-550-rtx-4090.yaml", 804, 12090),
        ("driver-550-a100.yaml", 0, 12090),
        ("driver-580-h100.yaml", 803, 12090),
    ],
)
def test_a_compat_library_in_the_image_wins_and_works_on_older_datacenter_drivers_only(
    simulated_host: OnSimulatedHost, host: str, init: int, version: int
) -> None:
    compat = {"usr/local/cuda/compat/libcuda.so.1": libcuda(driver="575.57.08", cuda=12090)}
    with simulated_host(host) as engine:
        image = python_image(engine, files=compat, environment={"LD_LIBRARY_PATH": "/usr/local/cuda/compat"})
        seen = look(engine, image, ALL)
    assert (seen.cuda["init"], seen.cuda["version"]) == (init, version)


def test_a_stub_on_the_library_path_hides_the_drivers_libcuda(simulated_host: OnSimulatedHost) -> None:
    stub = {"usr/local/cuda/lib64/stubs/libcuda.so.1": libcuda_stub()}
    with simulated_host(L4S) as engine:
        image = python_image(
            engine, files=stub, environment={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs"}
        )
        assert look(engine, image, ALL).cuda["init"] == 34


def test_nvml_baked_into_the_image_mismatches_the_hosts_driver(simulated_host: OnSimulatedHost) -> None:
    baked = {"opt/driver/libnvidia-ml.so.1": libnvidia_ml(driver="545.29.06")}
    with simulated_host(L4S) as engine:
        image = python_image(engine, files=baked, environment={"LD_LIBRARY_PATH": "/opt/driver"})
        assert look(engine, image, ALL).nvml == {"error": pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH}


def test_cuda_visible_devices_narrows_what_cuda_counts(simulated_host: OnSimulatedHost) -> None:
    with simulated_host(L4S) as engine:
        image = python_image(engine)
        one = look(engine, image, ALL, environment={"CUDA_VISIBLE_DEVICES": "1"})
        none = look(engine, image, ALL, environment={"CUDA_VISIBLE_DEVICES": "-1"})
    assert [device["uuid"][-1] for device in one.cuda["devices"]] == ["1"]
    assert none.cuda["name"] == "CUDA_ERROR_NO_DEVICE"
