"""What the history tells, as frozen models that are cheap to make: a year of 200 stacks is 73,000 points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stackbuild.findings import Verdict
from stackbuild.nightly.model import Outcome


@dataclass(frozen=True, slots=True)
class NightSummary:
    """One night as a whole.

    Attributes:
        number: Grows with every night added; what orders them, since clocks go back.
        id: As ``Night.id``.
        started: RFC 3339, UTC.
        seconds: Wall time.
        host: Name of the machine.
        version: Of stackbuild.
        interrupted: A person stopped it.
        outcomes: How many stacks had which outcome.
    """

    number: int
    id: str
    started: str
    seconds: float
    host: str
    version: str
    interrupted: bool
    outcomes: Mapping[Outcome, int]


@dataclass(frozen=True, slots=True)
class Series:
    """What has a state of its own through the nights: a stack on a platform.

    Attributes:
        stack: Its name.
        platform: For example linux/amd64; empty when no night knew it.
        only: No other platform of the stack is in the history.
    """

    stack: str
    platform: str
    only: bool


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One stack in one night, without its texts.

    Attributes:
        number: The night's, as ``NightSummary.number``.
        night: The night's id.
        started: The night's start, RFC 3339, UTC.
        outcome: What the night can say of it.
        complete: No gate that applies was SKIP or ERROR.
        config_digest: Of the image; empty when there is none.
        lock_sha256: Of the lock's bytes.
        size: Bytes of all layers; 0 when not built.
        seconds: By stage.
        verdicts: The gravest verdict of each gate.
        drifted: The image is not the one that it should equal, and a ``Drift`` says why.
        changed: A new lock changed it, and a ``Drift`` says what.
    """

    number: int
    night: str
    started: str
    outcome: Outcome
    complete: bool
    config_digest: str
    lock_sha256: str
    size: int
    seconds: Mapping[str, float]
    verdicts: Mapping[str, Verdict]
    drifted: bool
    changed: bool
