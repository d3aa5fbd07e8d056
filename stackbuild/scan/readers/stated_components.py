"""What an SBOM states, whatever its format: components, what each needs, and the rows that a layer keeps of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stackbuild.distribution_name import normalized_name
from stackbuild.scan.readers.text import plain

LONGEST_TEXT = 400
_HEX = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class StatedComponent:
    """One component as a document words it; empty texts for what it does not say.

    Attributes:
        reference: How the document refers to it.
        kind: A CycloneDX component type.
        name: Its name.
        version: Its version.
        purl: Its package URL, not checked.
        sha256: In lower-case hex.
        licences: SPDX ids, expressions or names.
    """

    reference: str
    kind: str
    name: str
    version: str
    purl: str
    sha256: str
    licences: tuple[str, ...]


def component_rows(
    components: Sequence[StatedComponent], needs: Iterable[tuple[str, str]]
) -> list[list[Any]]:
    """What a layer keeps: [kind, name, version, purl, sha256, licences, rows that it needs] of each.

    Args:
        components: Those to keep; of several with one reference the first is meant by it.
        needs: Pairs of references: what needs something, and what it needs. Others lead nowhere and are left out.
    """
    numbers: dict[str, int] = {}
    for number, component in enumerate(components):
        numbers.setdefault(component.reference, number)
    numbers.pop("", None)
    wanted: dict[int, set[int]] = {}
    for user, needed in needs:
        if user in numbers and needed in numbers and user != needed:
            wanted.setdefault(numbers[user], set()).add(numbers[needed])
    return [
        [
            *(item.kind, item.name, item.version, item.purl, item.sha256, list(item.licences)),
            sorted(wanted.get(number, ())),
        ]
        for number, item in enumerate(components)
    ]


def beside_the_distribution(
    components: Sequence[StatedComponent], described: Collection[str], path: str
) -> list[StatedComponent]:
    """The components without the distribution itself, as a format words it that does not mark it.

    It is what the document is about: with the distribution's own purl, or the only one of several and without any purl.

    Args:
        components: All of them.
        described: References of what the document is about: the distribution, or what was put into it.
        path: Of the document in its dist-info.
    """
    folder = path.split("/")[-3:][0]
    own = normalized_name(folder.removesuffix(".dist-info").partition("-")[0])
    alone = len(described) == 1 and len(components) > 1
    return [
        component
        for component in components
        if component.reference not in described
        or not (_pypi_name(component.purl) == own or (alone and not component.purl))
    ]


def _pypi_name(purl: str) -> str:
    """The normalised name that a purl of the Python index bears; empty for every other purl."""
    start, _, rest = purl.partition("pkg:pypi/")
    return normalized_name(rest.partition("@")[0].partition("?")[0]) if not start else ""


def text_of(value: object) -> str:
    """A text of a document, cut to what names and licences need; empty for what is none."""
    return plain(value[:LONGEST_TEXT]) if isinstance(value, str) else ""


def text_at(value: Mapping[str, Any], key: str) -> str:
    """A text of an object of a document; empty for what is none."""
    return text_of(value.get(key))


def objects_at(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The objects of a list of a document; what is none is left out."""
    listed = value.get(key)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def texts_at(value: Mapping[str, Any], key: str) -> list[str]:
    """The texts of a list of a document; what is none is left out."""
    listed = value.get(key)
    return [text_of(entry) for entry in listed if isinstance(entry, str)] if isinstance(listed, list) else []


def stated_sha256(hashes: Iterable[Mapping[str, Any]], *, algorithm: tuple[str, str], value: str) -> str:
    """The first SHA-256 among the hashes of a component, in lower-case hex; empty for none that is one.

    Args:
        hashes: As the document has them.
        algorithm: The key that names a hash's algorithm, and SHA-256 in this format's words.
        value: The key of the hash itself.
    """
    key, sha256 = algorithm
    stated = (text_at(entry, value).lower() for entry in hashes if entry.get(key) == sha256)
    return next((text for text in stated if len(text) == 64 and not text.strip(_HEX)), "")
