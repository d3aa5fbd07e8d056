"""What a stack holds, in one form whether it comes from a spec, a lock, a pin list or a scan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackbuild.compat.cuda_tag import CudaTag, parse_cuda_tag
from stackbuild.compat.subject import CompatLibrary
from stackbuild.compat.versions import CudaVersion, parse_cuda
from stackbuild.distribution_name import normalized_name
from stackbuild.facts.tables import Facts
from stackbuild.image_environment import environment_of
from stackbuild.spec.gpu_image import expects_gpu, is_cuda_image
from stackbuild.spec.model import ImageBaseSpec, StackSpec, WheelUrl
from stackbuild.spec.platforms import MACHINES

if TYPE_CHECKING:
    # Building the lock's models takes a third of a check's start, and most checks have no lock to read.
    from stackbuild.lock.model import PlatformLock

_EXACT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*==\s*([^\s;,*]+)\s*(?:;.*)?$")


@dataclass(frozen=True)
class Distribution:
    """One Python distribution: normalised name, version with local label, and its wheel file where known."""

    name: str
    version: str
    file: str = ""
    index: str = ""


@dataclass(frozen=True)
class Contents:
    """What gates about wheels, base and platform judge.

    Attributes:
        name: The stack or image.
        platform: For example ``linux/amd64``.
        base_image: Repository of the base; empty for a bootstrap base or an unknown one.
        base_tag: Its tag; empty when unknown.
        os: Distribution id and version as in the facts, for example ``ubuntu24.04``; empty when unknown.
        glibc: For example ``2.39``; empty when unknown.
        python: Major and minor, for example ``3.12``; empty for none or unknown.
        base_cuda: The CUDA release that the base carries.
        environment: The image's environment, as far as it is known.
        distributions: The Python distributions, by normalised name; two of one name in two environments are two.
        ranges: What a spec names without an exact version, as (normalised name, specifier); empty once locked.
        locked: True when the distributions are all there are, False when they are only what a spec names.
        compat: A cuda-compat library of the base.
        expects_gpu: True when the spec's variants, base or target say that this is a GPU image.
    """

    name: str
    platform: str = "linux/amd64"
    base_image: str = ""
    base_tag: str = ""
    os: str = ""
    glibc: str = ""
    python: str = ""
    base_cuda: CudaVersion | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    distributions: tuple[Distribution, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
    locked: bool = False
    compat: CompatLibrary | None = None
    expects_gpu: bool = False

    def distribution(self, name: str) -> Distribution | None:
        """The distribution of that normalised name, or None."""
        return next((item for item in self.distributions if item.name == name), None)

    @property
    def tag(self) -> CudaTag | None:
        """The parts of the base's tag when the base is an nvidia/cuda image."""
        return parse_cuda_tag(self.base_tag) if is_cuda_image(self.base_image) else None

    @property
    def has_compiler(self) -> bool:
        """Whether the base has nvcc: a -devel flavour, known by its tag or the variable that its image sets."""
        if self.tag is not None:
            return self.tag.flavour == "devel"
        return "NV_CUDA_CUDART_DEV_VERSION" in self.environment

    @property
    def machine(self) -> str:
        """The wheel machine of the platform: ``x86_64`` or ``aarch64``."""
        return MACHINES[self.platform]


def _torch_version(version: str, variant: str | None, index: str | None) -> str:
    if "+" in version or variant in (None, "auto") or index == "default":
        return version
    return f"{version}+{variant}"


def contents_of_spec(spec: StackSpec, facts: Facts, platform: str = "linux/amd64") -> Contents:
    """What a spec alone promises; only exact pins count as distributions."""
    found: dict[str, Distribution] = {}
    ranges: dict[str, str] = {}
    for requirement in spec.packages:
        match = _EXACT.match(requirement) if isinstance(requirement, str) else None
        if match:
            name = normalized_name(match[1])
            found[name] = Distribution(name, match[2])
        elif isinstance(requirement, str):
            from packaging.requirements import Requirement  # only a spec with ranges pays for it

            parsed = Requirement(requirement)
            ranges[normalized_name(parsed.name)] = str(parsed.specifier)
        elif isinstance(requirement, WheelUrl):
            from packaging.utils import parse_wheel_filename

            file = requirement.url.rsplit("/", 1)[-1]
            wheel_name, wheel_version, _, _ = parse_wheel_filename(file)
            found[wheel_name] = Distribution(wheel_name, str(wheel_version), file, "url")
    for framework_name, framework in spec.frameworks.items():
        key = normalized_name(framework_name)
        version = framework.version or (found[key].version if key in found else None)
        if version is not None:
            full = _torch_version(version, framework.variant, framework.index) if key == "torch" else version
            found[key] = Distribution(key, full, index=framework.index or "")
        else:
            ranges.setdefault(key, "")
    image = spec.base.image if isinstance(spec.base, ImageBaseSpec) else ""
    tag = spec.base.tag if isinstance(spec.base, ImageBaseSpec) else ""
    cuda_tag = parse_cuda_tag(tag) if is_cuda_image(image) else None
    os_id = cuda_tag.os if cuda_tag else ""
    if spec.base is not None and not isinstance(spec.base, ImageBaseSpec):
        os_id = {"bookworm": "debian12", "trixie": "debian13", "bullseye": "debian11"}.get(
            spec.base.suite, ""
        )
    row = facts.distribution(os_id)
    environment = dict(spec.image.env)
    if cuda_tag is not None:
        environment.setdefault("CUDA_VERSION", cuda_tag.release)
        environment.setdefault("NVIDIA_REQUIRE_CUDA", known_requirement(cuda_tag.cuda, facts))
    return Contents(
        name=spec.name,
        platform=platform,
        base_image=image,
        base_tag=tag,
        os=os_id,
        glibc=row.glibc if row else "",
        python="" if spec.python == "none" else spec.python,
        base_cuda=cuda_tag.cuda if cuda_tag else None,
        environment=environment,
        distributions=tuple(found[name] for name in sorted(found)),
        ranges=tuple(sorted((name, specifier) for name, specifier in ranges.items() if name not in found)),
        compat=_base_compat(cuda_tag.cuda if cuda_tag else None, platform),
        expects_gpu=expects_gpu(spec),
    )


