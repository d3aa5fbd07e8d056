"""Choosing a file for a version, and saying what there is where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.requirements import Requirement
from packaging.version import Version

from stackbuild.errors import LockError
from stackbuild.lock.wheels_target import Target
from stackbuild.resolution.wheels.index_page import IndexFile
from stackbuild.resolution.wheels.request import pin_of
from stackbuild.site_config import PYTORCH_PREFIX
from stackbuild.spec.compiling import compiling_advice
from stackbuild.spec.model import StackSpec

_NEAR = 3


def best_wheel(files: Iterable[IndexFile], version: str, target: Target) -> IndexFile | None:
    """The wheel of a version that suits the target best: by tag, then by build number."""
    wanted = Version(version)
    ranked = [
        (rank, file)
        for file in files
        if file.version == wanted and (rank := target.rank(file.tags)) is not None
    ]
    if not ranked:
        return None
    best = min(rank for rank, _ in ranked)
    return max((file for rank, file in ranked if rank == best), key=lambda file: (file.build, file.name))


def require_published(
    requirement: Requirement,
    files: Sequence[IndexFile] | None,
    index: str,
    target: Target,
    spec: StackSpec,
) -> None:
    """Check that a direct requirement can be had at all, since a resolver's answer to that is hard to read.

    Args:
        requirement: What is asked for.
        files: What its index has of the package.
        index: The index's name.
        target: What a wheel has to suit.
        spec: The stack, for what to do where no version has a wheel that suits.

    Raises:
        LockError: The index has no such package, no such version, or no wheel of it for the target
            (code ``wheel-not-found``); it names the published versions near it.
    """
    name = requirement.name
    if not files and index.startswith(PYTORCH_PREFIX):
        variant = index.removeprefix(PYTORCH_PREFIX)
        raise LockError(
            f"PyTorch's channel {variant} has no {name}",
            code="channel-not-published",
            do=_channels_of(name, pin_of(requirement))
            or f"Take a variant that PyTorch publishes, or map the index {index} in the site file.",
        )
    if not files:
        raise _not_found(
            f"the index {index} has no package {name}", "Correct its name, or bind it to its index."
        )
    allowed = [
        file
        for file in files
        if file.version is not None and requirement.specifier.contains(file.version, prereleases=True)
    ]
    pin = pin_of(requirement)
    if not allowed:
        published = near(pin, (file.version for file in files if file.version is not None))
        raise _not_found(
            f"the index {index} has no {name}{requirement.specifier}",
            " ".join(filter(None, (f"Published near it: {', '.join(published)}.", _channels_of(name, pin)))),
        )
    if any(target.rank(file.tags) is not None for file in allowed):
        return
    suited = near(
        pin or max(file.version for file in allowed if file.version is not None),
        (file.version for file in files if file.version is not None and target.rank(file.tags) is not None),
    )
    raise _not_found(
        f"{name}{requirement.specifier} on the index {index} has no wheel for {target}",
        f"Wheels for it near that version: {', '.join(suited)}."
        if suited
        else f"No version has a wheel for it. {compiling_advice(spec)}",
        detail=_what_there_is(allowed, target),
    )


def near(wanted: Version | None, published: Iterable[Version]) -> list[str]:
    """Up to six published versions around ``wanted``, the newest six without it, in order."""
    ordered = sorted(set(published))
    if wanted is None:
        return [str(version) for version in ordered[-2 * _NEAR :]]
    below = [version for version in ordered if version <= wanted][-_NEAR:]
    above = [version for version in ordered if version > wanted][:_NEAR]
    return [str(version) for version in (*below, *above)]


def _what_there_is(files: Iterable[IndexFile], target: Target) -> str:
    """Why none of these files suits: another Python, a newer glibc, another machine, or sources alone."""
    wheels = [file for file in files if file.is_wheel]
    if not wheels:
        return "it has only sources; those are not built"
    here = {
        tag
        for file in wheels
        for tag in file.tags
        if tag.platform == "any" or ("linux" in tag.platform and tag.platform.endswith(target.machine))
    }
    if not here:
        return f"it has no wheels for Linux on {target.machine}"
    own = {tag.platform for tag in here if tag.interpreter == target.interpreter}
    if own:
        return f"its wheels for {target.interpreter} need {', '.join(sorted(own))}"
    interpreters = sorted({tag.interpreter for tag in here}, key=lambda name: (len(name), name))
    return f"its wheels for Linux on {target.machine} are for {', '.join(interpreters)}"


def _channels_of(name: str, version: Version | None) -> str:
    """Which channels have a torch release, as far as the facts know; else empty."""
    if name != "torch" or version is None:
        return ""
    # Only a failure pays for reading the fact tables.
    from stackbuild.facts.tables import Facts

    release = Facts().torch_release(version.public)
    if release is None or not release.channels:
        return ""
    return f"The channels of torch {version.public}: {', '.join(release.channels)}."


def _not_found(what: str, do: str, detail: str = "") -> LockError:
    return LockError(what, code="wheel-not-found", detail=detail, do=do)
