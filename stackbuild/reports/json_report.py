"""A report as JSON, for machines; its schema is committed beside this file."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from pydantic import BaseModel

from stackbuild.reports.interface import Report

VERIFICATION_SCHEMA = "verification.schema.json"


def render_json(report: Report) -> str:
    """The whole report as JSON, two spaces a level, in the model's order."""
    return json.dumps(report.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"


def report_schema(model: type[BaseModel]) -> str:
    """The JSON schema (2020-12) of a report's model, as it is committed."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(by_alias=True, mode="serialization"),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def committed_schema(name: str = VERIFICATION_SCHEMA) -> str:
    """The schema that ships with this version."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
