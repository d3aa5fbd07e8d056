"""The JSON schemas of what CI services read, as check-jsonschema ships them (SchemaStore's and GitLab's own)."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from jsonschema import Draft7Validator

Schema = Literal["github-workflows", "gitlab-ci"]


@cache
def _validator(name: Schema) -> Draft7Validator:
    from jsonschema import Draft7Validator  # takes a second, which only the tests that ask pay

    folder = files("check_jsonschema") / "builtin_schemas" / "vendor"
    return Draft7Validator(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))


def violations(name: Schema, document: Any) -> list[str]:
    """What a document breaks of a schema; nothing when it is valid."""
    return [
        f"{'/'.join(str(part) for part in error.absolute_path)}: {error.message[:300]}"
        for error in _validator(name).iter_errors(document)
    ]
