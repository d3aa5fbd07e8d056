"""What is to be published, and on which conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Source:
    """One platform's image to publish: one the engine has, or one that is in the repository already.

    Attributes:
        image: Its name in the engine; empty for one that is in the repository.
        digest: Of its manifest in the repository; empty for one in the engine.
        published: True for one that was published before: its tags move, and nothing is judged again.
        inputs: Hash of what decided it, where that is known.
        sbom: Writes its SBOM, given its configuration's digest; None where nobody here can.
    """

    image: str = ""
    digest: str = ""
    published: bool = False
    inputs: str | None = None
    sbom: Callable[[str], bytes] | None = None


@dataclass(frozen=True)
class PublishRequest:
    """What to publish, and on which conditions.

    Attributes:
        sources: One for each platform.
        repository: Where it goes, without tag.
        tags: The real tags, the most used last; empty for the image's version and ``latest``.
        platforms: What must be there; empty for what the tag names now, and at least what the sources have.
        require: Compute capabilities (sm_80) or ``cpu`` whose attached reports judge; empty to judge here.
        max_age: How old those may be.
        strict: A WARN fails.
        stage_only: Push and attach the SBOM, for other jobs to judge; nothing is tagged.
        sign_key: Key to sign with.
    """

    sources: tuple[Source, ...]
    repository: str
    tags: tuple[str, ...]
    platforms: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    max_age: timedelta = timedelta(hours=24)
    strict: bool = False
    stage_only: bool = False
    sign_key: str | None = None
