"""Why NVML does not answer in a container whose host's nvidia-smi works (case I01).

Sources: NVIDIA Container Toolkit troubleshooting guide ("Containers losing access to GPUs with error:
Failed to initialize NVML: Unknown Error"), and its configuration's ``no-cgroups``.
"""

from __future__ import annotations

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding
from stackbuild.verification.surroundings import Surroundings

NO_PERMISSION, DRIVER_LIBRARY_MISMATCH, UNKNOWN = 4, 18, 999


def judge_nvml_failure(status: int, words: str, *, ok_at_start: bool, surroundings: Surroundings) -> Finding:
    """The ERROR that an NVML error stands for; it is the host's configuration in each case, never the image.

    Args:
        status: NVML's return value.
        words: NVML's own words for it.
        ok_at_start: Whether NVML answered when the container was young.
        surroundings: The engine's cgroup driver, whether it is rootless, SELinux, the toolkit's no-cgroups.
    """
    said = f"NVML answers {words!r}"
    details = {
        "status": status,
        "ok_at_start": ok_at_start,
        "cgroup_driver": surroundings.cgroup_driver,
        "no_cgroups": surroundings.no_cgroups,
        "rootless": surroundings.rootless,
        "selinux": surroundings.selinux,
    }
    if status == DRIVER_LIBRARY_MISMATCH:
        return finding(
            "nvml-driver-library-mismatch",
            Verdict.ERROR,
            f"{said}: the driver's libraries were updated and its kernel module was not",
            measured=words,
            details=details,
        )
    if status == NO_PERMISSION or (status == UNKNOWN and surroundings.selinux):
        return finding(
            "selinux-devices",
            Verdict.ERROR,
            f"{said}: SELinux or the nodes' modes keep the container from the devices",
            measured=words,
            details=details,
        )
    if status == UNKNOWN and ok_at_start:
        return finding(
            "nvml-lost-after-reload",
            Verdict.ERROR,
            f"{said} now and answered at the start: a reload of systemd took the container's access to the devices away",
            measured=words,
            details=details,
        )
    if status == UNKNOWN and surroundings.no_cgroups is not False and not surroundings.rootless:
        sure = "has no-cgroups = true" if surroundings.no_cgroups else "may have no-cgroups = true"
        return finding(
            "no-cgroups-rootful",
            Verdict.ERROR,
            f"{said} from the start: the toolkit {sure}, which is for rootless engines only",
            measured=words,
            details=details,
        )
    return finding(
        "nvml-agrees",
        Verdict.ERROR,
        f"{said}, so it could not be asked",
        measured=words,
        details=details,
    )
