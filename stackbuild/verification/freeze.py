"""Collects the frozen stack of a run, from what the suite measured and what the host's card says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stackbuild.digests import short_hex
from stackbuild.host.model import Host
from stackbuild.verification.frozen_stack import FrozenStack, stack_of_host
from stackbuild.verification.model import GateResult, SuiteRun
from stackbuild.verification.promise import Promise

# Distributions that are a framework of their own, not a part of one.
_FRAMEWORKS = (
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "onnxruntime",
    "onnxruntime-gpu",
    "tensorrt",
    "jax",
    "tensorflow",
)


def freeze(promise: Promise, run: SuiteRun, card: Host | None, engine: str) -> FrozenStack:
    """The stack of a run: what the suite measured before what the card says.

    Args:
        promise: What the image is for.
        run: What the suite brought back.
        card: The inventory of the host it ran on; None when that is another machine.
        engine: The container engine with its version; empty when it is not known.
    """
    host = stack_of_host(card) if card is not None else FrozenStack()
    here = _measured(run.results.get("interpreter"))
    nvml = _measured(run.results.get("nvml"))
    shown = tuple(str(device.get("name", "")) for device in nvml.get("devices") or () if device.get("name"))
    implementation = str(here.get("implementation", ""))
    return host.model_copy(
        update={
            "architecture": host.architecture or str(here.get("machine", "")),
            # A container has its host's kernel.
            "kernel": str(here.get("kernel") or host.kernel),
            "driver": str(nvml.get("driver") or host.driver),
            "gpus": shown or host.gpus,
            "container_engine": engine,
            "deployment_target": promise.deployment_target,
            "image_os": _os(here.get("os") or {}),
            "glibc": str(here.get("glibc") or ""),
            "python": f"{implementation} {here.get('python', '')}".strip(),
            "frameworks": _frameworks(run),
            "cuda_runtime": _cuda_runtime(run),
            "execution_provider": _provider(run),
            "model_format": _model_format(promise),
            "package_sources": promise.package_sources,
        }
    )


def _measured(result: GateResult | None) -> Mapping[str, Any]:
    return result.measured if result is not None else {}


def _os(release: Mapping[str, Any]) -> str:
    return str(
        release.get("PRETTY_NAME") or " ".join(str(release.get(name, "")) for name in ("ID", "VERSION_ID"))
    ).strip()


def _frameworks(run: SuiteRun) -> dict[str, str]:
    listed = _measured(run.results.get("distributions")).get("distributions") or ()
    found = {
        str(entry["name"]): str(entry["version"]) for entry in listed if entry.get("name") in _FRAMEWORKS
    }
    # What torch says of itself has the local label that tells its build.
    told = _measured(run.results.get("torch-import")).get("version")
    return {**found, "torch": str(told)} if told else found


def _cuda_runtime(run: SuiteRun) -> str:
    torch = _measured(run.results.get("torch-import"))
    runtimes = _measured(run.results.get("cuda-runtime")).get("runtimes") or ()
    versions = [_release(entry.get("version")) for entry in runtimes if entry.get("version")]
    if torch.get("cuda"):
        versions.insert(0, f"{torch['cuda']} (torch)")
    return ", ".join(_once(versions)) or ("none" if torch.get("version") else "")


def _release(version: Any) -> str:
    """13020 is 13.2 (CUDA Runtime API, cudaRuntimeGetVersion)."""
    return f"{int(version) // 1000}.{int(version) % 1000 // 10}"


def _provider(run: SuiteRun) -> str:
    for name in ("ort-model-session", "ort-session"):
        placement = _measured(run.results.get(name)).get("placement") or {}
        if placement:
            return ", ".join(sorted(placement))
    return ""


def _model_format(promise: Promise) -> str:
    formats = []
    if promise.onnx_model:
        formats.append(f"ONNX ({short_hex(promise.onnx_model_sha256 or '')})")
    if promise.torch_model is not None:
        formats.append("PyTorch")
    return ", ".join(formats) or "none of its own"


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
