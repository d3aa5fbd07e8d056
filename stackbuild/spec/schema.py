"""The JSON schema of the spec, for editors; committed beside this file and kept current by a test."""

from __future__ import annotations

import json

from stackbuild.spec.model import StackSpec

SCHEMA_FILE = "stack.schema.json"


def spec_schema() -> str:
    """Return the schema (JSON Schema 2020-12) as text that ends in a newline."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **StackSpec.model_json_schema(by_alias=True, mode="validation"),
        "title": "stackbuild spec",
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
