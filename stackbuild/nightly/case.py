"""One stack in one night: what every stage works with."""

from __future__ import annotations

from dataclasses import dataclass

from stackbuild.nightly.ground import Ground, NightOptions
from stackbuild.nightly.history.history import History
from stackbuild.nightly.notes import Notes
from stackbuild.spec.load import LoadedSpec


@dataclass(frozen=True)
class Case:
    """A stack under judgement.

    Attributes:
        stack: The spec.
        ground: What the night works with.
        options: How it is run.
        history: Earlier nights.
        notes: Where everything is noted.
    """

    stack: LoadedSpec
    ground: Ground
    options: NightOptions
    history: History
    notes: Notes
