"""What a spec asks the resolver for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from stackbuild.errors import LockError
from stackbuild.resolution.wheels.index_bindings import wheel_name_of
from stackbuild.resolution.wheels.onnxruntime import with_cuda_libraries
from stackbuild.spec.model import StackSpec, WheelUrl
from stackbuild.spec.requirement_files.interface import Pin
from stackbuild.spec.requirements_input import requirement_inputs

_ONNXRUNTIME_GPU = "onnxruntime-gpu"


@dataclass(frozen=True)
class Request:
    """The direct requirements, the packages the spec itself names, and what bends the resolution.

    Package names are normalised.
    """

    direct: tuple[Requirement, ...]
    named: frozenset[str]
    constraints: tuple[Requirement, ...] = ()
    overrides: tuple[Requirement, ...] = ()
    exclude: frozenset[str] = frozenset()
    prereleases: frozenset[str] = frozenset()
    urls: tuple[WheelUrl, ...] = ()

    def pinned(self, package: str) -> Version | None:
        """The version that the direct requirements pin a package to, if they do."""
        return _pinned(self.direct, package)


@dataclass(frozen=True)
class WantedWheels:
    """What a spec and the files it reads want of wheels.

    Attributes:
        spec: The spec with the constraints of its files.
        requirements: PEP 508 strings for ``lock_wheels``; frameworks and wheels by URL are in the spec.
        pins: What its files name at exactly one version, with hashes where they give them.
    """

    spec: StackSpec
    requirements: tuple[str, ...]
    pins: tuple[Pin, ...]


def wanted_wheels(spec: StackSpec, folder: Path) -> WantedWheels:
    """Read what a spec wants of wheels.

    Args:
        spec: The spec.
        folder: The folder that its paths start from.

    Raises:
        SpecError: A requirements file is missing or invalid.
    """
    found = requirement_inputs(spec, folder)
    wanted = [*found.direct, *(pin.requirement for pin in found.pins)]
    if spec.pip and "pip" not in {pin.name for pin in found.pins}:
        wanted.append("pip")
    return WantedWheels(spec.model_copy(update={"constraints": found.constraints}), tuple(wanted), found.pins)


def request_of(
    spec: StackSpec, requirements: Iterable[str], applies: Callable[[Requirement], bool]
) -> Request:
    """Gather what a spec asks for.

    Args:
        spec: The spec; frameworks, wheels by URL, constraints, overrides, exclude and prereleases are read.
        requirements: The spec's packages, with those of its requirements files, as PEP 508 strings.
        applies: Whether a requirement's marker holds in the target.

    Raises:
        LockError: A requirement cannot be read, or names a URL (code ``requirement-invalid``).
    """
    direct = [requirement for requirement in map(_requirement, requirements) if applies(requirement)]
    for name, framework in spec.frameworks.items():
        direct.append(_requirement(f"{name}=={framework.version}" if framework.version else name))
    urls = tuple(item for item in spec.packages if isinstance(item, WheelUrl))
    for item in urls:
        version = item.url.rpartition("/")[2].split("-")[1].replace("%2B", "+")
        direct.append(_requirement(f"{wheel_name_of(item.url)}=={version}"))
    named = tuple(direct)
    pinned = _pinned(named, _ONNXRUNTIME_GPU)
    for requirement in named:
        if canonicalize_name(requirement.name) == _ONNXRUNTIME_GPU:
            direct.remove(requirement)
            direct += with_cuda_libraries(requirement, pinned)
    exclude = frozenset(map(canonicalize_name, spec.exclude))
    wanted = {str(item): item for item in direct if canonicalize_name(item.name) not in exclude}
    return Request(
        direct=tuple(item for _, item in sorted(wanted.items())),
        named=frozenset(canonicalize_name(item.name) for item in named),
        constraints=tuple(map(_requirement, spec.constraints)),
        overrides=tuple(map(_requirement, spec.overrides)),
        exclude=exclude,
        prereleases=frozenset(map(canonicalize_name, spec.prereleases)),
        urls=urls,
    )


def pin_of(requirement: Requirement) -> Version | None:
    """The one version that a requirement allows, if it names it with ``==``."""
    for specifier in requirement.specifier:
        if specifier.operator in ("==", "===") and not specifier.version.endswith(".*"):
            try:
                return Version(specifier.version)
            except InvalidVersion:
                return None
    return None


def specifiers_on(package: str, requirements: Iterable[Requirement]) -> SpecifierSet:
    """All that the requirements say of a package's version, together."""
    combined = SpecifierSet()
    for requirement in requirements:
        if canonicalize_name(requirement.name) == package:
            combined &= requirement.specifier
    return combined


def _pinned(requirements: Iterable[Requirement], package: str) -> Version | None:
    named = (item for item in requirements if canonicalize_name(item.name) == package)
    return next((version for item in named if (version := pin_of(item)) is not None), None)


def _requirement(text: str) -> Requirement:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise LockError(
            f"{text!r} is not a requirement: {error}",
            code="requirement-invalid",
            do="Write it as NAME==VERSION or another specifier (PEP 508).",
        ) from error
    if requirement.url is not None:
        raise LockError(
            f"{text!r} names a URL",
            code="requirement-invalid",
            do="Give a wheel as {url: …, sha256: …} under packages; sources are not built.",
        )
    return requirement
