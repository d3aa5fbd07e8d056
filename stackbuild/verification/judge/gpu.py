"""Everything about reaching a GPU, in the order in which one obstacle makes the rest pointless."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding
from stackbuild.verification.gate_codes import REACH_CODES
from stackbuild.verification.judge.compatibility import judge_compatibility
from stackbuild.verification.judge.devices import judge_devices
from stackbuild.verification.judge.findings import not_applicable, pointless
from stackbuild.verification.judge.libraries import judge_libraries
from stackbuild.verification.judge.nvml import judge_nvml
from stackbuild.verification.judge.reach import judge_reach
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise
from stackbuild.verification.surroundings import Surroundings


def judge_gpu(
    promise: Promise, results: Mapping[str, GateResult], surroundings: Surroundings
) -> tuple[Finding, ...]:
    """All gates about driver, devices and CUDA libraries; a stack that promises no GPU has none of the former."""
    libraries = judge_libraries(promise, results)
    if promise.device != "cuda":
        why = "the stack promises no GPU"
        return (*(not_applicable(code, why) for code in REACH_CODES), *libraries)
    if surroundings.gpus.none:
        why = "not judged: it needs a GPU and none was reserved"
        return (*(pointless(code, why) for code in REACH_CODES), *libraries)
    return (
        *judge_reach(results),
        *judge_compatibility(promise, results, Facts()),
        judge_nvml(results, surroundings),
        *judge_devices(results, surroundings),
        *libraries,
    )
