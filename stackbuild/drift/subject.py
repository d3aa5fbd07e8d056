"""One side of a comparison, in one form whether it is an image, a lock or an SBOM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stackbuild.drift.model import Level, Side
from stackbuild.drift.packages import PackageSet
from stackbuild.scan.scan import Scan
from stackbuild.scan.sources.interface import ImageSource


@dataclass(frozen=True)
class ImageSubject:
    """What an image has beside pins and packages.

    Attributes:
        scan: What was found in it.
        source: Where its layers' content can be read.
    """

    scan: Scan
    source: ImageSource


@dataclass(frozen=True)
class Subject:
    """One side.

    Attributes:
        side: What it is, for the report.
        pins: Name → value; empty for what it has not, missing where it does not know.
        packages: Its packages.
        image: Of an image, its files; None for a lock or an SBOM, or where only pins were asked for.
        inputs: Hash of all locked inputs that decided an image, as its pin list records it; empty where unknown.
        unknown: What it cannot say, as sentences.
    """

    side: Side
    pins: Mapping[str, str]
    packages: PackageSet = field(default_factory=PackageSet)
    image: ImageSubject | None = None
    inputs: str = ""
    unknown: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels it can be compared at."""
        return ("pins", "packages", "files") if self.image is not None else ("pins", "packages")
