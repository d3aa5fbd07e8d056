"""Tells why a container did not start, from the engine's own words."""

from __future__ import annotations

import re

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding

# Docker 20.10–28.5 when no driver serves the request (docker-notes "GPU reservation", and nvidia-docker#1034).
_NO_TOOLKIT = re.compile(r'could not select device driver "\w*" with capabilities')
# What the toolkit's hook, its CLI and CDI say when they refuse.
_REFUSED = re.compile(
    r"nvidia-container-cli|unsatisfied condition|unresolvable CDI devices|unknown device|"
    r"nvidia-container-runtime-hook|NVIDIA Container Runtime Hook",
    re.I,
)
# What nvidia-container-cli says when the image's NVIDIA_REQUIRE_* does not hold; cuda and driver speak of the
# driver, arch and brand of the GPU.
_REQUIREMENT = re.compile(r"unsatisfied condition: ((cuda|driver|arch|brand)\s*[<>=!]+\s*[\w.]+)")
_LAST_CAUSE = re.compile(r"(?:nvidia-container-cli: |CDI device injection failed: )(.+)", re.S)


def judge_start_failure(message: str) -> Finding:
    """What an engine's refusal to start a container stands for: the image's own demand is a FAIL, all else an ERROR.

    Args:
        message: The engine's words.
    """
    details = {"engine": message}
    if _NO_TOOLKIT.search(message):
        return finding(
            "toolkit-not-installed",
            Verdict.ERROR,
            "this host's Docker cannot reserve GPUs: the NVIDIA Container Toolkit is not installed or not configured",
            details=details,
        )
    requirement = _REQUIREMENT.search(message)
    if requirement is not None:
        demand = " ".join(requirement[1].split())
        return finding(
            "driver-too-old" if requirement[2] in ("cuda", "driver") else "requirement-not-met",
            Verdict.FAIL,
            f"the toolkit refuses to start the image on this host: it demands {demand}",
            measured="the host's driver and GPUs",
            required=demand,
            details=details,
        )
    if _REFUSED.search(message):
        cause = _LAST_CAUSE.search(message)
        words = " ".join((cause[1] if cause else message).split())
        return finding(
            "gpu-request-refused",
            Verdict.ERROR,
            f"the GPUs could not be given to the container: {words}",
            details=details,
        )
    return finding(
        "container-start-failed",
        Verdict.ERROR,
        f"the container did not start: {' '.join(message.split())}",
        details=details,
    )
