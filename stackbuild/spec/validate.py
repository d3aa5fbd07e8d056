"""Checking plain data against the models, and finding the valid part of a spec that is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from stackbuild.spec.model import StackSpec
from stackbuild.spec.yaml_tree import Path

_MOST_ROUNDS = 200  # each round leaves out at least one value; the bound is for safety alone


def validate(data: Mapping[str, Any]) -> tuple[StackSpec | None, list[ErrorDetails]]:
    """Return the spec, or everything the models have against the data.

    Goes through JSON, because its strict mode takes lists and dates as YAML writes them, and no "1" for 1.
    """
    try:
        return StackSpec.model_validate_json(json.dumps(data), strict=True, by_alias=True, by_name=False), []
    except ValidationError as error:
        return None, error.errors(include_url=False)


def valid_part(data: Mapping[str, Any]) -> tuple[StackSpec, Mapping[Path, Path]] | None:
    """Leave out what is wrong, so that the rules can judge the rest in the same run.

    Returns:
        A spec of the valid parts, and for each path in it the path in ``data`` (list positions shift when an
        entry before them is left out); None when leaving things out does not lead to a spec.
    """
    left_out: set[Path] = set()
    for _ in range(_MOST_ROUNDS):
        origins: dict[Path, Path] = {}
        rest = _without(data, left_out, (), (), origins)
        _fill_in(rest, data)
        spec, errors = validate(rest)
        if spec is not None:
            return spec, origins
        wrong = {origins[path] for path in (_nearest(origins, error["loc"]) for error in errors) if path}
        if not wrong:
            return None
        left_out |= wrong
    return None


def _without(node: Any, left_out: set[Path], path: Path, new: Path, origins: dict[Path, Path]) -> Any:
    origins[new] = path
    if isinstance(node, dict):
        return {
            key: _without(value, left_out, (*path, key), (*new, key), origins)
            for key, value in node.items()
            if (*path, key) not in left_out
        }
    if isinstance(node, list):
        kept = [(index, value) for index, value in enumerate(node) if (*path, index) not in left_out]
        return [
            _without(value, left_out, (*path, index), (*new, position), origins)
            for position, (index, value) in enumerate(kept)
        ]
    return node


def _fill_in(rest: dict[str, Any], data: Mapping[str, Any]) -> None:
    """Give what every spec needs, in a way that no rule complains about."""
    rest["schema"] = 1
    rest.setdefault("name", "placeholder")
    if "base" in rest and "external" in rest:
        del rest["external"]
    if "base" not in rest and "external" not in rest:
        rest["base"] = {"bootstrap": "debian", "suite": "placeholder"}
    if "python" in data and "python" not in rest:
        rest["python"] = "3.12"


def _nearest(origins: Mapping[Path, Path], location: tuple[int | str, ...]) -> Path:
    path: Path = ()
    for part in location:
        if (*path, part) in origins:
            path = (*path, part)
    return path
