"""The frozen stack: everything that a verdict was measured on, from the host's hardware to the model's format."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from stackbuild.frozen_model import FrozenModel
from stackbuild.host.model import Host


class FrozenStack(FrozenModel):
    """What was there when the verdict was found. Empty means that nobody could tell."""

    architecture: str = Field(default="", description="of the host: x86_64, aarch64")
    os: str = Field(default="", description="of the host, with its build")
    kernel: str = ""
    firmware: str = ""
    driver: str = Field(default="", description="kernel-mode driver of the GPUs")
    gpus: tuple[str, ...] = Field(default=(), description="names of the GPUs, as the driver gives them")
    container_engine: str = ""
    container_toolkit: str = Field(default="", description="NVIDIA Container Toolkit")
    deployment_target: str = Field(default="", description="what the spec is for")
    image_os: str = Field(default="", description="of the image or environment")
    glibc: str = ""
    python: str = ""
    frameworks: dict[str, str] = Field(default_factory=dict, description="distribution → version")
    cuda_runtime: str = Field(default="", description="that the frameworks use")
    execution_provider: str = Field(default="", description="on which ONNX nodes ran")
    model_format: str = ""
    package_sources: tuple[str, ...] = Field(default=(), description="names of indexes and apt sources")
    compiler: str = ""
    cuda_toolkit: str = Field(default="", description="nvcc")
    profilers: dict[str, str] = Field(default_factory=dict, description="profiling tool → version")

    def field(self, name: str) -> str:
        """A field as text; empty when nobody could tell.

        Args:
            name: As in files: ``container-engine``.
        """
        value = getattr(self, name.replace("-", "_"))
        if isinstance(value, str):
            return value
        if isinstance(value, Mapping):
            return ", ".join(f"{key} {value[key]}" for key in sorted(value))
        return ", ".join(value)

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Every field as in files, with its text."""
        names = [name.replace("_", "-") for name in type(self).model_fields]
        return tuple((name, self.field(name)) for name in names)


def stack_of_host(card: Host) -> FrozenStack:
    """The part of the stack that a host's card tells: nothing of what an image brings, such as its Python."""
    return FrozenStack(
        architecture=card.machine or "",
        os=card.os or "",
        kernel=card.kernel or "",
        firmware=card.firmware or "",
        driver=card.driver or "",
        gpus=tuple(gpu.name for gpu in card.gpus),
        container_engine=f"Docker {card.docker}" if card.docker else "",
        container_toolkit=card.toolkit or "",
        compiler=card.compiler or "",
        cuda_toolkit=card.nvcc or "",
        profilers=dict(card.profilers),
    )
