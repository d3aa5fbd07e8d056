"""Items to CycloneDX 1.6 JSON, the same bytes every time.

The library draws a serial number, a timestamp and the references of repeated components at random; all of
them are set here from the content.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.component_evidence import ComponentEvidence, Occurrence
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.spdx import fixup_id

from stackbuild.sbom.check import check_licences, check_references
from stackbuild.sbom.inventory import Evidence, Item

_LONGEST_VERSION = 1024  # CycloneDX 1.6, component.version
_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # RFC 4122 appendix C, URL


def write_cyclonedx(
    root: Item, items: Sequence[Item], *, created: str, tool_version: str, unknown: Sequence[str] = ()
) -> bytes:
    """Write one document.

    Args:
        root: The image itself.
        items: Its components, each key once; see ``inventory.merge``.
        created: RFC 3339 time the document bears.
        tool_version: Version of stackbuild, named as the tool.
        unknown: Sentences about what the document cannot say.

    Returns:
        CycloneDX 1.6 JSON, UTF-8, with a newline at the end.

    Raises:
        ValueError: A reference is used twice or leads nowhere, or a licence is not valid: a mistake in the caller.
    """
    # The library would give the second of two equal references a random one.
    given = Counter(part.key for item in (root, *items) for part in item.with_children())
    twice = [key for key, count in given.items() if count > 1]
    if twice:
        raise ValueError(f"listed more than once: {', '.join(twice)}")
    seed = repr((root, tuple(items), created, tool_version, tuple(unknown))).encode()
    tool = Component(
        name="stackbuild", version=tool_version, type=ComponentType.APPLICATION, bom_ref="tool:stackbuild"
    )
    bom = Bom(
        serial_number=uuid.uuid5(_NAMESPACE, hashlib.sha256(seed).hexdigest()),
        metadata=BomMetaData(
            component=_component(root),
            timestamp=datetime.fromisoformat(created),
            tools=ToolRepository(components=[tool]),
            properties=[Property(name="stackbuild:unknown", value=sentence) for sentence in unknown],
        ),
        components=[_component(item) for item in items],
        dependencies=[
            Dependency(BomRef(item.key), [Dependency(BomRef(need)) for need in item.needs])
            for top in (root, *items)
            for item in top.with_children()
        ],
    )
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    check_references(text)
    check_licences(text)
    return text.encode() + b"\n"


def _component(item: Item) -> Component:
    return Component(
        name=item.name,
        version=item.version[:_LONGEST_VERSION] or None,
        type=ComponentType(item.kind),
        bom_ref=item.key,
        purl=item.purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=item.sha256)] if item.sha256 else None,
        licenses=_licences(item.licences),
        properties=[
            Property(name=f"stackbuild:{name}", value=value) for name, value in item.properties.items()
        ],
        evidence=_evidence(item.evidence) if item.evidence else None,
        components=[_component(child) for child in item.children],
    )


def _evidence(found: Sequence[Evidence]) -> ComponentEvidence:
    # The library puts them in order by reference first, and takes no two empty ones for equal: then the order is that
    # of addresses in memory.
    no_reference = BomRef()
    return ComponentEvidence(
        occurrences=[
            Occurrence(
                bom_ref=no_reference,
                location=item.path,
                additional_context=f"layer {item.layer}" if item.layer else None,
            )
            for item in found
        ]
    )


def _licences(stated: Sequence[str]) -> list[DisjunctiveLicense | LicenseExpression]:
    """An SPDX id as id, a valid SPDX expression as expression, anything else as a name.

    CycloneDX takes several licences or a single expression: an expression among several becomes a name.
    """
    factory = LicenseFactory()
    if len(stated) == 1:
        return [factory.make_from_string(stated[0])]
    ids = ((text, fixup_id(text)) for text in stated)
    return [DisjunctiveLicense(id=known) if known else factory.make_with_name(text) for text, known in ids]
