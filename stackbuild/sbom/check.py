"""What the CycloneDX schema does not say: references are unique and lead somewhere, licences are SPDX's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from cyclonedx.spdx import is_expression, is_supported_id


def check_references(text: str) -> None:
    """Check the references of a CycloneDX JSON document.

    Args:
        text: The document.

    Raises:
        ValueError: Names every reference that is given twice, described twice, repeated or dangling.
    """
    document = json.loads(text)
    problems = [*_problems(document)]
    if problems:
        raise ValueError("; ".join(problems))


def check_licences(text: str) -> None:
    """Check the licences of a CycloneDX JSON document.

    Args:
        text: The document.

    Raises:
        ValueError: Names every licence that stands as an SPDX expression or id and is none.
    """
    stated: dict[tuple[str, str], None] = {}
    for choice in _licences(json.loads(text)):
        if "expression" in choice:
            stated["expression", str(choice["expression"])] = None
        elif "id" in choice.get("license", {}):
            stated["id", str(choice["license"]["id"])] = None
    problems = [
        f"no SPDX {kind}: {text}"
        for kind, text in stated
        if not (is_expression(text) if kind == "expression" else is_supported_id(text))
    ]
    if problems:
        raise ValueError("; ".join(problems))


def _licences(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield from node.get("licenses", ())
        for value in node.values():
            yield from _licences(value)
    elif isinstance(node, list):
        for value in node:
            yield from _licences(value)


def _problems(document: dict[str, Any]) -> Iterator[str]:
    given = Counter(_references(document))
    yield from (f"bom-ref given {count} times: {ref}" for ref, count in given.items() if count > 1)
    described = Counter(entry["ref"] for entry in document.get("dependencies", []))
    yield from (
        f"dependencies of {ref} stated {count} times" for ref, count in described.items() if count > 1
    )
    for entry in document.get("dependencies", []):
        needs = Counter(entry.get("dependsOn", []))
        yield from (f"{entry['ref']} depends on {ref} {n} times" for ref, n in needs.items() if n > 1)
        yield from (f"no such bom-ref: {ref}" for ref in (entry["ref"], *needs) if ref not in given)


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if "bom-ref" in node:
            yield str(node["bom-ref"])
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
