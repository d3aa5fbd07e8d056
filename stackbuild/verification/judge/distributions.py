"""Installed distributions: against the lock, against each other, and against well-known clashes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from stackbuild.compat.contents import Contents, Distribution
from stackbuild.compat.wheels import cuda_major_of, judge_cuda_majors
from stackbuild.counting import counted, share, some_of
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.gate_codes import DISTRIBUTION_CODES
from stackbuild.verification.judge.findings import finding, not_applicable, pointless, unmeasured
from stackbuild.verification.model import GateResult
from stackbuild.verification.plan import IMPORT_PREFIX, requested_packages
from stackbuild.verification.promise import ONNXRUNTIME_PROVIDERS, Promise

# What makes an environment and is no part of a lock.
_TOOLS = frozenset({"pip", "setuptools", "wheel"})
_DRIVER_LIBRARIES = ("libcuda.so", "libnvidia-ml.so")
_SHOWN = 5


def judge_distributions(promise: Promise, results: Mapping[str, GateResult]) -> tuple[Finding, ...]:
    """All gates about installed distributions."""
    result = results.get("distributions")
    if result is None or result.outcome != "measured":
        return (
            unmeasured(DISTRIBUTION_CODES[0], result),
            *(
                pointless(code, "not judged: the distributions could not be listed")
                for code in DISTRIBUTION_CODES[1:]
            ),
        )
    installed: Sequence[Mapping[str, Any]] = result.measured["distributions"]
    return (
        judge_against_lock(promise, installed),
        judge_consistency(installed, result.measured["markers"], decided=promise.decided),
        judge_cuda_wheels(promise, installed, Facts()),
        judge_onnxruntime_distributions(installed),
    )


def judge_against_lock(promise: Promise, installed: Sequence[Mapping[str, Any]]) -> Finding:
    """Every locked distribution is installed once, with its version and all its files."""
    code = DISTRIBUTION_CODES[0]
    if promise.source != "lock":
        return not_applicable(code, "there is no lock to compare with")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in installed:
        found.setdefault(entry["name"], []).append(entry)
    wrong: dict[str, str] = {}
    for promised in promise.distributions:
        here = found.get(promised.name, [])
        versions = [entry["version"] for entry in here]
        missing_files = sum(entry["missing_files"] for entry in here)
        if not here:
            wrong[promised.name] = f"{promised.name} {promised.version} is not installed"
        elif len(here) > 1:
            wrong[promised.name] = (
                f"{promised.name} is installed {counted(len(here), 'time')}: {', '.join(versions)}"
            )
        elif versions[0] != promised.version:
            wrong[promised.name] = f"{promised.name} is {versions[0]}, locked is {promised.version}"
        elif missing_files:
            wrong[promised.name] = (
                f"{promised.name} lacks {missing_files} of its files, for example {here[0]['missing'][0]}"
            )
    locked = {promised.name for promised in promise.distributions}
    extra = sorted(set(found) - locked - _TOOLS)
    total = len(promise.distributions)
    details: dict[str, Any] = {"locked": total, "wrong": wrong, "not_locked": extra}
    if wrong:
        return finding(
            code,
            Verdict.FAIL,
            f"{share(len(wrong), total, 'locked distribution')} not as locked: {_shown(list(wrong.values()))}",
            measured=f"{total - len(wrong)} as locked",
            required=f"{total} as locked",
            details=details,
        )
    if extra:
        return finding(
            code,
            Verdict.WARN,
            f"{share(total, total, 'locked distribution')} installed, and {len(extra)} more: {_shown(extra)}",
            measured=counted(total + len(extra), "distribution"),
            required=counted(total, "distribution"),
            next_step="Name them in the spec, so that the lock covers them.",
            details=details,
        )
    return finding(
        code, Verdict.PASS, f"{share(total, total, 'locked distribution')} installed, whole", details=details
    )


def judge_consistency(
    installed: Sequence[Mapping[str, Any]],
    markers: Mapping[str, str],
    *,
    decided: Collection[str] = (),
) -> Finding:
    """Every requirement of every installed distribution is met, as ``pip check`` asks.

    Args:
        installed: ``name``, ``version``, ``requires`` of each.
        markers: The image's marker environment ("Dependency specifiers", formerly PEP 508).
        decided: Names whose version or absence the spec states as an override or exclusion.
    """
    code = DISTRIBUTION_CODES[1]
    versions = {entry["name"]: entry["version"] for entry in installed}
    problems: list[str] = []
    overridden: list[str] = []
    for entry in sorted(installed, key=lambda entry: str(entry["name"])):
        for text in entry["requires"]:
            problem = _unmet(text, versions, markers)
            if problem is not None:
                name, sentence = problem
                (overridden if name in decided else problems).append(f"{entry['name']} {sentence}")
    details = {"problems": problems, "decided_by_the_spec": overridden}
    if problems:
        return finding(
            code,
            Verdict.FAIL,
            _shown(problems),
            measured=counted(len(problems), "unmet requirement"),
            details=details,
        )
    note = f"; {len(overridden)} unmet by decision of the spec" if overridden else ""
    return finding(
        code,
        Verdict.PASS,
        f"the requirements of {counted(len(installed), 'distribution')} are met{note}",
        details=details,
    )


def _unmet(text: str, versions: Mapping[str, str], markers: Mapping[str, str]) -> tuple[str, str] | None:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None  # written before the specification; no tool can say whether it is met
    if requirement.marker is not None and not requirement.marker.evaluate({**markers, "extra": ""}):
        return None
    name = str(canonicalize_name(requirement.name))
    if name not in versions:
        return name, f"requires {name}, which is not installed"
    try:
        if requirement.specifier.contains(versions[name], prereleases=True):
            return None
    except InvalidVersion:
        return None
    return name, f"requires {name}{requirement.specifier}, installed is {versions[name]}"


def judge_cuda_wheels(promise: Promise, installed: Sequence[Mapping[str, Any]], facts: Facts) -> Finding:
    """CUDA wheels of one major only, by the same rule as before the build, over what is really there."""
    code = DISTRIBUTION_CODES[2]
    contents = Contents(
        name=promise.stack,
        platform=promise.platform,
        distributions=tuple(Distribution(entry["name"], entry["version"]) for entry in installed),
        locked=True,
    )
    majors = sorted({major for item in contents.distributions if (major := cuda_major_of(item))})
    if not majors:
        return not_applicable(code, "no CUDA wheels are installed")
    clash = next(judge_cuda_majors(contents, facts), None)
    return clash or finding(
        code, Verdict.PASS, f"all CUDA wheels are of CUDA {majors[0]}", measured=f"CUDA {majors[0]}"
    )


def judge_onnxruntime_distributions(installed: Sequence[Mapping[str, Any]]) -> Finding:
    """At most one distribution writes the onnxruntime module; luck with the order of installation does not count."""
    code = DISTRIBUTION_CODES[3]
    present = sorted(
        f"{entry['name']} {entry['version']}" for entry in installed if entry["name"] in ONNXRUNTIME_PROVIDERS
    )
    if not present:
        return not_applicable(code, "no ONNX Runtime is installed")
    if len(present) == 1:
        return finding(code, Verdict.PASS, f"only {present[0]} is installed", measured=present[0])
    return finding(
        code,
        Verdict.FAIL,
        f"{' and '.join(present)} are both installed and write to the same folder",
        measured=", ".join(present),
        required="one of them",
        details={"distributions": present},
    )


def judge_imports(
    promise: Promise, results: Mapping[str, GateResult], *, no_device: str
) -> tuple[Finding, ...]:
    """Every requested package can be imported; one finding for all that can, one for each that cannot."""
    code = "packages-import"
    names = [entry.name for entry in requested_packages(promise)]
    if not names:
        return (not_applicable(code, "the spec names no package beside the frameworks"),)
    imported: list[str] = []
    others: list[Finding] = []
    for name in names:
        result = results.get(IMPORT_PREFIX + name)
        message = result.error.get("message", "") if result is not None else ""
        if result is not None and result.outcome == "measured":
            imported.append(name)
        elif no_device and any(library in message for library in _DRIVER_LIBRARIES):
            others.append(
                pointless(code, f"not judged: {name} needs the driver's library and no GPU was reserved")
            )
        else:
            others.append(unmeasured(code, result, subject=name))
    if not imported:
        return tuple(others)
    seconds = {
        name: sum(results[IMPORT_PREFIX + name].measured.get("modules", {}).values()) for name in imported
    }
    passed = finding(code, Verdict.PASS, f"{_shown(imported)} can be imported", details={"seconds": seconds})
    return (passed, *others)


def _shown(items: Sequence[str]) -> str:
    return some_of(items, _SHOWN, between="; " if any(" " in item for item in items) else ", ")
