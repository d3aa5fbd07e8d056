"""Holding documents against JSON schemas.

What does that takes a second to import: only the tests that need it pay, not everybody who collects them.
"""

from __future__ import annotations

from typing import Any


def violations(document: Any, schema: dict[str, Any]) -> list[str]:
    """What a document breaks of a schema (2020-12), which itself must be valid; nothing when it keeps to it."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
    return [error.message for error in Draft202012Validator(schema).iter_errors(document)]


def cyclonedx_violation(text: str) -> str:
    """What an SBOM breaks of CycloneDX 1.6, taken strictly; empty when it keeps to it."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return "" if error is None else str(error.data.message)
