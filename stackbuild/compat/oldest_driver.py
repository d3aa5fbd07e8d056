"""The oldest driver that serves an image: by its runtimes, by its own demand, and for the GPUs at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from stackbuild.compat.architecture import judge_gpu_against_driver
from stackbuild.compat.driver import accepted, answer
from stackbuild.compat.requirements import requirement_met
from stackbuild.compat.subject import Compatibility, CompatLibrary, GpuOffer, HostOffer, ImageNeeds
from stackbuild.compat.versions import CudaVersion, DriverVersion, parse_cuda, parse_driver
from stackbuild.facts.tables import Facts


@cache
def _candidates(facts: Facts) -> tuple[tuple[DriverVersion, str, CudaVersion], ...]:
    """Drivers that something begins with, oldest first: (version, as a person names it, CUDA maximum).

    They are the drivers that toolkits came with and the floors of minor-version compatibility; a branch
    that has neither stands for itself.
    """
    named = {row.driver for row in facts.table("toolkits").rows if row.driver is not None}
    named |= {row.min_driver for row in facts.table("minor_version_floors").rows}
    texts = {parse_driver(text): text for text in named}
    known = {version[0] for version in texts}
    texts |= {(branch,): f"R{branch}" for branch in facts.known_branches() if branch not in known}
    found = []
    for version, text in sorted(texts.items()):
        row = facts.driver_branch(version[0])
        if row is not None and row.max_cuda is not None:
            found.append((version, text, parse_cuda(row.max_cuda)))
    return tuple(found)


def oldest_driver(
    image: ImageNeeds, accepts: Compatibility, facts: Facts, gpus: Sequence[GpuOffer] = ()
) -> str | None:
    """The oldest driver with which nothing about drivers speaks against an image.

    Args:
        image: What the image needs.
        accepts: The loosest compatibility that will do; ``minor`` and ``forward`` serve older drivers.
        facts: The fact tables.
        gpus: The GPUs of the host. Without them, demands that depend on a brand do not help.

    Returns:
        A version, or a branch such as ``R615``; None when the image has no CUDA component or no driver does.
    """
    runtimes = {component.cuda for component in image.components if component.cuda is not None}
    demands = () if image.requirements_disabled else tuple(value for _, value in image.requirements)
    if not runtimes:
        return None
    for version, text, maximum in _candidates(facts):
        host = HostOffer(
            name="", driver=version, driver_text=text.removeprefix("R"), max_cuda=maximum, gpus=tuple(gpus)
        )
        if (
            all(_serves(cuda, image.compat, accepts, host, facts) for cuda in runtimes)
            and all(requirement_met(value, host) for value in demands)
            and all(judge_gpu_against_driver(gpu, host, facts) is None for gpu in host.gpus)
        ):
            return text
    return None


def _serves(
    cuda: CudaVersion, compat: CompatLibrary | None, accepts: Compatibility, host: HostOffer, facts: Facts
) -> bool:
    found = answer(cuda, host, compat, facts)
    return found is not None and accepted(found.how, accepts)
