"""Gates over ONNX Runtime and others that link CUDA, cuDNN or TensorRT themselves (DESIGN §3.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import Version

from stackbuild.compat.contents import Contents, Distribution
from stackbuild.compat.versions import parse_variant
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict

# What libonnxruntime_providers_cuda.so opens, and the wheels that bring it (facts: onnxruntime_releases).
_LIBRARIES = ("cublas", "cuda-runtime", "cudnn", "cufft", "curand")
# What the flavours of nvidia/cuda bring (nvidia/cuda Dockerfiles: base has cudart, runtime the math libraries).
_FLAVOUR_BRINGS = {
    "base": frozenset({"cuda-runtime"}),
    "runtime": frozenset({"cuda-runtime", "cublas", "cufft", "curand"}),
    "devel": frozenset({"cuda-runtime", "cublas", "cufft", "curand"}),
}


@dataclass(frozen=True)
class Linked:
    """What a distribution links: its CUDA and cuDNN majors."""

    cuda_major: int
    cudnn_major: int
    tensorrt_major: int | None = None


def linked_by_onnxruntime(item: Distribution, facts: Facts) -> Linked | None:
    """What an onnxruntime-gpu build links, by the feed it came from; None when the facts lack it."""
    for row in facts.table("onnxruntime_feeds").rows:
        if row.feed == item.index and Version(row.first) <= Version(item.version) <= Version(row.last):
            return Linked(row.cuda_major, row.cudnn_major)
    release = facts.onnxruntime_release(item.version)
    return Linked(release.cuda_major, release.cudnn_major, release.tensorrt_major) if release else None


def linked_by_other(item: Distribution, facts: Facts) -> Linked | None:
    """What another cuDNN user links; None when it is none or the facts lack its version."""
    for row in facts.table("cudnn_users").rows:
        begun = row.package == item.name and Version(row.first) <= Version(item.version)
        if begun and (not row.before or Version(item.version) < Version(row.before)):
            return Linked(row.cuda_major, row.cudnn_major)
    return None


def cudnn_major(contents: Contents, facts: Facts) -> tuple[int, str] | None:
    """The cuDNN major that is there and who brings it: a wheel, torch's own pin, or the base."""
    for item in contents.distributions:
        if item.name.startswith("nvidia-cudnn-cu"):
            return int(item.version.split(".")[0]), f"{item.name} {item.version}"
    torch = contents.distribution("torch")
    if torch is not None:
        variant = facts.torch_variant_of(torch.version, contents.machine)
        row = facts.torch_variant(torch.version.partition("+")[0], variant or "")
        if row is not None and row.cudnn is not None:
            return int(row.cudnn.split(".")[0]), f"torch {torch.version}"
    version = contents.environment.get("NV_CUDNN_VERSION", "")
    if version[:1].isdigit():
        return int(version.split(".")[0]), f"the base (cuDNN {version})"
    tag = contents.tag
    if tag is not None and tag.cudnn:
        return (int(tag.cudnn[5:]), "the base's tag") if tag.cudnn[5:] else (9, "the base's tag")
    return None


def cuda_major(contents: Contents, facts: Facts) -> tuple[int, str] | None:
    """The CUDA major whose libraries are there and who brings them: torch, nvidia-* wheels, or the base."""
    torch = contents.distribution("torch")
    variant = facts.torch_variant_of(torch.version, contents.machine) if torch else None
    cuda = parse_variant(variant) if variant else None
    if torch is not None and cuda is not None:
        return cuda.major, f"torch {torch.version}"
    if contents.base_cuda is not None:
        return contents.base_cuda.major, f"the base's CUDA {contents.base_cuda}"
    return None


def judge_onnxruntime(contents: Contents, facts: Facts) -> Iterator[Finding]:
    """Gates ``ort-cpu-and-gpu-both``, ``ort-cuda-major``, ``ort-cudnn-major``, ``tensorrt-major``."""
    gpu, cpu = contents.distribution("onnxruntime-gpu"), contents.distribution("onnxruntime")
    if gpu is not None and cpu is not None:
        yield Finding(
            code="ort-cpu-and-gpu-both",
            verdict=Verdict.FAIL,
            subject=f"onnxruntime {cpu.version}, onnxruntime-gpu {gpu.version}",
            measured="both installed",
            required="onnxruntime-gpu alone",
            summary="onnxruntime and onnxruntime-gpu both install the folder onnxruntime/; which one wins is luck, "
            "and pip check does not see it.",
            next_step="Name onnxruntime under exclude: in the spec and lock again (by hand: uninstall both, reinstall -gpu).",
        )
    if gpu is None:
        return
    if contents.machine == "aarch64" and Version(gpu.version) < Version("1.29"):
        yield Finding(
            code="no-wheel-for-platform",
            verdict=Verdict.FAIL,
            subject=f"onnxruntime-gpu {gpu.version}",
            measured="x86_64 wheels only",
            required=contents.platform,
            summary=f"onnxruntime-gpu {gpu.version} has no aarch64 wheel; the first that has is 1.29.0.",
            next_step="Use onnxruntime-gpu 1.29.0 or later.",
        )
    linked = linked_by_onnxruntime(gpu, facts)
    if linked is None:
        yield Finding(
            code="ort-cuda-major",
            verdict=Verdict.WARN,
            subject=f"onnxruntime-gpu {gpu.version}",
            measured="unknown",
            summary=f"onnxruntime-gpu {gpu.version} is not in the facts, so the CUDA and cuDNN it links are not known.",
            next_step="'stackbuild facts onnxruntime_releases' lists the releases that were measured.",
            details={"note": "unknown"},
        )
        return
    have = cuda_major(contents, facts)
    if have is not None and have[0] != linked.cuda_major:
        yield Finding(
            code="ort-cuda-major",
            verdict=Verdict.FAIL,
            subject=f"onnxruntime-gpu {gpu.version}",
            measured=f"CUDA {have[0]} ({have[1]})",
            required=f"libcublasLt.so.{linked.cuda_major} (CUDA {linked.cuda_major})",
            summary=f"onnxruntime-gpu {gpu.version} links CUDA {linked.cuda_major}, {have[1]} brings CUDA {have[0]}: "
            "the CUDA provider will not load and sessions run on the CPU in silence.",
            next_step=f"Take an onnxruntime-gpu of CUDA {have[0]}: {_releases_of(have[0], facts)}.",
        )
    dnn = cudnn_major(contents, facts)
    if dnn is not None and dnn[0] != linked.cudnn_major:
        yield Finding(
            code="ort-cudnn-major",
            verdict=Verdict.FAIL,
            subject=f"onnxruntime-gpu {gpu.version}",
            measured=f"cuDNN {dnn[0]} ({dnn[1]})",
            required=f"libcudnn.so.{linked.cudnn_major}",
            summary=f"onnxruntime-gpu {gpu.version} needs cuDNN {linked.cudnn_major}, {dnn[1]} brings cuDNN {dnn[0]}.",
            next_step="Take releases of both that use one cuDNN major.",
        )
    yield from _judge_tensorrt(contents, gpu, linked)


