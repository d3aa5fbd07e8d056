"""Gate pages: title, meaning, evidence and next step for every gate code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, Field

# Runtime gates that are judged before the build as well, from the lock.
_ALSO_STATIC = frozenset({"cpu-wheel-in-gpu-image", "mixed-cuda-majors", "ort-cpu-and-gpu-both"})


class GatePage(BaseModel):
    """What a person should know of one code."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(description="a few words")
    meaning: str = Field(description="what a FAIL, WARN or ERROR of it says, and why it matters")
    evidence: str = Field(description="what is measured, and against what")
    next_step: str = Field(description="what to do about it")


def gate_areas() -> tuple[str, ...]:
    """The areas that have a table: ``runtime``, ``static``, … in name order."""
    names = (entry.name for entry in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


@cache
def gate_pages(area: str | None = None) -> Mapping[str, GatePage]:
    """All pages by code, in the order of the tables; a code is described in one table only.

    Args:
        area: Only the pages of one table (``runtime``, ``static``, …); None for all.
    """
    pages: dict[str, GatePage] = {}
    for name in gate_areas() if area is None else (area,):
        table = json.loads(files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
        for code, page in table.items():
            pages.setdefault(code, GatePage.model_validate(page))
    return MappingProxyType(pages)


def judged_in_containers_only(code: str) -> bool:
    """True for a runtime gate that nothing but a verification can judge, so that only there its waiver is used."""
    return code in gate_pages("runtime") and code not in _ALSO_STATIC
