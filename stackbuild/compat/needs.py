"""What a stack's contents ask of a host: CUDA components and their code, requirements, a compat library."""

from __future__ import annotations

import re

from stackbuild.compat.contents import Contents, Distribution
from stackbuild.compat.subject import Compatibility, CompatLibrary, CudaComponent, ImageNeeds
from stackbuild.compat.versions import CudaVersion, parse_cuda, parse_driver, parse_variant
from stackbuild.facts.tables import Facts


def _torch_component(torch: Distribution, machine: str, facts: Facts) -> CudaComponent | None:
    variant = facts.torch_variant_of(torch.version, machine)
    if variant is None:
        return CudaComponent("torch", torch.version, None, None, confidence="uncertain")
    cuda = parse_variant(variant)
    if cuda is None:
        return None
    public = torch.version.partition("+")[0]
    shown = torch.version if "+" in torch.version else f"{torch.version} ({variant} from the default index)"
    row = facts.torch_variant(public, variant)
    if row is None:
        return CudaComponent("torch", shown, cuda, None, confidence="uncertain")
    return CudaComponent("torch", shown, cuda, row.sm, row.ptx, row.confidence)


def _onnxruntime_component(item: Distribution, facts: Facts) -> CudaComponent:
    row = facts.onnxruntime_release(item.version)
    if row is None:
        return CudaComponent("onnxruntime-gpu", item.version, None, None, confidence="uncertain")
    return CudaComponent(
        "onnxruntime-gpu",
        item.version,
        parse_cuda(row.cuda_build) if "x" not in row.cuda_build else CudaVersion(row.cuda_major, 0),
        row.sm,
        row.ptx or (),
        row.confidence,
    )


def _tensorrt_component(contents: Contents) -> CudaComponent | None:
    for item in contents.distributions:
        match = re.fullmatch(r"tensorrt-cu(\d+)(-libs|-bindings)?", item.name)
        if match:
            return CudaComponent(
                "tensorrt", item.version, CudaVersion(int(match[1]), 0), None, confidence="medium"
            )
    return None


def needs(contents: Contents, facts: Facts, accepts: Compatibility | None = None) -> ImageNeeds:
    """What the contents ask of a host."""
    components: list[CudaComponent] = []
    if contents.base_cuda is not None:
        release = contents.environment.get("CUDA_VERSION", str(contents.base_cuda))
        # The base brings a runtime but no kernels of its own that a framework would run.
        components.append(
            CudaComponent(
                "base image",
                f"CUDA {release}",
                contents.base_cuda,
                (),
                (),
                "measured",
                compiles=contents.has_compiler,
            )
        )
    torch = contents.distribution("torch")
    if torch is not None and (component := _torch_component(torch, contents.machine, facts)):
        components.append(component)
    ort = contents.distribution("onnxruntime-gpu")
    if ort is not None:
        components.append(_onnxruntime_component(ort, facts))
    if (component := _tensorrt_component(contents)) is not None:
        components.append(component)
    requirements = tuple(
        sorted(
            (name, value)
            for name, value in contents.environment.items()
            if name.startswith("NVIDIA_REQUIRE_") and not name.startswith("NVIDIA_REQUIRE_JETPACK") and value
        )
    )
    if not requirements and contents.base_cuda is not None:
        # An image with CUDA_VERSION and no requirement is asked for cuda>=CUDA_VERSION (container toolkit).
        requirements = (("NVIDIA_REQUIRE_CUDA", f"cuda>={contents.base_cuda}"),)
    return ImageNeeds(
        name=contents.name,
        platform=contents.platform,
        components=tuple(components),
        requirements=requirements,
        requirements_disabled=contents.environment.get("NVIDIA_DISABLE_REQUIRE", "").lower()
        in ("1", "t", "true"),
        compat=contents.compat,
        accepts=accepts,
    )


def compat_library(driver: str | None, cuda: str | None, *, loaded_first: bool) -> CompatLibrary:
    """A cuda-compat library as a scan finds it: the driver release in its file name, the CUDA level of its note."""
    return CompatLibrary(
        parse_driver(driver) if driver else None,
        parse_cuda(cuda) if cuda else None,
        loaded_first=loaded_first,
    )
