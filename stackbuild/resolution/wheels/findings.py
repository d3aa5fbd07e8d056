"""What locking notices about the wheels it chose; pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from stackbuild.errors import LockError
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.model import LockedWheel
from stackbuild.lock.wheels_target import Target
from stackbuild.resolution.wheels.index_page import IndexFile
from stackbuild.resolution.wheels.request import specifiers_on
from stackbuild.spec.model import Waiver

_SUFFIX = re.compile(r"nvidia-.+-cu([0-9]+)")
# Since CUDA 13 these come without a suffix, and their own version starts with CUDA's major. (Others, such as
# nvidia-cufft 12.x of CUDA 13, have numbers of their own.)
_UNSUFFIXED = re.compile(r"nvidia-(cublas|cuda-[a-z0-9-]+|nvjitlink|nvtx)")
_VARIANT = re.compile(r"cu([0-9]{2,3})")


def older_for_a_wheel(
    wheels: Sequence[LockedWheel],
    files_of: Callable[[str], Sequence[IndexFile]],
    asked: Sequence[Requirement],
    prereleases: frozenset[str],
    target: Target,
) -> tuple[Finding, ...]:
    """Packages that would be newer if sources were built.

    Args:
        wheels: The locked wheels.
        files_of: The files of a package on its index.
        asked: All that anybody asks for: requirements, constraints, and what the wheels require.
        prereleases: Packages whose pre-releases count.
        target: What a wheel has to suit.
    """
    findings = []
    for wheel in wheels:
        allowed = specifiers_on(wheel.name, asked)
        take_pre = wheel.name in prereleases or Version(wheel.version).is_prerelease
        with_wheel: set[Version] = {Version(wheel.version)}
        without: dict[Version, IndexFile] = {}
        for file in files_of(wheel.name):
            version = file.version
            if version is None or file.yanked is not None or (version.is_prerelease and not take_pre):
                continue
            if not _python_allows(file, target) or not allowed.contains(version, prereleases=True):
                continue
            if target.rank(file.tags) is not None:
                with_wheel.add(version)
            elif not file.is_wheel:
                without[version] = file
        newest = max((version for version in without if version not in with_wheel), default=None)
        if newest is not None and newest > max(with_wheel):
            findings.append(
                Finding(
                    code="older-for-a-wheel",
                    verdict=Verdict.WARN,
                    summary=f"{wheel.name} is {wheel.version}, because {newest} has no wheel for {target}.",
                    subject=wheel.name,
                    measured=wheel.version,
                    required=str(newest),
                    next_step=f"Nothing, if {wheel.version} will do; else build a wheel of {newest} and give it"
                    " by URL, or put it on an index of your own.",
                )
            )
    return tuple(findings)


def mixed_cuda_majors(wheels: Iterable[LockedWheel], waivers: Sequence[Waiver]) -> tuple[Finding, ...]:
    """Refuse CUDA libraries of more than one major version.

    Args:
        wheels: The locked wheels.
        waivers: The spec's; one for ``mixed-cuda-majors`` turns the error into a warning.

    Raises:
        LockError: There are several (code ``mixed-cuda-majors``); it names the packages.
    """
    by_major: dict[int, list[str]] = {}
    for wheel in wheels:
        major = cuda_major_of(wheel)
        if major is not None:
            by_major.setdefault(major, []).append(f"{wheel.name} {wheel.version}")
    if len(by_major) < 2:
        return ()
    detail = "\n".join(f"CUDA {major}: {', '.join(names)}" for major, names in sorted(by_major.items()))
    what = (
        "CUDA libraries of " + " and ".join(str(major) for major in sorted(by_major)) + " are locked together"
    )
    for waiver in waivers:
        if waiver.code == "mixed-cuda-majors" and waiver.match in f"{what} {detail}":
            return (
                Finding(
                    code="mixed-cuda-majors",
                    verdict=Verdict.WARN,
                    summary=f"{what}.",
                    measured=detail,
                    required="one major version",
                    waived=f"{waiver.reason} ({waiver.owner}, until {waiver.until})",
                    details={str(major): names for major, names in sorted(by_major.items())},
                ),
            )
    raise LockError(
        what,
        code="mixed-cuda-majors",
        detail=detail,
        do="Take frameworks of one CUDA major: `stackbuild explain mixed-cuda-majors` says which go together.",
    )


def cuda_major_of(wheel: LockedWheel) -> int | None:
    """The CUDA major a wheel belongs to, from its name, its own version, or torch's label."""
    suffixed = _SUFFIX.fullmatch(wheel.name)
    if suffixed:
        return int(suffixed.group(1))
    version = Version(wheel.version)
    if _UNSUFFIXED.fullmatch(wheel.name):
        return version.major or None
    labelled = _VARIANT.fullmatch(version.local or "")
    if wheel.name == "torch" and labelled:
        digits = labelled.group(1)
        # cu130 is 13.0 and cu92 was 9.2: the last digit is the minor version.
        return int(digits[:-1])
    return None


def index_hashes(stated: Mapping[str, str | None], wheels: Iterable[LockedWheel]) -> tuple[Finding, ...]:
    """Indexes whose hashes are missing or wrong, one finding each.

    Args:
        stated: File name to what the index states, for the files whose hash was measured.
        wheels: The locked wheels, with what was measured.
    """
    missing: dict[str, list[str]] = {}
    findings = []
    for wheel in wheels:
        if wheel.file not in stated or wheel.sha256 == stated[wheel.file]:
            continue
        if stated[wheel.file] is None:
            missing.setdefault(wheel.index, []).append(wheel.name)
            continue
        findings.append(
            Finding(
                code="index-hash-wrong",
                verdict=Verdict.WARN,
                summary=f"The index {wheel.index} states another hash for {wheel.file} than it serves.",
                subject=wheel.name,
                measured=wheel.sha256,
                required=str(stated[wheel.file]),
                next_step="What it serves is locked. Compare it with another source if that matters.",
            )
        )
    for index, names in sorted(missing.items()):
        findings.append(
            Finding(
                code="index-hash-missing",
                verdict=Verdict.WARN,
                summary=f"The index {index} states no hash for {', '.join(names)}; what it serves is locked.",
                subject=index,
            )
        )
    return tuple(findings)


def _python_allows(file: IndexFile, target: Target) -> bool:
    if file.requires_python is None:
        return True
    try:
        return SpecifierSet(file.requires_python).contains(target.python, prereleases=True)
    except InvalidSpecifier:
        return True
