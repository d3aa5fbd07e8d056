"""Reading hosts from what teams have; the content says what it is."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from stackbuild.errors import StackbuildError, UsageError
from stackbuild.facts.tables import Facts
from stackbuild.host.documents import UNDERSTOOD, parse_json, parse_yaml
from stackbuild.host.kubernetes import is_kubernetes, read_kubernetes
from stackbuild.host.model import Host
from stackbuild.host.slurm import is_scontrol, is_sinfo, read_scontrol, read_sinfo
from stackbuild.host.smi_list import is_smi_csv, is_smi_list, read_smi_csv, read_smi_list
from stackbuild.host.smi_report import is_smi_report, read_smi_report
from stackbuild.host.smi_table import is_smi_table, read_smi_table
from stackbuild.host.written import is_written, read_written
from stackbuild.sizes import size_text

_MAX_BYTES = 250_000_000  # the nodes of the largest clusters, as kubectl prints them
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_FAILED = re.compile(
    r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"
    r"|Failed to initialize NVML: [^\n]{1,100}|nvidia-smi: (?:command )?not found|No devices were found"
)


def read_hosts(path: Path) -> tuple[Host, ...]:
    """The hosts that a file describes, in its order, each with a name of its own.

    Args:
        path: The file; ``-`` is standard input.

    Raises:
        UsageError: ``host-unreadable``: the file cannot be read or is nothing that is understood;
            ``host-invalid``: it describes hosts, wrongly.
    """
    shown = "standard input" if str(path) == "-" else str(path)
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with path.open("rb") as stream:
                content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"The file cannot be read: {error.strerror}.", code="host-unreadable", where=shown
        ) from error
    try:
        return hosts_in(_text(content), "host" if str(path) == "-" else path.stem)
    except StackbuildError as error:
        error.where = error.where or shown
        raise


def hosts_in(text: str, name: str = "host", facts: Facts | None = None) -> tuple[Host, ...]:
    """The hosts that a text describes.

    Args:
        text: In any of the formats of docs/hosts.md.
        name: For hosts that the text does not name.
        facts: The fact tables; those shipped when None.

    Raises:
        UsageError: ``host-unreadable`` or ``host-invalid``.
    """
    facts = facts or Facts()
    hosts = _recognised(text, name, facts)
    if not hosts:
        raise UsageError("There is no host in it.", code="host-unreadable", do=UNDERSTOOD)
    return _with_own_names(hosts)


def _recognised(text: str, name: str, facts: Facts) -> Sequence[Host]:
    if text.lstrip()[:1] in ("{", "["):
        document = parse_json(text)
        if is_kubernetes(document):
            return _with_gpus(read_kubernetes(document, facts))
        return read_written(document, name, facts)
    if is_smi_report(text):
        return read_smi_report(text, name, facts)
    if is_smi_table(text):
        return read_smi_table(text, name, facts)
    if is_smi_list(text):
        return read_smi_list(text, name, facts)
    if is_scontrol(text):
        return _with_gpus(read_scontrol(text, facts))
    if is_sinfo(text):
        return _with_gpus(read_sinfo(text, facts))
    if is_smi_csv(text):
        return read_smi_csv(text, name, facts)
    failure = _FAILED.search(text)
    if failure:
        raise UsageError(
            f"nvidia-smi itself failed on that host: {failure[0]}.",
            code="host-unreadable",
            do="Mend the driver there first ('stackbuild host' on it says more), or give --driver and --gpu.",
        )
    document = parse_yaml(text)
    if is_kubernetes(document):
        return _with_gpus(read_kubernetes(document, facts))
    if is_written(document):
        return read_written(document, name, facts)
    raise UsageError("This describes no host that is understood.", code="host-unreadable", do=UNDERSTOOD)


def _text(content: bytes) -> str:
    """The content as text; Windows' shell writes UTF-16, and terminals leave bytes that are no UTF-8."""
    if len(content) > _MAX_BYTES:
        raise UsageError(
            f"The file has more than {size_text(_MAX_BYTES)}.", code="host-unreadable", do=UNDERSTOOD
        )
    encoding = "utf-16" if content[:2] in _UTF16 else "utf-8-sig"
    text = content.decode(encoding, errors="replace")
    if "\0" in text:
        raise UsageError("The file is binary.", code="host-unreadable", do=UNDERSTOOD)
    return text.replace("\r\n", "\n")


def _with_gpus(hosts: Sequence[Host]) -> Sequence[Host]:
    """A cluster's hosts with a GPU, or all when none has: login and control nodes run no GPU stacks."""
    with_gpus = [
        host for host in hosts if host.gpus or host.driver or any("GPUs" in note for note in host.notes)
    ]
    return with_gpus or hosts


def _with_own_names(hosts: Sequence[Host]) -> tuple[Host, ...]:
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    named = []
    for host in hosts:
        name = host.name
        while name in taken:
            numbers[host.name] += 1
            name = f"{host.name} ({numbers[host.name] + 1})"
        taken.add(name)
        named.append(host if name == host.name else host.model_copy(update={"name": name}))
    return tuple(named)
