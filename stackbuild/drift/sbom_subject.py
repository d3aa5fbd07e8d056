"""A CycloneDX SBOM, ours or another tool's, as one side of a comparison (CycloneDX 1.4 to 1.6, JSON)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from packageurl import PackageURL
from packaging.utils import canonicalize_name

from stackbuild.digests import digest_of
from stackbuild.drift.model import Side
from stackbuild.drift.packages import Package, PackageSet
from stackbuild.drift.pins import measured_pins
from stackbuild.drift.subject import Subject
from stackbuild.errors import NotJudgedError
from stackbuild.scan.readers.text import plain
from stackbuild.scan.sources.interface import mapping

# The SBOM of a 6 GB image has 10 MB; what is larger by far was not written about an image.
LARGEST = 64 << 20
_OURS = "stackbuild:"
_DEEPEST = 8
_MOST = 500_000
_PURL_KINDS = {"pypi": "python"}
_NO_PACKAGES = frozenset({"oci", "docker", "generic"})
_GPU = ("gpu-binaries", "gpu-ptx")


def sbom_subject(data: bytes, name: str) -> Subject:
    """An SBOM as a side.

    Args:
        data: CycloneDX JSON.
        name: As the person named it.

    Raises:
        NotJudgedError: ``sbom-unreadable``.
    """
    document = _document(data, name)
    components = list(_components(document.get("components"), name))
    found = (_package(component, at_top=at_top) for component, at_top in components)
    packages = tuple(item for item in found if item is not None)
    metadata = mapping(document.get("metadata"))
    root = mapping(metadata.get("component"))
    stated = _properties(root)
    cuda = _cuda(components)
    pins = {**_os(components), **measured_pins(packages, cuda, {}), **_gpu_code(components)}
    pins = {name: value for name, value in pins.items() if value}  # what it does not list may be there
    pins |= {
        pin: stated[name]
        for pin, name in (("base", "base"), ("base_digest", "base-digest"))
        if stated.get(name)
    }
    return Subject(
        side=Side(
            name=name,
            kind="sbom",
            platform=stated.get("platform", ""),
            digest=digest_of(data),
        ),
        pins=pins,
        packages=PackageSet(tuple({item.sort_key: item for item in packages}.values())),
        unknown=tuple(
            plain(str(entry.get("value")))
            for entry in _list(metadata.get("properties"))
            if entry.get("name") == f"{_OURS}unknown"
        ),
    )


def _document(data: bytes, name: str) -> Mapping[str, Any]:
    if len(data) > LARGEST:
        raise _unreadable(
            name, f"it has {len(data):,} bytes, and the SBOM of an image has fewer than {LARGEST:,}"
        )
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _unreadable(name, "it is not JSON") from error
    if not isinstance(document, Mapping) or document.get("bomFormat") != "CycloneDX":
        raise _unreadable(name, "it is JSON, but does not say that it is CycloneDX (bomFormat)")
    if not isinstance(document.get("components"), Sequence):
        raise _unreadable(name, "it lists no components")
    return document


def _unreadable(name: str, why: str) -> NotJudgedError:
    return NotJudgedError(
        f"the SBOM cannot be read: {why}",
        code="sbom-unreadable",
        where=name,
        do="Name a CycloneDX document in JSON; `stackbuild sbom IMAGE` writes one.",
    )


def _components(listed: object, name: str) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Every component, and whether it is at the top; an SBOM that nests without end is refused."""
    pending = [(component, 0) for component in reversed(_list(listed))]
    count = 0
    while pending:
        component, depth = pending.pop()
        count += 1
        if count > _MOST or depth > _DEEPEST:
            raise _unreadable(name, "it nests components too deeply, or has too many")
        yield component, depth == 0
        pending += [(child, depth + 1) for child in reversed(_list(component.get("components")))]


def _package(component: Mapping[str, Any], *, at_top: bool) -> Package | None:
    """A component as a package; None for what is none: the image, files, libraries inside of packages."""
    properties = _properties(component)
    name, version = plain(str(component.get("name") or "")), plain(str(component.get("version") or ""))
    purl = _purl(component)
    if purl is None:
        location = _location(component)
        if not properties.get("cuda-library") or not at_top or not location:
            return None
        return Package("cuda", name.partition(".so")[0], version, place=location.rpartition("/")[0])
    kind = _PURL_KINDS.get(purl.type, purl.type)
    if kind in _NO_PACKAGES or properties.get("vendored") == "true" or not name:
        return None
    return Package(
        kind=kind,
        name=canonicalize_name(name) if kind == "python" else name,
        version=version,
        place=properties.get("environment", "") if kind == "python" else "",
        licences=_licences(component),
        sha256=_sha256(component),
        architecture=str(purl.qualifiers.get("arch", "")) if isinstance(purl.qualifiers, Mapping) else "",
    )


def _purl(component: Mapping[str, Any]) -> PackageURL | None:
    try:
        return PackageURL.from_string(str(component.get("purl") or ""))
    except ValueError:
        return None


def _licences(component: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What a component's licences are called; None where it states none, which may be the tool's doing."""
    found = set()
    for choice in _list(component.get("licenses")):
        licence = mapping(choice.get("license"))
        found.add(str(choice.get("expression") or licence.get("id") or licence.get("name") or ""))
    return tuple(sorted(plain(text) for text in found if text)) or None


def _sha256(component: Mapping[str, Any]) -> str:
    for entry in _list(component.get("hashes")):
        if entry.get("alg") == "SHA-256":
            return plain(str(entry.get("content") or "")).lower()
    return ""


def _location(component: Mapping[str, Any]) -> str:
    occurrences = _list(mapping(component.get("evidence")).get("occurrences"))
    return next((plain(str(entry.get("location") or "")) for entry in occurrences), "")


def _os(components: Sequence[tuple[Mapping[str, Any], bool]]) -> dict[str, str]:
    for component, _ in components:
        if component.get("type") == "operating-system":
            words = (plain(str(component.get(key) or "")) for key in ("name", "version"))
            found = {"os": " ".join(word for word in words if word)}
            glibc = _properties(component).get("glibc")
            return {**found, "glibc": glibc} if glibc else found
    return {}


def _cuda(components: Sequence[tuple[Mapping[str, Any], bool]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for component, _ in components:
        family = _properties(component).get("cuda-library")
        version = plain(str(component.get("version") or ""))
        if family and version:
            found[family] = max(found.get(family, ""), version, key=lambda text: text.count("."))
    return found


def _gpu_code(components: Sequence[tuple[Mapping[str, Any], bool]]) -> dict[str, str]:
    found = {}
    for component, _ in components:
        properties = _properties(component)
        names = [name for key in _GPU for name in properties.get(key, "").split()]
        if names and _purl(component) is not None and properties.get("vendored") != "true":
            pin = f"compute_capabilities {canonicalize_name(plain(str(component.get('name'))))}"
            found[pin] = " ".join(names)
    return found


def _properties(component: Mapping[str, Any]) -> dict[str, str]:
    """Our own properties, without their prefix."""
    return {
        str(entry.get("name")).removeprefix(_OURS): plain(str(entry.get("value") or ""))
        for entry in _list(component.get("properties"))
        if str(entry.get("name", "")).startswith(_OURS)
    }


def _list(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []
