"""Gates over the Python distributions of a stack: variants, CUDA majors, tags, and who provides what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import Version

from stackbuild.compat.contents import Contents, Distribution
from stackbuild.compat.versions import CudaVersion, parse_variant
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict

if TYPE_CHECKING:
    from packaging.tags import Tag

# nvidia-* names without a -cuNN suffix exist since CUDA 13 only (facts: torch_releases, index rules).
_UNSUFFIXED = re.compile(
    r"nvidia-(cublas|cuda-runtime|cuda-nvrtc|cuda-cupti|cufft|curand|cusolver|cusparse|nvjitlink|nvtx|cufile)"
)
_SUFFIXED = re.compile(r"nvidia-[a-z0-9-]+-cu(\d{2})")


def cuda_major_of(distribution: Distribution) -> int | None:
    """The CUDA major that an nvidia-* distribution belongs to, or None when it is not one."""
    match = _SUFFIXED.fullmatch(distribution.name)
    if match:
        return int(match[1])
    return 13 if _UNSUFFIXED.fullmatch(distribution.name) else None


def judge_variant(contents: Contents, facts: Facts) -> Iterator[Finding]:
    """Gates ``unpinned-torch``, ``channel-not-published``, ``wheel-not-for-python``, ``cpu-wheel-in-gpu-image``."""
    yield from _judge_pin(contents)
    torch = contents.distribution("torch")
    if torch is None:
        return
    public = torch.version.partition("+")[0]
    release = facts.torch_release(public)
    variant = facts.torch_variant_of(torch.version, contents.machine)
    subject = f"torch {torch.version}"
    if contents.expects_gpu and variant == "cpu":
        where = "the default index's aarch64 build" if "+" not in torch.version else "the +cpu build"
        yield Finding(
            code="cpu-wheel-in-gpu-image",
            verdict=Verdict.FAIL,
            subject=subject,
            measured=f"{where}, torch.version.cuda is None",
            required="a build with CUDA",
            summary=f"This is a GPU stack, but {subject} is {where}, which has no CUDA in it.",
            next_step="Name a CUDA variant, for example frameworks.torch.variant: "
            f"{_newest_channel(release.channels) if release else 'cu130'}.",
        )
    if release is None:
        yield Finding(
            code="channel-not-published",
            verdict=Verdict.WARN,
            subject=subject,
            measured="unknown",
            summary=f"torch {public} is not in the facts, so neither its channels nor its GPU architectures are known.",
            next_step="'stackbuild facts torch_releases' lists the releases that are known.",
            details={"note": "unknown"},
        )
        return
    if "+" in torch.version and variant is not None and variant not in release.channels:
        unsure = " (their list is uncertain)" if release.channels_confidence == "uncertain" else ""
        yield Finding(
            code="channel-not-published",
            verdict=Verdict.WARN if unsure else Verdict.FAIL,
            subject=subject,
            measured=variant,
            required=f"one of {', '.join(release.channels)}",
            summary=f"torch {public} is not published for {variant}; its channels are "
            f"{', '.join(release.channels)}{unsure}.",
            next_step=f"Take one of them, or a torch release that has {variant}.",
            details={"channels": list(release.channels)},
        )
    if contents.python:
        tag = f"cp{contents.python.replace('.', '')}"
        if tag not in release.python_tags:
            yield Finding(
                code="wheel-not-for-python",
                verdict=Verdict.FAIL,
                subject=subject,
                measured=f"Python {contents.python}",
                required=", ".join(release.python_tags),
                summary=f"torch {public} has no wheel for Python {contents.python}; it has {', '.join(release.python_tags)}.",
                next_step="Take a base whose distribution has one of those Pythons, or another torch release.",
            )
    if contents.glibc and _below(contents.glibc, release.glibc):
        yield Finding(
            code="glibc-too-old",
            verdict=Verdict.FAIL,
            subject=subject,
            measured=f"glibc {contents.glibc}",
            required=f"glibc {release.glibc}",
            summary=f"torch {public} needs glibc {release.glibc}, the base has {contents.glibc}.",
            next_step="Take a base with a newer distribution.",
        )


def _judge_pin(contents: Contents) -> Iterator[Finding]:
    specifier = dict(contents.ranges).get("torch")
    if specifier is None or contents.locked:
        return
    yield Finding(
        code="unpinned-torch",
        verdict=Verdict.FAIL,
        subject="torch",
        measured=f"torch{specifier}",
        required="an exact version and a variant",
        summary=f"torch{specifier} takes whatever is newest at the time, and with it another CUDA and driver floor.",
        next_step='Name it: frameworks: {torch: {version: "2.14.1", variant: cu130}}.',
    )


def _newest_channel(channels: tuple[str, ...]) -> str:
    with_cuda = [(cuda, channel) for channel in channels if (cuda := parse_variant(channel)) is not None]
    return max(with_cuda)[1] if with_cuda else "cu130"


def judge_cuda_majors(contents: Contents, facts: Facts) -> Iterator[Finding]:
    """Gate ``mixed-cuda-majors``: nvidia-* wheels of two CUDA majors side by side."""
    majors: dict[int, list[str]] = {}
    for item in contents.distributions:
        major = cuda_major_of(item)
        if major is not None:
            majors.setdefault(major, []).append(item.name)
    if len(majors) < 2:
        return
    torch = contents.distribution("torch")
    variant = facts.torch_variant_of(torch.version, contents.machine) if torch else None
    cuda = parse_variant(variant) if variant else None
    wanted = (
        cuda.major
        if cuda is not None and cuda.major in majors
        else max(majors, key=lambda key: len(majors[key]))
    )
    strays = sorted(name for major, names in majors.items() if major != wanted for name in names)
    yield Finding(
        code="mixed-cuda-majors",
        verdict=Verdict.FAIL,
        subject=", ".join(strays),
        measured=" and ".join(f"CUDA {major}" for major in sorted(majors)),
        required=f"CUDA {wanted} only",
        summary=f"CUDA libraries of two majors are installed; {', '.join(strays)} do not belong to CUDA {wanted}. "
        "pip check does not see this.",
        next_step="Lock torch and everything else in one resolution, so that nothing is left from another variant.",
        details={"strays": strays},
    )


def judge_base_and_wheel(contents: Contents, facts: Facts, label: str = "") -> Iterator[Finding]:
    """Gates ``label-cuda-mismatch`` and ``base-wheel-cuda-differ``.

    Args:
        contents: The stack.
        facts: The fact tables.
        label: A CUDA release that the image's name, tag or labels promise, for example ``11.8``.
    """
    promised = parse_variant(f"cu{label.replace('.', '')}") if label else None
    torch = contents.distribution("torch")
    if torch is None:
        yield from _judge_label_of_range(contents, facts, promised)
        return
    variant = facts.torch_variant_of(torch.version, contents.machine)
    wheel = parse_variant(variant) if variant else None
    if wheel is None:
        return
    if promised is not None and promised != wheel:
        yield Finding(
            code="label-cuda-mismatch",
            verdict=Verdict.FAIL,
            subject=contents.name,
            measured=f"CUDA {wheel} (torch {torch.version})",
            required=f"CUDA {promised} (promised by its name or label)",
            summary=f"The image promises CUDA {promised}, but the torch wheel brings CUDA {wheel}, which decides the driver.",
            next_step="Name the variant in the spec and let the labels come from the pin list.",
        )
    base = contents.base_cuda
    if base is not None and base.major != wheel.major:
        yield Finding(
            code="base-wheel-cuda-differ",
            verdict=Verdict.WARN,
            subject=contents.name,
            measured=f"base CUDA {base}, torch CUDA {wheel}",
            required="one CUDA major",
            summary=f"The base carries CUDA {base} and the torch wheel its own CUDA {wheel}: the base's is dead weight, "
            "and its NVIDIA_REQUIRE_CUDA still decides which hosts start the image.",
            next_step=f"Take a -base image of CUDA {wheel.major}.",
        )


def _judge_label_of_range(
    contents: Contents, facts: Facts, promised: CudaVersion | None
) -> Iterator[Finding]:
    """Can any torch that the spec's range admits from the default index keep the label's promise?"""
    specifier = dict(contents.ranges).get("torch")
    if specifier is None or promised is None:
        return
    from packaging.specifiers import SpecifierSet  # only a spec with a range of torch pays for it

    admitted = SpecifierSet(specifier)
    variants = {
        variant
        for row in facts.table("torch_releases").rows
        if row.version in admitted and (variant := row.default_variant.get(contents.machine)) is not None
    }
    if variants and promised not in {parse_variant(variant) for variant in variants}:
        yield Finding(
            code="label-cuda-mismatch",
            verdict=Verdict.FAIL,
            subject=contents.name,
            measured=f"torch{specifier} from the default index: {', '.join(sorted(variants))}",
            required=f"CUDA {promised} (promised by its name or label)",
            summary=f"The image promises CUDA {promised}, but no torch{specifier} of the default index brings it; "
            "the wheel's CUDA decides the driver.",
            next_step="Name torch's version and variant in the spec and let the labels come from the pin list.",
        )


def judge_tags(contents: Contents, facts: Facts) -> Iterator[Finding]:
    """Gates ``wheel-not-for-python``, ``glibc-too-old`` and ``no-wheel-for-platform`` over locked wheel files."""
    policies = {row.tag: row.glibc for row in facts.table("manylinux").rows}
    policies |= {alias: row.glibc for row in facts.table("manylinux").rows for alias in row.aliases}
    for item in contents.distributions:
        if not item.file.endswith(".whl"):
            continue
        from packaging.utils import parse_wheel_filename  # only what is locked pays for it

        _, _, _, tags = parse_wheel_filename(item.file)
        subject = item.file
        if not any(_machine_fits(tag, contents.machine) for tag in tags):
            yield Finding(
                code="no-wheel-for-platform",
                verdict=Verdict.FAIL,
                subject=subject,
                measured=", ".join(sorted({tag.platform for tag in tags})),
                required=contents.platform,
                summary=f"{subject} is not for {contents.platform}.",
                next_step="Lock again: the lock must have been edited or made for another platform.",
            )
            continue
        if contents.python and not any(_python_fits(tag, contents.python) for tag in tags):
            yield Finding(
                code="wheel-not-for-python",
                verdict=Verdict.FAIL,
                subject=subject,
                measured=", ".join(sorted({f"{tag.interpreter}-{tag.abi}" for tag in tags})),
                required=f"Python {contents.python}",
                summary=f"{subject} is not for Python {contents.python}.",
                next_step="Lock again for the base's Python.",
            )
        needed = [glibc for tag in tags if (glibc := _glibc(tag, policies)) is not None]
        if contents.glibc and needed and all(_below(contents.glibc, glibc) for glibc in needed):
            lowest = min(needed, key=Version)
            yield Finding(
                code="glibc-too-old",
                verdict=Verdict.FAIL,
                subject=subject,
                measured=f"glibc {contents.glibc}",
                required=f"glibc {lowest}",
                summary=f"{subject} needs glibc {lowest}, the base has {contents.glibc}.",
                next_step="Take a base with a newer distribution, or an older release of the package.",
            )


def _below(left: str, right: str) -> bool:
    return Version(left) < Version(right)


def _machine_fits(tag: Tag, machine: str) -> bool:
    return tag.platform == "any" or tag.platform.endswith(f"_{machine}")


def _python_fits(tag: Tag, python: str) -> bool:
    minor = int(python.split(".")[1])
    if tag.interpreter.startswith("py"):
        return tag.interpreter in ("py3", "py2.py3") or tag.interpreter == f"py3{minor}"
    if not tag.interpreter.startswith("cp3"):
        return False
    built = int(tag.interpreter[3:])
    return built == minor or (tag.abi == "abi3" and built <= minor)


def _glibc(tag: Tag, policies: dict[str, str]) -> str | None:
    match = re.match(r"manylinux_(\d+)_(\d+)_", tag.platform)
    if match:
        return f"{match[1]}.{match[2]}"
    return next((glibc for name, glibc in policies.items() if tag.platform.startswith(f"{name}_")), None)
