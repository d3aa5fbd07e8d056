"""Which index each package comes from, and from no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name
from packaging.version import Version

from stackbuild.resolution.wheels.index_sources import URL_INDEX
from stackbuild.site_config import DEFAULT_INDEX, PYTORCH_PREFIX
from stackbuild.spec.model import FrameworkSpec, StackSpec, WheelUrl

# What PyTorch builds once per CUDA variant and puts on its channels, and what torch needs from there.
# Everything else a channel lists is a copy, at times an old or a damaged one.
TORCH_FAMILY = ("torch", "torchvision", "torchaudio", "triton", "pytorch-triton")
# Those of them whose version carries the variant as its local label (2.13.0+cu130).
_LABELLED = ("torch", "torchvision", "torchaudio")


@dataclass(frozen=True)
class Bindings:
    """Package to index, and package to the variant its builds must be of; names are normalised."""

    packages: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)

    def index_of(self, package: str) -> str:
        """The name of the one index that a package comes from."""
        return self.packages.get(package, DEFAULT_INDEX)

    def admits(self, package: str, version: Version | None) -> bool:
        """False for a build of another variant.

        A channel's root lists all variants of a version, and by PEP 440 the label that sorts last would win
        (cpu < cu126 < cu130 < rocm < xpu): chance, not choice. A version without a label is admitted.
        """
        variant = self.variants.get(package)
        return variant is None or version is None or version.local in (None, variant.replace("-", "."))


def bind(spec: StackSpec, variant_of: Callable[[str, FrameworkSpec], str]) -> Bindings:
    """Derive the bindings from a spec.

    A framework of torch's family with a variant comes from that variant's channel, and the family with it;
    a framework with ``index`` comes from that index; then the packages of the spec's own indexes; then
    wheels by URL. The later goes before the earlier.

    Args:
        spec: The spec.
        variant_of: Resolves a framework's variant, ``auto`` included; called with its name.
    """
    packages: dict[str, str] = {}
    variants: dict[str, str] = {}
    own: dict[str, str] = {}
    for name, framework in spec.frameworks.items():
        package = canonicalize_name(name)
        if framework.index is not None:
            own[package] = framework.index
        elif framework.variant is not None and package.startswith(("torch", "pytorch-triton", "triton")):
            variant = variant_of(package, framework)
            channel = f"{PYTORCH_PREFIX}{variant}"
            own[package] = channel
            if package in _LABELLED:
                variants[package] = variant
            if package == "torch":
                packages |= dict.fromkeys(TORCH_FAMILY, channel)
                variants = dict.fromkeys(_LABELLED, variant) | variants
    packages |= own
    for index, declared in spec.indexes.items():
        packages |= {canonicalize_name(package): index for package in declared.packages}
    for item in spec.packages:
        if isinstance(item, WheelUrl):
            packages[wheel_name_of(item.url)] = URL_INDEX
    variants = {
        name: variant
        for name, variant in variants.items()
        if packages.get(name, "").startswith(PYTORCH_PREFIX)
    }
    return Bindings(packages, variants)


def wheel_name_of(url: str) -> str:
    """The normalised distribution name in a wheel's URL."""
    return canonicalize_name(url.rpartition("/")[2].partition("-")[0])
