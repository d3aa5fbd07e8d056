"""Reach: device nodes, libcuda, cuInit, in the order in which a CUDA program meets them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stackbuild.counting import counted
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.cuda_errors import HOST_DRIVER_MISMATCH, SYSTEM_DRIVER_MISMATCH, cuda_error
from stackbuild.verification.judge.findings import finding, pointless, unmeasured
from stackbuild.verification.judge.nvml_failure import DRIVER_LIBRARY_MISMATCH
from stackbuild.verification.model import GateResult

_RELEASE = re.compile(r"libcuda\.so\.(\d+(?:\.\d+){1,2})$")
_KERNEL_RELEASE = re.compile(r"Kernel Module(?: for \w+)?\s+(\d+(?:\.\d+){1,2})")
_STUB_LIBRARY = 34
# The class of nodes that every CUDA program opens; nvidia-modeset and the like are for graphics.
_COMPUTE_NODE = re.compile(r"/dev/(nvidiactl|nvidia-uvm|nvidia\d+|dxg)$")
_REFUSALS = {
    "EACCES": "its mode and owner do not let this user in",
    "EPERM": "the container's device cgroup is closed to it",
}


def judge_reach(results: Mapping[str, GateResult]) -> tuple[Finding, ...]:
    """Gates ``device-nodes``, ``libcuda-not-in-container``, ``no-compute-capability``, ``cuda-init`` and
    ``stub-on-runtime-path``."""
    driver, nvml = results.get("cuda-driver"), results.get("nvml")
    nodes = judge_nodes(results.get("device-nodes"))
    if driver is None or driver.outcome != "measured":
        return (
            nodes,
            unmeasured("libcuda-not-in-container", driver),
            *(
                pointless(code, "not judged: libcuda was not measured")
                for code in ("no-compute-capability", "stub-on-runtime-path", "cuda-init")
            ),
        )
    has_nvml = nvml is not None and bool(nvml.measured.get("found"))
    return (
        nodes,
        *judge_library(driver.measured, nvml_found=has_nvml),
        judge_init(driver.measured, nvml.measured if nvml is not None and nvml.outcome == "measured" else {}),
    )


def device_reached(results: Mapping[str, GateResult]) -> bool:
    """Whether CUDA initialised and shows a device: only then do gates that compute on it make sense."""
    driver = results.get("cuda-driver")
    return driver is not None and driver.measured.get("init") == 0 and bool(driver.measured.get("devices"))


def is_compat(path: str) -> bool:
    """Whether a libcuda is the image's compat package's."""
    return "/compat/" in path


def release_of(path: str) -> str:
    """The driver release in a libcuda's file name (``550.54.15``); empty when it has none."""
    match = _RELEASE.search(path)
    return match[1] if match else ""


def kernel_release(line: str) -> str:
    """The release in the first line of /proc/driver/nvidia/version; empty when there is none."""
    match = _KERNEL_RELEASE.search(line)
    return match[1] if match else ""


def judge_nodes(result: GateResult | None) -> Finding:
    """Gate ``device-nodes``: the nodes are there and the image's user may open them.

    Opening a node can also fail in the driver; that is for ``cuda-init`` to say.
    """
    code = "device-nodes"
    if result is None or result.outcome != "measured":
        return unmeasured(code, result)
    measured = result.measured
    nodes = [node for node in measured["nodes"] if _COMPUTE_NODE.fullmatch(node["path"])]
    user = f"uid {measured['uid']}, groups {' '.join(str(group) for group in measured['groups'])}"
    if not nodes:
        return finding(
            code,
            Verdict.ERROR,
            "no NVIDIA device node is in the container, though GPUs were reserved",
            measured="none",
            required="/dev/nvidiactl, /dev/nvidia-uvm and one /dev/nvidiaN for each GPU, or /dev/dxg on WSL2",
            details=dict(measured),
        )
    refused = [node for node in nodes if node["refused"] in _REFUSALS]
    if refused:
        first = refused[0]
        by_mode = any(node["refused"] == "EACCES" for node in refused)
        return finding(
            code,
            # Modes let some users in, and the image chose its user; a cgroup is the host's alone.
            Verdict.FAIL if by_mode else Verdict.ERROR,
            f"{len(refused)} of {len(nodes)} device nodes cannot be opened by the image's user: {first['path']} "
            f"is {first['mode']} of {first['uid']}:{first['gid']}, and {_REFUSALS[first['refused']]}",
            measured=user,
            required=f"access to {', '.join(node['path'] for node in refused)}",
            next_step=f"Add the image's user to group {first['gid']}, or give the nodes mode 0666 on the host."
            if by_mode
            else "Create the container through the toolkit, and set no-cgroups = false in its config.toml.",
            details=dict(measured),
        )
    return finding(
        code,
        Verdict.PASS,
        f"{len(nodes)} device nodes may be opened by {user}",
        measured=", ".join(node["path"] for node in nodes),
        details=dict(measured),
    )


