"""The table of known noise: differences between two builds that say nothing of the image."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from pydantic import Field, TypeAdapter

from stackbuild.frozen_model import FrozenModel


class NoiseRow(FrozenModel):
    """One row of the table.

    A row covers a change when the whole path matches and nothing else of the file differs than what it names.
    """

    code: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    path: str = Field(description="regular expression for the whole path, without leading slash")
    same: str = Field(
        default="", description="the normal form in which both contents must be equal; empty: any content"
    )
    only: tuple[str, ...] = Field(
        default=(), description="what may differ; empty: everything, and the file may come and go"
    )
    why: str


@cache
def noise_table() -> tuple[NoiseRow, ...]:
    """All rows; the first that covers a change is the one that is named."""
    text = files(__package__).joinpath("noise.json").read_text(encoding="utf-8")
    return TypeAdapter(tuple[NoiseRow, ...]).validate_json(text)


def noise_of(path: str, change: str, what: tuple[str, ...], same_form: str) -> str:
    """The code of the row that covers a change; empty when it counts.

    Args:
        path: Without leading slash.
        change: added, removed or changed.
        what: What differs.
        same_form: The normal form in which both contents are equal; empty for none.
    """
    for row, pattern in _compiled():
        if row.same and (row.same != same_form or what != ("content",)):
            continue
        if row.only and (change != "changed" or not set(what) <= set(row.only)):
            continue
        if pattern.fullmatch(path):
            return row.code
    return ""


@cache
def _compiled() -> tuple[tuple[NoiseRow, re.Pattern[str]], ...]:
    return tuple((row, re.compile(row.path)) for row in noise_table())
