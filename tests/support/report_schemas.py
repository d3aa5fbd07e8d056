"""The JSON schemas of reports: as they are committed, and as the models are now."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from pydantic import BaseModel


def report_schema(model: type[BaseModel]) -> str:
    """The JSON schema (2020-12) of a report's model, as it is committed."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(by_alias=True, mode="serialization"),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def committed_schema(name: str = "verification.schema.json") -> str:
    """The schema that ships with this version."""
    return files("stackbuild.reports").joinpath(name).read_text(encoding="utf-8")
