"""What an SBOM in SPDX 2.2 or 2.3 (JSON) says was linked or copied into a distribution.

SPDX specification 2.3: clause 7 (packages), 10 (other licences), 11 (relationships) and the JSON schema beside it.
A document lists files too; those are not components of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stackbuild.scan.readers.stated_components import (
    StatedComponent,
    beside_the_distribution,
    component_rows,
    objects_at,
    stated_sha256,
    text_at,
    texts_at,
)
from stackbuild.scan.readers.text import MOST_PACKAGES, at_most

VERSIONS = ("SPDX-2.2", "SPDX-2.3")
_DOCUMENT = "SPDXRef-DOCUMENT"
_NOTHING_SAID = ("", "NOASSERTION", "NONE")
# A needs B; and B is needed by A.
_NEEDS = ("DEPENDS_ON", "STATIC_LINK", "DYNAMIC_LINK")
_NEEDED_BY = ("DEPENDENCY_OF", "RUNTIME_DEPENDENCY_OF")
# What is of a component, and was not put into what it is of.
_ONLY_BUILDS = (
    *("BUILD_DEPENDENCY_OF", "BUILD_TOOL_OF", "DEV_DEPENDENCY_OF", "DEV_TOOL_OF"),
    *("TEST_DEPENDENCY_OF", "TEST_TOOL_OF", "TEST_OF", "TEST_CASE_OF"),
)


@dataclass
class _Relations:
    """What the relationships of a document say, by the elements' identifiers."""

    needs: list[tuple[str, str]] = field(default_factory=list)
    described: set[str] = field(default_factory=set)
    contained: set[str] = field(default_factory=set)
    building: set[str] = field(default_factory=set)

    @cached_property
    def only_building(self) -> set[str]:
        """What took part in the building, and is nowhere said to be in something."""
        return self.building - self.described - self.contained - {needed for _, needed in self.needs}


def spdx_rows(document: Mapping[str, Any], path: str) -> list[list[Any]]:
    """The rows of a document, in its order.

    Neither the distribution itself is among them nor what was only used to build or test it.

    Args:
        document: With one of ``VERSIONS`` as its ``spdxVersion``.
        path: Of the document in its dist-info.

    Raises:
        ScanError: ``layer-too-large``.
    """
    relations = _relations(document)
    licences = _named_licences(document)
    packages = [
        _stated(package, licences)
        for package in at_most(MOST_PACKAGES, objects_at(document, "packages"), path)
        if text_at(package, "name") and text_at(package, "SPDXID") not in relations.only_building
    ]
    return component_rows(beside_the_distribution(packages, relations.described, path), relations.needs)


def _relations(document: Mapping[str, Any]) -> _Relations:
    found = _Relations()
    found.described.update(texts_at(document, "documentDescribes"))
    for relation in objects_at(document, "relationships"):
        one, other = text_at(relation, "spdxElementId"), text_at(relation, "relatedSpdxElement")
        kind = text_at(relation, "relationshipType")
        if kind == "DESCRIBES" and one == _DOCUMENT:
            found.described.add(other)
        elif kind == "DESCRIBED_BY" and other == _DOCUMENT:
            found.described.add(one)
        elif kind in _NEEDS:
            found.needs.append((one, other))
        elif kind in _NEEDED_BY:
            found.needs.append((other, one))
        elif kind == "CONTAINS":
            found.contained.add(other)
        elif kind == "CONTAINED_BY":
            found.contained.add(one)
        elif kind in _ONLY_BUILDS:
            found.building.add(one)
    return found


def _stated(package: Mapping[str, Any], named: Mapping[str, str]) -> StatedComponent:
    version = text_at(package, "versionInfo")
    return StatedComponent(
        reference=text_at(package, "SPDXID"),
        kind=text_at(package, "primaryPackagePurpose").lower().replace("_", "-"),
        name=text_at(package, "name"),
        version="" if version in _NOTHING_SAID else version,
        purl=_purl(package),
        sha256=_sha256(package),
        licences=tuple(_licences(package, named)),
    )


def _purl(package: Mapping[str, Any]) -> str:
    # Its category is written in two ways, PACKAGE-MANAGER and PACKAGE_MANAGER; the type alone says enough.
    stated = (
        text_at(entry, "referenceLocator")
        for entry in objects_at(package, "externalRefs")
        if entry.get("referenceType") == "purl"
    )
    return next(stated, "")


def _sha256(package: Mapping[str, Any]) -> str:
    return stated_sha256(
        objects_at(package, "checksums"), algorithm=("algorithm", "SHA256"), value="checksumValue"
    )


def _licences(package: Mapping[str, Any], named: Mapping[str, str]) -> Iterator[str]:
    """As the package declares them, else as the document's author concludes."""
    for key in ("licenseDeclared", "licenseConcluded"):
        licence = text_at(package, key)
        if licence not in _NOTHING_SAID:
            yield named.get(licence, licence)
            return


def _named_licences(document: Mapping[str, Any]) -> dict[str, str]:
    """The names of the licences that the document brings itself, by their ``LicenseRef-…``."""
    return {
        text_at(entry, "licenseId"): text_at(entry, "name")
        for entry in objects_at(document, "hasExtractedLicensingInfos")
        if text_at(entry, "name") not in _NOTHING_SAID
    }
