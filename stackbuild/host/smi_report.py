"""``nvidia-smi -q``, as XML (``-x``) or as text: both hold the same report under other names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element, ParseError

from stackbuild.errors import UsageError
from stackbuild.facts.tables import Facts
from stackbuild.host.driver_facts import cuda_version, driver_version, settled_max_cuda
from stackbuild.host.gpu_names import named_gpu
from stackbuild.host.model import Host, HostGpu

_XML = re.compile(r"<nvidia_smi_log>")
_XML_END = "</nvidia_smi_log>"
_TEXT = re.compile(r"= ?NVSMI LOG ?=")
_TEXT_GPU = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]\s*$")
_LINE = re.compile(r"( *)([^:]{1,60}?) *(?:: ?(.*))?$")
_LONGEST_LINE = 400

# The report's own words → one name each; R610 names the two halves of the driver apart.
_WORDS = {
    "driver_version": "driver",
    "kmd_version": "driver",
    "cuda_version": "cuda",
    "cuda_umd_version": "cuda",
    "product_name": "name",
    "product_brand": "brand",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "mig_mode/current_mig": "mig",
    "mig_mode/current": "mig",
    "ecc_mode/current_ecc": "ecc",
    "ecc_mode/current": "ecc",
    "fb_memory_usage/total": "memory",
    "driver_model/current_dm": "model",
    "driver_model/current": "model",
}
_SWITCH = {"enabled": True, "disabled": False}


def is_smi_report(text: str) -> bool:
    """True for the output of ``nvidia-smi -q``, with or without ``-x``."""
    return _XML.search(text) is not None or _TEXT.search(text) is not None


def read_smi_report(text: str, name: str, facts: Facts) -> list[Host]:
    """Read the output of ``nvidia-smi -q`` or ``nvidia-smi -q -x``; each report is a host.

    Args:
        text: One or several reports, with anything around them.
        name: The host's name; several get ``-1``, ``-2`` … behind it.
        facts: The fact tables.

    Raises:
        UsageError: ``host-unreadable``: the XML is cut off or is not XML.
    """
    found = [_xml(part) for part in _xml_parts(text)] if _XML.search(text) else list(_texts(text))
    several = len(found) > 1
    return [
        _host(words, gpus, f"{name}-{number}" if several else name, facts)
        for number, (words, gpus) in enumerate(found, 1)
    ]


_Words = dict[str, str]


def _xml_parts(text: str) -> Iterator[str]:
    starts = [match.start() for match in _XML.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        stop = text.find(_XML_END, start, end)
        if stop < 0:
            raise UsageError(
                "The XML of nvidia-smi is cut off before its end.",
                code="host-unreadable",
                do="Give the whole output of 'nvidia-smi -q -x'.",
            )
        # Without what stands before it, a document type and its entities are gone.
        yield text[start : stop + len(_XML_END)]


def _xml(part: str) -> tuple[_Words, list[_Words]]:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(part, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise UsageError(
            f"The output of nvidia-smi -q -x is not usable XML: {error}.",
            code="host-unreadable",
            do="Give the whole output of 'nvidia-smi -q -x', unchanged.",
        ) from error
    return _element(root), [_element(gpu) for gpu in root.findall("gpu")]


def _element(element: Element) -> _Words:
    found: _Words = {}
    for path, word in _WORDS.items():
        text = (element.findtext(path) or "").strip()
        if text:
            found.setdefault(word, text)
    return found


def _texts(text: str) -> Iterator[tuple[_Words, list[_Words]]]:
    for part in _TEXT.split(text)[1:]:
        words: _Words = {}
        gpus: list[_Words] = []
        section = ""
        for long_line in part.splitlines():
            line = long_line[:_LONGEST_LINE].rstrip()
            if _TEXT_GPU.match(line):
                gpus.append({})
                continue
            match = _LINE.match(line)
            if match is None:
                continue
            key = re.sub(r"[^a-z0-9]+", "_", match[2].strip().lower()).strip("_")
            if match[3] is None:
                section = key
                continue
            word = _WORDS.get(f"{section}/{key}") or _WORDS.get(key)
            if word:
                (gpus[-1] if gpus else words).setdefault(word, match[3].strip())
        yield words, gpus


def _host(words: Mapping[str, str], gpus: list[_Words], name: str, facts: Facts) -> Host:
    driver, reported = driver_version(words.get("driver")), cuda_version(words.get("cuda"))
    settled = settled_max_cuda(driver, reported, facts)
    notes = [settled.note] if settled.note else []
    if driver is None:
        notes.append("nvidia-smi gives no usable driver version")
    if reported is None:
        notes.append("nvidia-smi gives no CUDA version; the facts of the driver count")
    cards = []
    for number, gpu in enumerate(gpus):
        if not gpu.get("name") or "ERR!" in gpu["name"]:
            notes.append(f"GPU {number} gives no name and is left out")
            continue
        known = named_gpu(gpu["name"], facts)
        notes += [known.note] if known.note and known.note not in notes else []
        cards.append(_gpu(gpu, known.name, known.compute_capability, known.brand))
    return Host(
        name=name,
        posture="windows" if any(card.driver_model for card in cards) else "linux",
        driver=driver,
        driver_source="nvidia-smi" if driver else None,
        max_cuda=settled.max_cuda,
        max_cuda_source=("nvidia-smi" if not settled.note else "facts") if settled.max_cuda else None,
        gpus=tuple(cards),
        notes=tuple(notes),
    )


def _gpu(words: Mapping[str, str], name: str, capability: str | None, brand: str | None) -> HostGpu:
    memory = re.match(r"(\d{1,9}) *MiB", words.get("memory", ""))
    model = words.get("model", "").lower()
    told = words.get("brand", "").lower().replace(" ", "")
    return HostGpu(
        name=name,
        compute_capability=capability,
        memory_mib=int(memory[1]) if memory else None,
        uuid=words.get("uuid"),
        brand=told if told.isalnum() and told != "unknown" else brand,
        mig=_SWITCH.get(words.get("mig", "").lower()),
        ecc=_SWITCH.get(words.get("ecc", "").lower()),
        driver_model=model if model in ("wddm", "tcc", "mcdm") else None,
    )