def _releases_of(major: int, facts: Facts) -> str:
    versions = [row.version for row in facts.table("onnxruntime_releases").rows if row.cuda_major == major]
    return (
        f"{versions[0]} to {versions[-1]} on the default index" if versions else "none on the default index"
    )


def _judge_tensorrt(contents: Contents, gpu: Distribution, linked: Linked) -> Iterator[Finding]:
    installed = next(
        (item for item in contents.distributions if item.name.split("-cu")[0] == "tensorrt"), None
    )
    if installed is None or linked.tensorrt_major is None:
        return
    major = int(installed.version.split(".")[0])
    if major != linked.tensorrt_major:
        yield Finding(
            code="tensorrt-major",
            verdict=Verdict.FAIL,
            subject=f"{installed.name} {installed.version}",
            measured=f"TensorRT {major}",
            required=f"libnvinfer.so.{linked.tensorrt_major}",
            summary=f"onnxruntime-gpu {gpu.version} links TensorRT {linked.tensorrt_major}, {installed.name} is {major}: "
            "its TensorRT provider will not load.",
            next_step=f"Take TensorRT {linked.tensorrt_major}.x, or an onnxruntime-gpu that links {major}.",
        )


def judge_cudnn_users(contents: Contents, facts: Facts) -> Iterator[Finding]:
    """Gate ``cudnn-major-conflict``: another package needs a cuDNN major that is not the one there."""
    have = cudnn_major(contents, facts)
    for item in contents.distributions:
        linked = linked_by_other(item, facts)
        if linked is not None and have is not None and have[0] != linked.cudnn_major:
            yield Finding(
                code="cudnn-major-conflict",
                verdict=Verdict.FAIL,
                subject=f"{item.name} {item.version}",
                measured=f"cuDNN {have[0]} ({have[1]})",
                required=f"cuDNN {linked.cudnn_major}",
                summary=f"{item.name} {item.version} needs cuDNN {linked.cudnn_major}, {have[1]} brings cuDNN {have[0]}.",
                next_step=f"Take a release of {item.name} for cuDNN {have[0]}, or a torch with cuDNN {linked.cudnn_major}.",
            )


def judge_libraries(contents: Contents, facts: Facts) -> Iterator[Finding]:
    """Gate ``flavour-lacks-lib``: base and wheels together lack a library that a provider opens.

    Judged where all distributions are known; a spec alone says too little.
    """
    users: list[tuple[Distribution, Linked]] = []
    for item in contents.distributions:
        linked = (
            linked_by_onnxruntime(item, facts)
            if item.name == "onnxruntime-gpu"
            else linked_by_other(item, facts)
        )
        if linked is not None:
            users.append((item, linked))
    if not contents.locked or not users:
        return
    tag = contents.tag
    brought = set(_FLAVOUR_BRINGS.get(tag.flavour, frozenset())) if tag else set()
    if tag is not None and tag.cudnn:
        brought.add("cudnn")
    names = {item.name for item in contents.distributions}
    for library in _LIBRARIES:
        if any(name == f"nvidia-{library}" or name.startswith(f"nvidia-{library}-cu") for name in names):
            brought.add(library)
    for item, linked in users:
        needed = _LIBRARIES if item.name == "onnxruntime-gpu" else ("cublas", "cudnn")
        missing = [library for library in needed if library not in brought]
        if missing:
            extra = "onnxruntime-gpu[cuda,cudnn]" if item.name == "onnxruntime-gpu" else "the nvidia-* wheels"
            yield Finding(
                code="flavour-lacks-lib",
                verdict=Verdict.FAIL,
                subject=f"{item.name} {item.version}",
                measured=f"base {contents.base_tag or 'without CUDA'}",
                required=", ".join(missing),
                summary=f"Neither the base nor a wheel brings {', '.join(missing)} of CUDA {linked.cuda_major}, "
                f"which {item.name} {item.version} opens: it falls back to the CPU or aborts.",
                next_step=f"Ask for {extra}, or take a base flavour that has them.",
                details={"missing": missing},
            )
