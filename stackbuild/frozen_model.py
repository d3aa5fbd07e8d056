"""The base of every model that is written to or read from a file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


def _spelled(name: str) -> str:
    """The file's spelling of a field: hyphens, and no underscore that only dodges a Python word."""
    return name.rstrip("_").replace("_", "-")


class FrozenModel(BaseModel):
    """Frozen, unknown keys refused, hyphens in the file and either spelling in Python."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=_spelled, defer_build=True
    )
