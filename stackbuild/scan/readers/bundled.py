"""SBOMs that a distribution brings along: what was linked or copied into it, as its builder states it.

PEP 770: files below ``sboms`` of a dist-info. Read is CycloneDX in JSON (versions 1.2 to 1.7), which auditwheel,
maturin and cargo-cyclonedx write; of other formats a layer says that they were not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

from stackbuild.scan.readers.text import MOST_PACKAGES, at_most, plain

_LONGEST_TEXT = 400


class BundledReader:
    """``NAME.dist-info/sboms/*.json``."""

    name = "bundled"
    file_names: frozenset[str] = frozenset()
    folder_names = frozenset({"sboms"})
    largest = 32 << 20

    def wants(self, path: str) -> bool:
        """Only directly in a dist-info's folder."""
        return path.rpartition("/")[0].endswith(".dist-info/sboms")

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Components: [type, name, version, purl, sha256, licences, rows that it needs]; None for another format.

        The distribution itself is not among them, nor is what was only used to build it (scope ``excluded``).
        """
        try:
            document = json.loads(stream.read(self.largest))
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict) or document.get("bomFormat") != "CycloneDX":
            return None
        subject = _subject(document)
        found = [
            component
            for component in at_most(MOST_PACKAGES, _components(document), path)
            if _text(component, "name")
            and component.get("scope") != "excluded"
            and not {_text(component, "bom-ref"), _text(component, "purl")} & subject
        ]
        numbers: dict[str, int] = {}
        for number, component in enumerate(found):
            numbers.setdefault(_text(component, "bom-ref"), number)
        numbers.pop("", None)
        needs = _needs(document, numbers)
        return [
            [
                *(_text(component, key) for key in ("type", "name", "version", "purl")),
                _sha256(component),
                _licences(component),
                sorted(needs.get(number, set()) - {number}),
            ]
            for number, component in enumerate(found)
        ]


def _subject(document: Mapping[str, Any]) -> set[str]:
    """How the document refers to the distribution itself."""
    metadata = document.get("metadata")
    component = metadata.get("component") if isinstance(metadata, dict) else None
    if not isinstance(component, dict):
        return set()
    return {_text(component, "bom-ref"), _text(component, "purl")} - {""}


def _components(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All components, those inside others too; the order is the document's."""
    pending = _listed(document, "components")[::-1]
    while pending:
        component = pending.pop()
        yield component
        pending.extend(_listed(component, "components")[::-1])


def _needs(document: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[int, set[int]]:
    needs: dict[int, set[int]] = {}
    for entry in _listed(document, "dependencies"):
        number = numbers.get(_text(entry, "ref"))
        wanted = entry.get("dependsOn")
        if number is not None and isinstance(wanted, list):
            there = (numbers.get(plain(ref)) for ref in wanted if isinstance(ref, str))
            needs.setdefault(number, set()).update(place for place in there if place is not None)
    return needs


def _sha256(component: Mapping[str, Any]) -> str:
    for entry in _listed(component, "hashes"):
        value = _text(entry, "content").lower()
        if entry.get("alg") == "SHA-256" and len(value) == 64 and not value.strip("0123456789abcdef"):
            return value
    return ""


def _licences(component: Mapping[str, Any]) -> list[str]:
    stated = []
    for choice in _listed(component, "licenses"):
        licence = choice.get("license")
        named = licence if isinstance(licence, dict) else {}
        stated.append(_text(choice, "expression") or _text(named, "id") or _text(named, "name"))
    return [text for text in dict.fromkeys(stated) if text]


def _listed(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = value.get(key)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _text(value: Mapping[str, Any], key: str) -> str:
    """A text of the document; empty for what is none."""
    text = value.get(key)
    return plain(text[:_LONGEST_TEXT]) if isinstance(text, str) else ""
