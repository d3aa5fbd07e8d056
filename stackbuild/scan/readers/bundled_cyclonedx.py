"""What an SBOM in CycloneDX 1.2 to 1.7 (JSON) says was linked or copied into a distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stackbuild.scan.readers.stated_components import (
    StatedComponent,
    component_rows,
    objects_at,
    stated_sha256,
    text_at,
    texts_at,
)
from stackbuild.scan.readers.text import MOST_PACKAGES, at_most


def cyclonedx_rows(document: Mapping[str, Any], path: str) -> list[list[Any]]:
    """The rows of a document, in its order.

    Neither the distribution itself is among them nor what was only used to build it (scope ``excluded``).

    Args:
        document: With ``bomFormat`` CycloneDX.
        path: Of the document, for errors.

    Raises:
        ScanError: ``layer-too-large``.
    """
    subject = _subject(document)
    found = [
        _stated(component)
        for component in at_most(MOST_PACKAGES, _components(document), path)
        if text_at(component, "name")
        and component.get("scope") != "excluded"
        and not {text_at(component, "bom-ref"), text_at(component, "purl")} & subject
    ]
    return component_rows(found, _needs(document))


def _stated(component: Mapping[str, Any]) -> StatedComponent:
    return StatedComponent(
        reference=text_at(component, "bom-ref"),
        kind=text_at(component, "type"),
        name=text_at(component, "name"),
        version=text_at(component, "version"),
        purl=text_at(component, "purl"),
        sha256=_sha256(component),
        licences=tuple(_licences(component)),
    )


def _subject(document: Mapping[str, Any]) -> set[str]:
    """How the document refers to the distribution itself."""
    metadata = document.get("metadata")
    component = metadata.get("component") if isinstance(metadata, dict) else None
    if not isinstance(component, dict):
        return set()
    return {text_at(component, "bom-ref"), text_at(component, "purl")} - {""}


def _components(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All components, those inside others too; the order is the document's."""
    pending = objects_at(document, "components")[::-1]
    while pending:
        component = pending.pop()
        yield component
        pending.extend(objects_at(component, "components")[::-1])


def _needs(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for entry in objects_at(document, "dependencies"):
        user = text_at(entry, "ref")
        yield from ((user, needed) for needed in texts_at(entry, "dependsOn"))


def _sha256(component: Mapping[str, Any]) -> str:
    return stated_sha256(objects_at(component, "hashes"), algorithm=("alg", "SHA-256"), value="content")


def _licences(component: Mapping[str, Any]) -> list[str]:
    stated = []
    for choice in objects_at(component, "licenses"):
        licence = choice.get("license")
        named = licence if isinstance(licence, dict) else {}
        stated.append(text_at(choice, "expression") or text_at(named, "id") or text_at(named, "name"))
    return [text for text in dict.fromkeys(stated) if text]
