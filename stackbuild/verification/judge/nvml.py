"""NVML's account of the driver and its devices against CUDA's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stackbuild.counting import counted
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding, pointless, unmeasured
from stackbuild.verification.judge.nvml_failure import judge_nvml_failure
from stackbuild.verification.judge.reach import is_compat, kernel_release, release_of
from stackbuild.verification.model import GateResult
from stackbuild.verification.surroundings import Surroundings

_CODE = "nvml-agrees"


def judge_nvml(results: Mapping[str, GateResult], surroundings: Surroundings) -> Finding:
    """Gate ``nvml-agrees``: driver release, CUDA maximum and devices are the same from both sides.

    A compat libcuda is newer than the driver by design, so then only the kernel module's release counts.
    """
    result = results.get("nvml")
    if result is None or result.outcome != "measured":
        return unmeasured(_CODE, result)
    nvml = result.measured
    if not nvml["found"]:
        return finding(
            _CODE,
            Verdict.ERROR,
            f"no libnvidia-ml.so.1 is in the container ({nvml['load_error']}), so the driver could not be asked",
            required="the capability utility in the device request",
        )
    if nvml["init"] != 0:
        return judge_nvml_failure(nvml["init"], nvml["error"], ok_at_start=False, surroundings=surroundings)
    later = results.get("nvml-at-end")
    if later is not None and later.outcome == "measured" and later.measured["init"] not in (0, None):
        return judge_nvml_failure(
            later.measured["init"], later.measured["error"], ok_at_start=True, surroundings=surroundings
        )
    driver = results.get("cuda-driver")
    if driver is None or driver.outcome != "measured" or not driver.measured["found"]:
        return pointless(_CODE, "not judged: there is no libcuda to compare with")
    nodes = results.get("device-nodes")
    kernel = kernel_release(nodes.measured.get("kernel_driver", "")) if nodes else ""
    wrong = _differences(nvml, driver.measured, kernel)
    told = f"driver {nvml.get('driver')}, CUDA {_cuda(nvml.get('cuda'))}, {counted(len(nvml['devices']), 'device')}"
    return finding(
        _CODE,
        Verdict.ERROR if wrong else Verdict.PASS,
        "; ".join(wrong) or f"NVML and CUDA agree: {told}",
        measured=told,
        details=dict(nvml),
    )


def _differences(nvml: Mapping[str, Any], driver: Mapping[str, Any], kernel: str) -> list[str]:
    wrong = []
    release, library = nvml.get("driver") or "", release_of(driver["file"])
    if kernel and release and kernel != release:
        wrong.append(f"NVML says driver {release}, the kernel module says {kernel}")
    if not is_compat(driver["file"]):
        if release and library and library != release:
            wrong.append(f"NVML says driver {release}, libcuda is of {library}")
        if nvml.get("cuda") and driver["version"] and nvml["cuda"] != driver["version"]:
            wrong.append(f"NVML says CUDA {_cuda(nvml['cuda'])}, libcuda says {_cuda(driver['version'])}")
    if driver["init"] == 0:
        known = {_bare(uuid) for device in nvml["devices"] for uuid in _uuids(device)}
        unknown = [
            device["uuid"]
            for device in driver["devices"]
            if device.get("uuid") and device["uuid"] not in known
        ]
        if known and unknown:
            wrong.append(f"CUDA shows {', '.join(unknown)}, which NVML does not know")
    return wrong


def _uuids(device: Mapping[str, Any]) -> list[str]:
    listed = [device.get("uuid"), *(slice_["uuid"] for slice_ in device.get("mig_devices", ()))]
    return [uuid for uuid in listed if uuid]


def _bare(uuid: str) -> str:
    """NVML's spelling without its kind (``GPU-``, ``MIG-``), as CUDA gives it."""
    return uuid.split("-", 1)[1] if uuid[:4] in ("GPU-", "MIG-") else uuid


def _cuda(version: int | None) -> str:
    return f"{version // 1000}.{version % 1000 // 10}" if version else "?"
