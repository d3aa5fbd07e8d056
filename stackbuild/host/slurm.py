"""Slurm's node output: ``scontrol show node`` and ``sinfo -N -o "%N %G"``.

Slurm knows what the administrator wrote as Gres: a count and, often, a type. It knows no driver. Source:
scontrol(1), sinfo(1), gres.conf(5): ``gpu[:type]:count[(S:sockets)]``, comma-separated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackbuild.errors import UsageError
from stackbuild.facts.tables import Facts
from stackbuild.host.documents import filled_lines
from stackbuild.host.gpu_names import named_gpu, without_mig_profile
from stackbuild.host.model import Host, HostGpu

_NODE = re.compile(r"^[ \t]*NodeName=(\S+)", re.MULTILINE)
_FIELD = re.compile(r"(?:^|\s)(Gres|Arch|OS)=(.*?)(?=\s+[A-Z][A-Za-z_]{1,40}=|\s*\n|\s*$)")
_GRES = re.compile(r"gpu(?::(?P<type>[A-Za-z][\w.+-]*))?(?::(?P<count>\d{1,4}))?(?=[(,]|$)")
_HEADER = re.compile(
    r"(?:NODELIST|HOSTNAMES|NODEHOST)\b.*\bGRES\b|\bGRES\b.*\b(?:NODELIST|HOSTNAMES|NODEHOST)"
)
_ROW_WITHOUT_HEADER = re.compile(r"\s*\S+\s+(?:gpu:\S+|\(null\))\s*")
_RANGE = re.compile(r"(.*?)\[([0-9,-]+)\](.*)")
_MOST_NODES = 100_000
_LONGEST_LINE = 10_000
_NO_DRIVER = "Slurm does not know the driver: add it in a host file, or give --driver"


def is_scontrol(text: str) -> bool:
    """True for the output of ``scontrol show node``."""
    return _NODE.search(text) is not None


def is_sinfo(text: str) -> bool:
    """True for the output of ``sinfo`` with nodes and generic resources."""
    lines = filled_lines(text, _LONGEST_LINE)[:50]
    rows = [line for line in lines if _ROW_WITHOUT_HEADER.fullmatch(line)]
    return any(_HEADER.search(line) for line in lines) or (
        bool(rows) and len(rows) == len(lines) and any("gpu:" in row for row in rows)
    )


def read_scontrol(text: str, facts: Facts) -> list[Host]:
    """Read ``scontrol show node``, in lines or with ``-o``."""
    starts = [match.start() for match in _NODE.finditer(text)]
    hosts = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        record = re.sub(r"[ \t]+", " ", text[start : min(end, start + _LONGEST_LINE)])
        fields = {key: value.strip() for key, value in _FIELD.findall(record)}
        name = _NODE.search(record)
        kernel = re.match(r"Linux (\S+)", fields.get("OS", ""))
        hosts.append(
            _host(
                name[1] if name else "node",
                fields.get("Gres", ""),
                facts,
                machine=fields.get("Arch"),
                kernel=kernel[1] if kernel else None,
            )
        )
    return hosts


def read_sinfo(text: str, facts: Facts) -> list[Host]:
    """Read ``sinfo -N -o "%N %G"``, with or without its header; a node in several partitions counts once.

    Raises:
        UsageError: ``host-unreadable``: more nodes than any cluster has.
    """
    node_column, gres_column = 0, 1
    found: dict[str, str] = {}
    for line in filled_lines(text, _LONGEST_LINE):
        words = line.replace("|", " ").split()
        if _HEADER.search(line):
            gres_column = words.index("GRES") if "GRES" in words else 1
            node_column = next(
                (words.index(word) for word in ("NODELIST", "HOSTNAMES", "NODEHOST") if word in words), 0
            )
        elif len(words) > max(node_column, gres_column):
            for node in _nodes(words[node_column]):
                found.setdefault(node, words[gres_column])
                if len(found) > _MOST_NODES:
                    raise UsageError(
                        f"sinfo names more than {_MOST_NODES} nodes.",
                        code="host-unreadable",
                        do="Give fewer nodes at a time.",
                    )
    return [_host(node, gres, facts) for node, gres in found.items()]


def _nodes(expression: str) -> Iterator[str]:
    """``gpu[01-03,7]`` as the nodes it stands for; what is no such expression is one node."""
    match = _RANGE.fullmatch(expression)
    if match is None or "[" in match[3]:
        yield expression
        return
    for part in match[2].split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit() or len(first) > 9 or len(last) > 9:
            continue
        for number in range(int(first), int(last or first) + 1):
            yield f"{match[1]}{number:0{len(first)}}{match[3]}"


def _host(
    name: str, gres: str, facts: Facts, *, machine: str | None = None, kernel: str | None = None
) -> Host:
    gpus: list[HostGpu] = []
    notes: list[str] = []
    for match in _GRES.finditer(gres):
        if match.start() and gres[match.start() - 1] not in ",":
            continue
        count = int(match["count"] or 1)
        if not match["type"]:
            notes.append(f"{count} GPUs without a type: Slurm does not know which they are")
            continue
        written, profile = without_mig_profile(match["type"])
        known = named_gpu(written, facts)
        if known.compute_capability is None:
            notes.append(known.note)
        if profile:
            notes.append(f"{count} MIG devices {profile} of {known.name}")
        gpus += [
            HostGpu(
                name=known.name,
                compute_capability=known.compute_capability,
                brand=known.brand,
                mig=True if profile else None,
            )
        ] * count
    return Host(
        name=name,
        machine=machine if machine in ("x86_64", "aarch64") else None,
        kernel=kernel,
        gpus=tuple(gpus),
        notes=tuple(dict.fromkeys([*notes, _NO_DRIVER])),
    )
