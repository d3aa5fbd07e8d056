"""What an SBOM in SPDX 3.0 (JSON-LD) says was linked or copied into a distribution.

SPDX specification 3.0.1, annex "Serialization formats": a context of spdx.org and all elements side by side in ``@graph``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stackbuild.scan.readers.stated_components import (
    StatedComponent,
    beside_the_distribution,
    component_rows,
    objects_at,
    stated_sha256,
    text_at,
    text_of,
    texts_at,
)
from stackbuild.scan.readers.text import MOST_PACKAGES, at_most

_CONTEXT = "https://spdx.org/rdf/3.0"
_LISTED = "spdx.org/licenses/"
_COLLECTIONS = ("SpdxDocument", "Bom", "software_Sbom")
_NEEDS = ("dependsOn", "hasStaticLink", "hasDynamicLink")
# Scopes of a relationship (core, LifecycleScopeType) in which nothing gets into what is shipped.
_NOT_SHIPPED = ("build", "design", "development", "test")
_ONLY_BUILDS = ("usesTool", "hasTest", "hasTestCase")


def is_spdx3(document: Mapping[str, Any]) -> bool:
    """Whether a JSON document is SPDX 3.0 as JSON-LD."""
    context = document.get("@context")
    named = context if isinstance(context, list) else [context]
    return any(text_of(name).startswith(_CONTEXT) for name in named) and isinstance(
        document.get("@graph"), list
    )


def spdx3_rows(document: Mapping[str, Any], path: str) -> list[list[Any]]:
    """The rows of a document, in its order.

    Neither the distribution itself is among them nor what was only used to build or test it.

    Args:
        document: As :func:`is_spdx3` tells it.
        path: Of the document in its dist-info.

    Raises:
        ScanError: ``layer-too-large``.
    """
    elements = objects_at(document, "@graph")
    relations = [*_relations(elements)]
    only_building, licences = _only_building(relations), _licences(elements, relations)
    listed = (element for element in elements if element.get("type") == "software_Package")
    packages = [
        _stated(element, licences)
        for element in at_most(MOST_PACKAGES, listed, path)
        if text_at(element, "name") and text_at(element, "spdxId") not in only_building
    ]
    # A document may be about a collection, which is about packages; only those can be the distribution.
    described = _described(elements, relations) & {package.reference for package in packages}
    needs = ((relation.one, relation.other) for relation in relations if relation.is_need and relation.ships)
    return component_rows(beside_the_distribution(packages, described, path), needs)


class _Relation(NamedTuple):
    """What one element has to do with another one."""

    one: str
    kind: str
    other: str
    scope: str

    @property
    def is_need(self) -> bool:
        return self.kind in _NEEDS

    @property
    def ships(self) -> bool:
        return self.scope not in _NOT_SHIPPED


def _relations(elements: Sequence[Mapping[str, Any]]) -> Iterator[_Relation]:
    for element in elements:
        if element.get("type") in ("Relationship", "LifecycleScopedRelationship"):
            one, kind, scope = (text_at(element, key) for key in ("from", "relationshipType", "scope"))
            yield from (_Relation(one, kind, other, scope) for other in texts_at(element, "to"))


def _described(elements: Sequence[Mapping[str, Any]], relations: Sequence[_Relation]) -> set[str]:
    """What the document and its collections are about."""
    about = {relation.other for relation in relations if relation.kind == "describes"}
    return about.union(
        *(texts_at(element, "rootElement") for element in elements if element.get("type") in _COLLECTIONS)
    )


def _only_building(relations: Sequence[_Relation]) -> set[str]:
    """What took part in the building, and is nowhere said to be in something."""
    building = {
        relation.other
        for relation in relations
        if relation.kind in _ONLY_BUILDS or (relation.is_need and not relation.ships)
    }
    return building - {
        relation.other
        for relation in relations
        if (relation.is_need and relation.ships) or relation.kind in ("contains", "describes")
    }


def _stated(package: Mapping[str, Any], licences: Mapping[str, str]) -> StatedComponent:
    reference, purpose = text_at(package, "spdxId"), text_at(package, "software_primaryPurpose")
    return StatedComponent(
        reference=reference,
        kind="operating-system" if purpose == "operatingSystem" else purpose,
        name=text_at(package, "name"),
        version=text_at(package, "software_packageVersion"),
        purl=_purl(package),
        sha256=_sha256(package),
        licences=tuple(licence for licence in (licences.get(reference),) if licence),
    )


def _purl(package: Mapping[str, Any]) -> str:
    stated = (
        text_at(entry, "identifier")
        for entry in objects_at(package, "externalIdentifier")
        if entry.get("externalIdentifierType") == "packageUrl"
    )
    return text_at(package, "software_packageUrl") or next(stated, "")


def _sha256(package: Mapping[str, Any]) -> str:
    return stated_sha256(
        objects_at(package, "verifiedUsing"), algorithm=("algorithm", "sha256"), value="hashValue"
    )


def _licences(elements: Sequence[Mapping[str, Any]], relations: Sequence[_Relation]) -> dict[str, str]:
    """Each package's licence: as it declares it, else as the document's author concludes."""
    named = {text_at(element, "spdxId"): _licence(element) for element in elements}
    found: dict[str, str] = {}
    for wanted in ("hasDeclaredLicense", "hasConcludedLicense"):
        for one, kind, other, _ in relations:
            licence = (named.get(other) or _listed(other)) if kind == wanted else ""
            if licence:
                found.setdefault(one, licence)
    return found


def _licence(element: Mapping[str, Any]) -> str:
    kind = text_at(element, "type")
    if kind == "simplelicensing_LicenseExpression":
        stated = text_at(element, "simplelicensing_licenseExpression")
        return "" if stated in ("NOASSERTION", "NONE") else stated
    if kind == "expandedlicensing_ListedLicense":
        return _listed(text_at(element, "spdxId")) or text_at(element, "name")
    return text_at(element, "name") if kind == "expandedlicensing_CustomLicense" else ""


def _listed(reference: str) -> str:
    """The id that a reference to the SPDX licence list ends in; empty for every other reference."""
    return reference.partition(_LISTED)[2]
