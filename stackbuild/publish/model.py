"""The report of a publication."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stackbuild.findings import Finding
from stackbuild.frozen_model import FrozenModel


class AttachedDocument(FrozenModel):
    """A document attached to an image."""

    type: str
    digest: str


class PublishedPlatform(FrozenModel):
    """One platform of what was published."""

    platform: str
    digest: str = Field(description="of the manifest")
    config_digest: str
    attached: tuple[AttachedDocument, ...] = ()


class PublishReport(FrozenModel):
    """What ``stackbuild publish`` answers."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["publish"] = "publish"
    repository: str
    digest: str = Field(description="what the tags name: the manifest, or the index of several platforms")
    platforms: tuple[PublishedPlatform, ...]
    outcome: Literal["published", "staged", "refused"]
    tags: tuple[str, ...] = Field(default=(), description="the tags that name the digest now")
    staged: str = Field(default="", description="staging tag that other jobs find it under")
    signed: bool = False
    findings: tuple[Finding, ...]
    complete: bool

    @property
    def title(self) -> str:
        """What was done, in one line."""
        return f"{self.outcome} {self.repository}@{self.digest}"

    @property
    def headline(self) -> tuple[tuple[str, str], ...]:
        """What a reader must know beside the findings."""
        lines = [("tags", ", ".join(self.tags) or "none moved")]
        if self.staged:
            lines.append(("staged", f"{self.repository}:{self.staged}"))
        for part in self.platforms:
            lines.append((part.platform, part.digest))
        if self.signed:
            lines.append(("signed", "with cosign"))
        return tuple(lines)
