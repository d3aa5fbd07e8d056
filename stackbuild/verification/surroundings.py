"""What is known of the place where a run took place, beside what the suite itself measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from stackbuild.host.model import Host
from stackbuild.verification.gpus import GpuSelection


@dataclass(frozen=True)
class Surroundings:
    """Where the suite ran. None means unknown.

    Attributes:
        gpus: The GPUs that were reserved for it.
        card: The host's inventory.
        cgroup_driver: The engine's: ``systemd`` or ``cgroupfs``.
        rootless: Whether the engine runs without root.
        selinux: Whether the engine labels containers for SELinux.
        no_cgroups: The toolkit's ``no-cgroups`` setting.
    """

    gpus: GpuSelection = field(default_factory=GpuSelection)
    card: Host | None = None
    cgroup_driver: str | None = None
    rootless: bool | None = None
    selinux: bool | None = None
    no_cgroups: bool | None = None
