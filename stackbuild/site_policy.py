"""The site's policy: the ``[policy]`` table of the site file. ``compat/policy.py`` applies it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stackbuild.frozen_model import FrozenModel


class Policy(FrozenModel):
    """The ``[policy]`` table of the site file."""

    severities: dict[str, Literal["FAIL", "WARN", "PASS"]] = Field(
        default_factory=dict, description="gate code to the verdict its FAIL or WARN gets here"
    )
    allowed_bases: tuple[str, ...] = Field(
        default=(), description="base repositories that stacks may use; empty allows all"
    )
    allowed_indexes: tuple[str, ...] = Field(
        default=(), description="index names that wheels may come from; empty allows all"
    )
    compatibility: tuple[Literal["native", "minor", "forward"], ...] = Field(
        default=("native", "minor", "forward"),
        description="target.compatibility values that specs may ask for",
    )
    eol_tolerance_days: int = Field(
        default=0, ge=0, description="days past an end of life before it is reported"
    )