def known_requirement(cuda: CudaVersion, facts: Facts) -> str:
    """NVIDIA_REQUIRE_CUDA of that CUDA release's images where the facts have it whole, else its first term."""
    rows = facts.table("cuda_image_requirements").rows
    return next((row.value for row in rows if row.value and parse_cuda(row.cuda) == cuda), f"cuda>={cuda}")


def _base_compat(cuda: CudaVersion | None, platform: str) -> CompatLibrary | None:
    """nvidia/cuda images for amd64 carry cuda-compat of their own release, outside the loader's path."""
    return CompatLibrary(driver=None, cuda=cuda) if cuda is not None and platform == "linux/amd64" else None


def contents_of_lock(
    spec: StackSpec, lock: PlatformLock, facts: Facts, platform: str = "linux/amd64"
) -> Contents:
    """What a lock promises: every distribution, and the base's own configuration."""
    promised = contents_of_spec(spec, facts, platform)
    environment = dict(promised.environment)
    base_cuda = promised.base_cuda
    if lock.base.kind == "image":
        environment = {**environment_of(lock.base.config), **spec.image.env}
        if "CUDA_VERSION" in environment:
            base_cuda = parse_cuda(environment["CUDA_VERSION"])
    has_compat = "NV_CUDA_COMPAT_PACKAGE" in environment
    return Contents(
        name=spec.name,
        platform=platform,
        base_image=promised.base_image,
        base_tag=promised.base_tag,
        os=f"{lock.os.id}{lock.os.version_id}",
        glibc=lock.os.glibc,
        python=".".join(lock.python.version.split(".")[:2]) if lock.python else "",
        base_cuda=base_cuda,
        environment=environment,
        distributions=tuple(
            Distribution(wheel.name, wheel.version, wheel.file, wheel.index) for wheel in lock.wheels
        ),
        locked=True,
        compat=_base_compat(base_cuda, platform) if has_compat else None,
        expects_gpu=promised.expects_gpu,
    )


def contents_of_image(
    name: str,
    config: Mapping[str, object],
    distributions: Iterable[tuple[str, str]] = (),
    *,
    platform: str = "linux/amd64",
) -> Contents:
    """What an image's configuration tells, with the distributions of its pin list or a scan where there are any."""
    environment = environment_of(config)
    cuda = (
        parse_cuda(environment["CUDA_VERSION"]) if environment.get("CUDA_VERSION", "")[:1].isdigit() else None
    )
    listed = tuple(Distribution(normalized_name(item), version) for item, version in sorted(distributions))
    return Contents(
        name=name,
        platform=platform,
        base_cuda=cuda,
        environment=environment,
        distributions=listed,
        locked=bool(listed),
        compat=_base_compat(cuda, platform) if "NV_CUDA_COMPAT_PACKAGE" in environment else None,
        expects_gpu=cuda is not None or any(item.name.startswith("nvidia-") for item in listed),
    )


def contents_of_cuda_tag(
    name: str, image: str, tag: str, facts: Facts, platform: str = "linux/amd64"
) -> Contents:
    """What an nvidia/cuda image holds by its tag and the facts alone, for when nobody can be asked for it."""
    parsed = parse_cuda_tag(tag)
    cuda = parsed.cuda if parsed else None
    return Contents(
        name=name,
        platform=platform,
        base_image=image,
        base_tag=tag,
        os=parsed.os if parsed else "",
        base_cuda=cuda,
        environment={
            "CUDA_VERSION": parsed.release,
            "NVIDIA_REQUIRE_CUDA": known_requirement(parsed.cuda, facts),
        }
        if parsed
        else {},
        compat=_base_compat(cuda, platform),
        expects_gpu=True,
    )