def judge_library(driver: Mapping[str, Any], *, nvml_found: bool) -> tuple[Finding, ...]:
    """Whether there is a libcuda, whether NVML came without it, and whether it is the toolkit's stub."""
    details = {"file": driver["file"], "compat_files": driver["compat_files"]}
    if not driver["found"]:
        why = "not judged: there is no libcuda"
        if nvml_found:
            return (
                pointless("libcuda-not-in-container", "not judged: see no-compute-capability"),
                finding(
                    "no-compute-capability",
                    Verdict.FAIL,
                    "libnvidia-ml.so.1 is in the container and libcuda.so.1 is not: nvidia-smi would work, CUDA does not",
                    measured="libnvidia-ml.so.1 alone",
                    required="libcuda.so.1, which the capability compute brings",
                    details=details,
                ),
                pointless("stub-on-runtime-path", why),
            )
        return (
            finding(
                "libcuda-not-in-container",
                Verdict.ERROR,
                f"no libcuda.so.1 is in the container: {driver['load_error']}",
                measured="none",
                required="the host driver's libcuda.so.1",
                details=details,
            ),
            pointless("no-compute-capability", why),
            pointless("stub-on-runtime-path", why),
        )
    kind = "the image's compat package's" if is_compat(driver["file"]) else "the driver's"
    stub = driver["init"] == _STUB_LIBRARY or "/stubs/" in driver["file"]
    return (
        finding(
            "libcuda-not-in-container",
            Verdict.PASS,
            f"libcuda.so.1 is {driver['file']}, {'a stub' if stub else kind}",
            measured=driver["file"],
            details=details,
        ),
        finding(
            "no-compute-capability",
            Verdict.PASS,
            "libcuda.so.1 is in the container",
            measured=driver["file"],
        ),
        finding(
            "stub-on-runtime-path",
            Verdict.FAIL if stub else Verdict.PASS,
            f"the loader finds the toolkit's stub {driver['file']} before the driver's libcuda"
            if stub
            else "the loader finds no stub",
            measured=driver["file"],
            required="the host driver's libcuda.so.1" if stub else "",
        ),
    )


def judge_init(driver: Mapping[str, Any], nvml: Mapping[str, Any] | None = None) -> Finding:
    """Gate ``cuda-init``: cuInit's answer, in words.

    Args:
        driver: What libcuda answered.
        nvml: What NVML answered: it comes with the host's driver, so when it does not fit the kernel module either,
            the mismatch is the host's and not of a libcuda in the image.
    """
    code = "cuda-init"
    status = driver["init"]
    if status is None:
        return pointless(code, "not judged: there is no libcuda")
    if status == 0:
        count = len(driver["devices"])
        return finding(
            code,
            Verdict.PASS if count else Verdict.ERROR,
            f"cuInit succeeded and shows {counted(count, 'device')}",
            measured=counted(count, "device"),
            details={"version": driver["version"], "devices": driver["devices"]},
        )
    error = cuda_error(status)
    if status == SYSTEM_DRIVER_MISMATCH and (nvml or {}).get("init") == DRIVER_LIBRARY_MISMATCH:
        error = HOST_DRIVER_MISMATCH
    return finding(
        code,
        error.verdict,
        f"cuInit answered {error.name} ({status}): {error.meaning}",
        measured=f"{error.name} ({status})",
        required="CUDA_SUCCESS",
        next_step=error.next_step,
        details={"file": driver["file"], "version": driver["version"]},
    )
