"""Gates over what kind of host it is: Windows, WSL2, macOS, AMD, and drivers made for games."""

from __future__ import annotations

from collections.abc import Iterator

from stackbuild.compat.subject import HostOffer, ImageNeeds
from stackbuild.findings import Finding, Verdict

# The first Windows driver with CUDA in WSL2 for CUDA 11.x (CUDA on WSL User Guide): R470.
_WSL_FLOOR = 470


def judge_posture(image: ImageNeeds, host: HostOffer) -> Iterator[Finding]:
    """Gates ``no-cuda-on-macos``, ``no-cuda-on-amd``, ``windows-containers``, ``wsl-driver-old``, ``game-driver``.

    Only what bears on a GPU image is judged; a CPU image runs wherever its platform does.
    """
    if image.platform and host.platform and image.platform != host.platform:
        yield Finding(
            code="platform-mismatch",
            verdict=Verdict.FAIL,
            subject=host.name,
            measured=host.platform,
            required=image.platform,
            summary=f"{image.name} is built for {image.platform}, {host.name} is {host.platform}.",
            next_step=f"Add {host.platform} to platforms: in the spec, or use a host of {image.platform}.",
        )
    if not image.components:
        return
    if host.posture == "macos":
        yield Finding(
            code="no-cuda-on-macos",
            verdict=Verdict.FAIL,
            subject=host.name,
            measured="macOS",
            required="Linux with an NVIDIA GPU",
            summary="macOS has no CUDA; a container there has no GPU at all.",
            next_step="Use a CPU variant in the container, or torch with MPS, or MLX, outside of containers.",
        )
    elif host.posture == "amd":
        yield Finding(
            code="no-cuda-on-amd",
            verdict=Verdict.FAIL,
            subject=host.name,
            measured=", ".join(gpu.name for gpu in host.gpus) or "an AMD GPU",
            required="an NVIDIA GPU",
            summary="An AMD GPU does not run CUDA builds.",
            next_step="Use a ROCm build of the framework, or a host with an NVIDIA GPU.",
        )
    elif host.posture == "windows":
        yield Finding(
            code="windows-containers",
            verdict=Verdict.FAIL,
            subject=host.name,
            measured="Windows without WSL2",
            required="Linux, or WSL2",
            summary="Linux images reach the GPU on Windows only through WSL2 (WDDM); a GPU in TCC mode is not there.",
            next_step="Run Docker with the WSL2 back-end, and judge that host as WSL2.",
        )
    elif host.posture == "wsl2" and host.branch is not None and host.branch < _WSL_FLOOR:
        yield Finding(
            code="wsl-driver-old",
            verdict=Verdict.FAIL,
            subject=host.name,
            measured=f"Windows driver {host.driver_text}",
            required=f"R{_WSL_FLOOR} or later",
            summary=f"CUDA in WSL2 comes from the Windows driver, and {host.driver_text} is too old for it.",
            next_step="Update the NVIDIA driver on Windows; install no Linux driver inside WSL2.",
        )
    if host.driver_flavor == "game-ready" and any(gpu.kind == "datacenter" for gpu in host.gpus):
        yield Finding(
            code="game-driver",
            verdict=Verdict.WARN,
            subject=host.name,
            measured=f"Game Ready driver {host.driver_text}",
            required="a data-centre or production-branch driver",
            summary="A data-centre GPU runs on a Game Ready driver, whose branches end sooner and get no long support.",
            next_step="Install the data-centre driver of the same CUDA level.",
        )
