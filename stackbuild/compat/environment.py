"""Gates over the image's environment variables and over extensions compiled in a build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackbuild.compat.contents import Contents
from stackbuild.findings import Finding, Verdict


def judge_environment(contents: Contents) -> Iterator[Finding]:
    """Gates ``no-compute-capability``, ``disable-require-typo`` and ``require-disabled``."""
    environment = contents.environment
    capabilities = environment.get("NVIDIA_DRIVER_CAPABILITIES")
    listed = {item.strip() for item in capabilities.split(",")} if capabilities else set()
    if contents.expects_gpu and capabilities is not None and not listed & {"compute", "all"}:
        yield Finding(
            code="no-compute-capability",
            verdict=Verdict.FAIL,
            subject="NVIDIA_DRIVER_CAPABILITIES",
            measured=capabilities,
            required="compute,utility",
            summary=f"NVIDIA_DRIVER_CAPABILITIES={capabilities} leaves out compute: nvidia-smi works, libcuda is not there.",
            next_step="Set NVIDIA_DRIVER_CAPABILITIES: compute,utility under image.env.",
        )
    if "NVIDIA_DISABLE_REQUIRES" in environment:
        yield Finding(
            code="disable-require-typo",
            verdict=Verdict.WARN,
            subject="NVIDIA_DISABLE_REQUIRES",
            summary="NVIDIA_DISABLE_REQUIRES has no effect; the variable is NVIDIA_DISABLE_REQUIRE.",
            next_step="Remove it; where a requirement is too strict, state the right one in NVIDIA_REQUIRE_CUDA.",
        )
    if environment.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "t", "true"):
        yield Finding(
            code="require-disabled",
            verdict=Verdict.WARN,
            subject="NVIDIA_DISABLE_REQUIRE",
            summary="The image turns its own driver requirement off, so that hosts which cannot run it start it.",
            next_step="State the requirement that is right in NVIDIA_REQUIRE_CUDA and drop NVIDIA_DISABLE_REQUIRE.",
        )


def judge_extensions(
    contents: Contents, extensions: Sequence[str], target_gpus: Sequence[str]
) -> Iterator[Finding]:
    """Gates ``ext-arch-unset`` and ``ext-needs-devel``: CUDA extensions compiled where no GPU is visible.

    Args:
        contents: The stack; its environment may set TORCH_CUDA_ARCH_LIST.
        extensions: Packages compiled from source during the build.
        target_gpus: Compute capabilities of the target, for example ``8.9``.
    """
    if not extensions:
        return
    names = ", ".join(extensions)
    if "TORCH_CUDA_ARCH_LIST" not in contents.environment:
        value = ";".join(target_gpus) or "8.0;9.0"
        yield Finding(
            code="ext-arch-unset",
            verdict=Verdict.FAIL,
            subject=names,
            measured="TORCH_CUDA_ARCH_LIST is not set",
            required=f"TORCH_CUDA_ARCH_LIST={value}",
            summary=f"{names} is compiled where no GPU is visible, so it guesses its architectures or builds for the CPU.",
            next_step=f"Set TORCH_CUDA_ARCH_LIST={value} (and FORCE_CUDA=1 where the package honours it).",
            details={"rendered_env": f"TORCH_CUDA_ARCH_LIST={value}"},
        )
    tag = contents.tag
    if tag is not None and tag.flavour != "devel":
        yield Finding(
            code="ext-needs-devel",
            verdict=Verdict.FAIL,
            subject=names,
            measured=f"{contents.base_tag} has no nvcc",
            required="a -devel build stage",
            summary=f"{names} needs nvcc to compile, which only -devel images have.",
            next_step=f"Compile it in a stage from {contents.base_tag.replace(tag.flavour, 'devel')}, or use a wheel.",
        )
