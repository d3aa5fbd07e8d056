"""A platform as others know it: the machine's names, and the values of environment markers."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.spec.model import Platform

# The machine as the kernel and wheels name it.
MACHINES: Mapping[str, str] = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
# The platform of a machine, by the names that kernels, engines and schedulers have for it.
PLATFORM_OF_MACHINE: Mapping[str, Platform] = {
    "x86_64": "linux/amd64",
    "amd64": "linux/amd64",
    "aarch64": "linux/arm64",
    "arm64": "linux/arm64",
}


def marker_values(python: str, machine: str) -> dict[str, str]:
    """What environment markers see on CPython on Linux (the dependency specifiers of the packaging user guide).

    Args:
        python: Full version, for example ``3.11.2``.
        machine: ``x86_64`` or ``aarch64``.
    """
    return {
        "implementation_name": "cpython",
        "implementation_version": python,
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": python,
        "python_version": ".".join(python.split(".")[:2]),
        "sys_platform": "linux",
    }


def platform_in_a_name(platform: str) -> str:
    """A platform as a part of the name of a file, an image or a job: ``linux-arm64``."""
    return platform.replace("/", "-")
