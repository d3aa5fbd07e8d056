"""Drift as frozen models: what differs between two sides, at three levels (DESIGN §2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, computed_field, model_validator

from stackbuild.findings import Finding, is_complete
from stackbuild.frozen_model import FrozenModel

SideKind = Literal["image", "lock", "sbom"]
Level = Literal["pins", "packages", "files"]
ChangeKind = Literal["added", "removed", "changed"]
# ``change``: it differs, and may: the inputs are others, or a person wants it.
DriftVerdict = Literal["same", "change", "drift"]


class Side(FrozenModel):
    """One of the two things compared."""

    name: str = Field(description="as the person named it, or the stack's name and the night")
    kind: SideKind
    platform: str = Field(default="", description="for example linux/amd64; empty where it says none")
    digest: str = Field(
        default="", description="config digest of an image, sha256 of a lock's or an SBOM's bytes"
    )


class PinChange(FrozenModel):
    """One pin that moved."""

    pin: str = Field(description="the pin list's own word, for example cuda, driver_floor, base")
    change: ChangeKind = Field(default="changed", description="a value may be empty and there all the same")
    before: str = Field(default="", description="of one that was added empty")
    after: str = Field(default="", description="of one that was removed empty")
    breaking: bool = Field(default=False, description="users of the image may have to change something")
    why: str = Field(default="", description="why it is breaking, as a sentence")

    @property
    def sides(self) -> tuple[str, str]:
        """Both values in words: ``none`` where there is none."""
        may_be_empty = self.pin.startswith(("env ", "label "))

        def told(value: str, *, gone: bool) -> str:
            return value or ("empty" if may_be_empty and not gone else "none")

        return told(self.before, gone=self.change == "added"), told(self.after, gone=self.change == "removed")


class PackageChange(FrozenModel):
    """One package that came, went or changed."""

    kind: str = Field(description="python, deb, rpm, apk, conda or cuda")
    name: str
    place: str = Field(
        default="", description="of a Python distribution: its environment; empty where unknown"
    )
    change: ChangeKind
    before: str = Field(default="", description="version, with what else told them apart; empty: not there")
    after: str = ""
    what: tuple[str, ...] = Field(default=(), description="version, licence, hash")
    breaking: bool = False
    why: str = ""


# There may be hundreds of thousands of these: one takes 120 bytes, and a pydantic model 1,080.
@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that came, went or changed."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    path: Annotated[str, Field(description="absolute")]
    change: ChangeKind
    what: Annotated[
        tuple[str, ...],
        Field(description="content, mode, owner, kind, link, xattrs; empty for added and removed"),
    ] = ()
    owner: Annotated[str, Field(description="the package whose file it is, for example numpy 2.1.0")] = ""
    kind: Annotated[
        str, Field(description="library, program, python, byte-code, text, link, directory, …")
    ] = ""
    noise: Annotated[
        str, Field(description="the row of the noise table that covers it; empty: it counts")
    ] = ""
    before: Annotated[str, Field(description="size and short sha256, mode, or link target")] = ""
    after: str = ""


class LayerChange(FrozenModel):
    """The first layer, from the bottom, that is not the same on both sides."""

    number: int = Field(description="from 1, the base's layers included")
    maker: str = Field(description="the layer's group or its command, for example other wheels")
    before: str = Field(default="", description="diff ID; empty: no such layer")
    after: str = ""
    inputs: tuple[str, ...] = Field(
        default=(), description="which of its inputs differ, as sentences; empty: all are the same"
    )
    inputs_known: bool = Field(default=True, description="false: nobody can say which of its inputs differ")


class Drift(FrozenModel):
    """What differs between two sides."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    report: Literal["diff"] = "diff"
    before: Side
    after: Side
    levels: tuple[Level, ...] = Field(description="the levels that both sides can be compared at")
    pins: tuple[PinChange, ...] = ()
    packages: tuple[PackageChange, ...] = ()
    files: tuple[FileChange, ...] = ()
    first_layer: LayerChange | None = None
    metadata: tuple[str, ...] = Field(
        default=(), description="what differs without being content: created, mtimes, history, noise rows"
    )
    unknown: tuple[str, ...] = Field(default=(), description="what could not be compared, as sentences")
    undetailed: bool = Field(
        default=False,
        description="they are not the same, for their digests differ, and files could not be compared: drift whose "
        "details are unknown",
    )
    wanted: bool = Field(
        default=False, description="the inputs are others, or a person accepted it: a change, and no drift"
    )
    findings: tuple[Finding, ...] = Field(
        default=(), description="the same as a person reads it; the gates that the exit code comes from"
    )

    @model_validator(mode="before")
    @classmethod
    def _without_what_follows(cls, data: Any) -> Any:
        """A written drift states its verdict, which follows from the rest."""
        return (
            {key: value for key, value in data.items() if key != "verdict"}
            if isinstance(data, dict)
            else data
        )

    @computed_field(description="same: no difference of content; drift and change: exit code 6 of diff")  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> DriftVerdict:
        """What all of it comes to, in a word."""
        return "same" if not self.differs else "change" if self.wanted else "drift"

    @property
    def title(self) -> str:
        """What was compared, in one line."""
        names = self.before.name, self.after.name
        return " → ".join(names) if any(" " in name for name in names) else f"diff {' '.join(names)}"

    @property
    def headline(self) -> tuple[tuple[str, str], ...]:
        """What a reader must know beside the findings."""
        rows = [("levels", ", ".join(self.levels))]
        if self.first_layer is not None:
            layer = self.first_layer
            same = "all inputs are the same" if layer.inputs_known else "which inputs differ is not known"
            place = f"{layer.number}, {layer.maker}" if layer.maker else str(layer.number)
            rows.append(("first layer", f"{place}: {', '.join(layer.inputs) or same}"))
        rows.extend(("metadata", text) for text in self.metadata)
        rows.extend(("unknown", sentence) for sentence in self.unknown[:5])
        return tuple(rows)

    @property
    def differs(self) -> bool:
        """True when content differs: pins, packages or files that the noise table does not cover, or nobody can say."""
        counting = any(not file.noise for file in self.files)
        return bool(self.pins or self.packages or counting or self.undetailed)

    @property
    def breaking(self) -> bool:
        """True when a pin or package changed in a way that users of the image may notice."""
        return any(pin.breaking for pin in self.pins) or any(package.breaking for package in self.packages)

    @property
    def complete(self) -> bool:
        """No gate that applies was SKIP or ERROR."""
        return is_complete(self.findings)
