"""Driver and architecture rules over what was measured: the suite measures, ``stackbuild.compat`` judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stackbuild.compat.contents import contents_of_image
from stackbuild.compat.driver import judge_driver
from stackbuild.compat.judge import HostJudge
from stackbuild.compat.needs import compat_library, needs
from stackbuild.compat.subject import CompatLibrary, CudaComponent, ImageNeeds
from stackbuild.compat.versions import CudaVersion, parse_cuda
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding
from stackbuild.host.model import Host, HostGpu
from stackbuild.host.offer import host_offer
from stackbuild.spec.platforms import MACHINES
from stackbuild.verification.judge.findings import not_applicable, pointless, with_next_step
from stackbuild.verification.judge.reach import is_compat, kernel_release, release_of
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise


def judge_compatibility(
    promise: Promise, results: Mapping[str, GateResult], facts: Facts
) -> tuple[Finding, ...]:
    """Gates ``driver-too-old``, ``arch-not-covered`` and the compat library's, for each CUDA component found.

    The components are the base's CUDA, torch, ONNX Runtime and every libcudart that could be loaded.
    """
    driver = results.get("cuda-driver")
    if driver is None or driver.outcome != "measured" or not driver.measured["found"]:
        why = "not judged: there is no libcuda"
        return (pointless("driver-too-old", why), pointless("arch-not-covered", why))
    host = measured_host(promise, results)
    offer = host_offer(host, facts)
    image = measured_needs(promise, results, facts)
    judged = [*HostJudge(facts).judge(image, offer)]
    judged += [
        judge_driver(component, offer, image.compat, image.accepts, facts)
        for component in runtimes(results)
        if component.cuda not in {known.cuda for known in image.components}
    ]
    answered = {found.code for found in judged}
    nothing = (
        not_applicable("driver-too-old", "the image brings no CUDA runtime"),
        not_applicable("arch-not-covered", "the image brings no framework with code for GPUs"),
    )
    return (
        *(with_next_step(found) for found in _once(judged)),
        *(finding for finding in nothing if finding.code not in answered),
    )


def measured_host(promise: Promise, results: Mapping[str, GateResult]) -> Host:
    """The host as the container sees it.

    A compat libcuda speaks for itself and not for the driver, so then the driver's CUDA maximum is left
    to the facts about its release.
    """
    driver = results["cuda-driver"].measured
    nvml = _measured(results, "nvml")
    kernel = kernel_release(_measured(results, "device-nodes").get("kernel_driver", ""))
    compat = is_compat(driver["file"])
    release = nvml.get("driver") or kernel or ("" if compat else release_of(driver["file"]))
    version = None if compat else driver["version"] or None
    brands = {device.get("name"): device.get("brand") or None for device in nvml.get("devices", ())}
    listed = driver["devices"] or nvml.get("devices", ())
    return Host(
        name="this host",
        machine=MACHINES.get(promise.platform),
        driver=release or None,
        max_cuda=_release(version) if version else None,
        gpus=tuple(
            HostGpu(
                name=device["name"],
                compute_capability=device.get("compute_capability"),
                brand=brands.get(device["name"]),
            )
            for device in listed
            if device.get("name")
        ),
    )


def measured_needs(promise: Promise, results: Mapping[str, GateResult], facts: Facts) -> ImageNeeds:
    """What the image asks of a host, with torch's architectures as torch itself names them."""
    environment = _measured(results, "interpreter").get("environment", {})
    installed = [
        (entry["name"], entry["version"])
        for entry in _measured(results, "distributions").get("distributions", ())
        if entry["name"] in ("torch", "onnxruntime-gpu") or entry["name"].startswith("tensorrt-cu")
    ]
    contents = contents_of_image(
        promise.stack or "the image",
        {"Env": [f"{name}={value}" for name, value in environment.items()]},
        installed,
        platform=promise.platform,
    )
    asked = needs(contents, facts, promise.compatibility)
    components = [_as_measured(component, results) for component in asked.components]
    if not any(component.name == "torch" for component in components):
        components += [found for found in [_torch(results)] if found is not None]
    return replace(asked, components=tuple(components), compat=_compat(results) or asked.compat)


def runtimes(results: Mapping[str, GateResult]) -> tuple[CudaComponent, ...]:
    """Every libcudart that was loaded, as a component without code of its own."""
    found: Sequence[Mapping[str, Any]] = _measured(results, "cuda-runtime").get("runtimes", ())
    return tuple(
        CudaComponent("libcudart", entry["file"], parse_cuda(_release(entry["version"])), (), ())
        for entry in found
        if entry["version"]
    )


def _as_measured(component: CudaComponent, results: Mapping[str, GateResult]) -> CudaComponent:
    if component.name == "torch":
        return _torch(results) or component
    if component.name == "onnxruntime-gpu":
        said = _measured(results, "ort-import").get("cuda", "")
        return replace(component, cuda=parse_cuda(said)) if said[:1].isdigit() else component
    return component


def _torch(results: Mapping[str, GateResult]) -> CudaComponent | None:
    build = _measured(results, "torch-import")
    if not build.get("cuda"):
        return None
    architectures = build.get("arch_list") or ()
    return CudaComponent(
        "torch",
        build["version"],
        parse_cuda(build["cuda"]),
        tuple(name for name in architectures if name.startswith("sm_")) if architectures else None,
        tuple(name for name in architectures if name.startswith("compute_")),
    )


def _compat(results: Mapping[str, GateResult]) -> CompatLibrary | None:
    driver = results["cuda-driver"].measured
    loaded = is_compat(driver["file"])
    files = [driver["file"]] if loaded else driver["compat_files"]
    releases = [release_of(path) for path in files if release_of(path)]
    if not releases and not loaded:
        return None
    cuda = _release(driver["version"]) if loaded and driver["version"] else None
    return compat_library(releases[0] if releases else None, cuda, loaded_first=loaded)


def _once(judged: Sequence[Finding]) -> list[Finding]:
    """Each finding once: the same GPU twice in a host is one question."""
    return list({(found.code, found.subject, found.summary): found for found in judged}.values())


def _measured(results: Mapping[str, GateResult], name: str) -> Mapping[str, Any]:
    result = results.get(name)
    return result.measured if result is not None else {}


def _release(version: int) -> str:
    """CUDA's number for a release: 12040 is 12.4."""
    return str(CudaVersion(version // 1000, version % 1000 // 10))
