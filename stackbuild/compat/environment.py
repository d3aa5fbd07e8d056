"""Gates over the image's environment variables."""

from __future__ import annotations

from collections.abc import Iterator

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
