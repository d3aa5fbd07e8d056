"""Gate pages: title, meaning, evidence and next step for every gate code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, Field


class GatePage(BaseModel):
    """What a person should know of one code."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(description="a few words")
    meaning: str = Field(description="what a FAIL, WARN or ERROR of it says, and why it matters")
    evidence: str = Field(description="what is measured, and against what")
    next_step: str = Field(description="what to do about it")


@cache
def gate_pages(area: str | None = None) -> Mapping[str, GatePage]:
    """All pages by code, in the order of the tables; a code is described in one table only.

    Args:
        area: Only the pages of one table (``runtime``, ``static``, …); None for all.
    """
    pages: dict[str, GatePage] = {}
    tables = sorted(
        (entry for entry in files(__package__).iterdir() if entry.name.endswith(".json")),
        key=lambda entry: entry.name,
    )
    for table in tables:
        if area is not None and table.name != f"{area}.json":
            continue
        for code, page in json.loads(table.read_text(encoding="utf-8")).items():
            pages.setdefault(code, GatePage.model_validate(page))
    return MappingProxyType(pages)
