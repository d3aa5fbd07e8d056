"""Tells why a container did not start, from the engine's own words."""

from __future__ import annotations

import re

from stackbuild.explain.recognise import Recognised, recognise
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding

# What speaks when the GPUs are refused in words that the failure catalog does not know: the toolkit's hook, its
# command line, or CDI.
_TOOLKIT = re.compile(
    r"nvidia-container-cli|CDI device|nvidia-container-runtime-hook|NVIDIA Container Runtime Hook|unknown device",
    re.I,
)
_LAST_CAUSE = re.compile(r"(?:nvidia-container-cli: |CDI device injection failed: )(.+)", re.S)


def judge_start_failure(message: str) -> Finding:
    """What an engine's refusal to start a container stands for: the image's own demand is a FAIL, all else an ERROR.

    The words are recognised by the failure catalog.

    Args:
        message: The engine's words.
    """
    known = next(
        (
            found
            for found in recognise(message.splitlines(), Facts())
            if found.signature.stage == "start" and not found.signature.apart
        ),
        None,
    )
    details = {"engine": message}
    if known is not None and known.code in ("toolkit-not-installed", "cdi-not-enabled"):
        return finding(
            "toolkit-not-installed",
            Verdict.ERROR,
            "this host's Docker cannot reserve GPUs: the NVIDIA Container Toolkit is not installed or not configured",
            details=details,
        )
    if known is not None and known.code in ("driver-too-old", "requirement-not-met"):
        return _demand(known, details)
    if known is not None or _TOOLKIT.search(message):
        cause = _LAST_CAUSE.search(message)
        words = " ".join((cause[1] if cause else message).split())
        return finding(
            "gpu-request-refused",
            Verdict.ERROR,
            f"the GPUs could not be given to the container: {words}",
            next_step=known.signature.next_step if known is not None else "",
            details=details,
        )
    return finding(
        "container-start-failed",
        Verdict.ERROR,
        f"the container did not start: {' '.join(message.split())}",
        details=details,
    )


def _demand(known: Recognised, details: dict[str, str]) -> Finding:
    demand = " ".join(known.sightings[0].values["condition"].split())
    return finding(
        "requirement-not-met" if known.code == "requirement-not-met" else "driver-too-old",
        Verdict.FAIL,
        f"the toolkit refuses to start the image on this host: it demands {demand}. {known.signature.cause}",
        measured="the host's driver and GPUs",
        required=demand,
        next_step=known.signature.next_step,
        details=dict(details),
    )
