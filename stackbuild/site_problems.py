"""What is wrong in a site file, each with its line and with the nearest key that there is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from stackbuild.errors import SpecProblem

Keys = tuple[str, ...]

_CODE = "site-config-invalid"
_KEY = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_VALUE = re.compile(rf"\s*({_DOTTED})\s*=")

# What pydantic's words for Python's types are in TOML's.
_WANTED = {
    "string_type": "a text",
    "path_type": "a text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "model_type": "a table",
}


def site_problems(
    errors: Sequence[ErrorDetails], file: str, text: str, tables: Mapping[Keys, type[BaseModel]]
) -> Iterator[SpecProblem]:
    """Each of pydantic's errors as a person reads it, in the order of the file.

    Args:
        errors: What the model refused.
        file: The site file as it is named.
        text: Its text; empty where variables alone were read.
        tables: The model of each table, by its path; ``*`` stands for any name.
    """
    places = _places(text)
    lines = text.splitlines()
    found = []
    for error in errors:
        path = tuple(str(part) for part in error["loc"] if part != "[key]")
        near = path
        while near and near not in places:
            near = near[:-1]
        line, column = places.get(near, (0, 0))
        message, suggestion = _told(error, path, tables)
        shown = lines[line - 1] if line else ""
        found.append(SpecProblem(_CODE, file, line, column, message, suggestion, shown))
    yield from sorted(found, key=lambda problem: (problem.line, problem.column))


def _told(error: ErrorDetails, path: Keys, tables: Mapping[Keys, type[BaseModel]]) -> tuple[str, str]:
    if error["type"] != "extra_forbidden":
        wanted = _WANTED.get(error["type"])
        return f"'{'.'.join(path)}' must be {wanted}" if wanted else f"'{'.'.join(path)}': {error['msg']}", ""
    model = tables.get(path[:-1]) or tables.get((*path[:-2], "*"))
    known = [field.alias or name for name, field in model.model_fields.items()] if model else []
    where = f" in '{'.'.join(path[:-1])}'" if path[:-1] else ""
    from stackbuild.spelling import (
        closest,  # imported here: a file without a mistake does not pay for difflib
    )

    near = closest(path[-1], known)
    return (
        f"unknown key '{path[-1]}'{where}",
        f"Did you mean '{near}'?" if near else f"Known here: {', '.join(sorted(known))}.",
    )


def _places(text: str) -> dict[Keys, tuple[int, int]]:
    """Line and column, from 1, of each table and key that begins a line; TOML 1.0.0, without keys inside values."""
    places: dict[Keys, tuple[int, int]] = {}
    table: Keys = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header, value = _TABLE.match(line), _VALUE.match(line)
        if header is not None:
            table = path = _keys(header[1])
        elif value is not None:
            path = (*table, *_keys(value[1]))
        else:
            continue
        found = header or value
        assert found is not None
        for length in range(1, len(path) + 1):
            places.setdefault(path[:length], (number, found.start(1) + 1))
    return places


def _keys(dotted: str) -> Keys:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))
