"""Hosts as stackbuild writes them and as people do: JSON or YAML, one card, a list, or ``hosts:`` with a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from stackbuild.errors import UsageError
from stackbuild.facts.tables import Facts
from stackbuild.host.driver_facts import settled_max_cuda
from stackbuild.host.gpu_names import named_gpu
from stackbuild.host.model import Host

_SHOWN_PROBLEMS = 8
_MOST_GPUS = 1024


def is_written(document: Any) -> bool:
    """True for what can be a host, a list of hosts, or a mapping with ``hosts``."""
    if isinstance(document, Mapping):
        return bool(document)
    return isinstance(document, list) and bool(document) and all(isinstance(x, Mapping) for x in document)


def read_written(document: Any, name: str, facts: Facts) -> list[Host]:
    """Read hosts from a parsed document.

    A GPU may be a name alone, and a mapping may have ``count``. What a card leaves out stays unknown.

    Args:
        document: A mapping or a list of mappings; numbers as the texts they were written as.
        name: Name of a host that has none.
        facts: The fact tables.

    Raises:
        UsageError: ``host-invalid``, with every problem and where it is.
    """
    if isinstance(document, Mapping) and "hosts" in document:
        extra = sorted(str(key) for key in document if key not in ("hosts", "schema"))
        if extra:
            raise _invalid([f"{key}: unknown beside hosts" for key in extra])
        cards, several = document["hosts"], True
    else:
        cards, several = document, isinstance(document, list)
    if not isinstance(cards, list):
        cards = [cards]
    hosts, problems = [], []
    for number, card in enumerate(cards):
        where = f"hosts[{number}]" if several else ""
        if not isinstance(card, Mapping):
            problems.append(f"{where or 'the file'}: a host is a mapping of keys to values")
            continue
        named = {"name": f"{name}-{number + 1}" if several and len(cards) > 1 else name, **_plain(card)}
        try:
            hosts.append(_known(Host.model_validate(named), facts))
        except ValidationError as error:
            problems += [_sentence(where, detail) for detail in error.errors()]
    if problems:
        raise _invalid(problems)
    return hosts


def _invalid(problems: list[str]) -> UsageError:
    more = len(problems) - _SHOWN_PROBLEMS
    shown = [*problems[:_SHOWN_PROBLEMS], *([f"and {more} more"] if more > 0 else [])]
    return UsageError(
        "The file does not describe hosts.",
        code="host-invalid",
        detail="\n".join(shown),
        do="'stackbuild host --format json' writes one to start from; docs/hosts.md lists the keys.",
    )


def _sentence(where: str, detail: Any) -> str:
    path = where
    for step in detail["loc"]:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    if detail["type"] == "extra_forbidden":
        return f"{path}: unknown key"
    return f"{path}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _plain(card: Mapping[Any, Any]) -> dict[str, Any]:
    """The card with its GPUs spelled out and the schema's number as a number."""
    plain = {str(key): value for key, value in card.items() if value is not None}
    if plain.get("schema") == "1":
        plain["schema"] = 1
    gpus = plain.get("gpus")
    if isinstance(gpus, str):
        gpus = [gpus]
    if isinstance(gpus, list):
        plain["gpus"] = [gpu for written in gpus for gpu in _gpus(written)]
    return plain


def _gpus(written: Any) -> list[Any]:
    if isinstance(written, str):
        return [{"name": written}]
    if isinstance(written, Mapping) and "count" in written:
        count = str(written["count"])
        rest = {key: value for key, value in written.items() if key != "count"}
        if count.isdecimal() and 1 <= len(count) <= 4 and 1 <= int(count) <= _MOST_GPUS:
            return [rest] * int(count)
    return [written]


def _known(host: Host, facts: Facts) -> Host:
    """The host with the compute capability of GPUs that name it only, and a maximum that is the driver's own."""
    gpus, notes = [], list(host.notes)
    for gpu in host.gpus:
        if gpu.compute_capability is not None:
            gpus.append(gpu)
            continue
        known = named_gpu(gpu.name, facts)
        if known.compute_capability is None and known.note not in notes:
            notes.append(known.note)
        brand = gpu.brand or known.brand
        gpus.append(
            gpu.model_copy(
                update={
                    "name": known.name,
                    "compute_capability": known.compute_capability,
                    "brand": brand,
                }
            )
        )
    settled = settled_max_cuda(host.driver, host.max_cuda, facts)
    if settled.note and settled.note not in notes:
        notes.append(settled.note)
    return host.model_copy(update={"gpus": tuple(gpus), "max_cuda": settled.max_cuda, "notes": tuple(notes)})
