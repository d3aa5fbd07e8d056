"""``nvidia-smi -L`` and ``nvidia-smi --query-gpu=… --format=csv``."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping

from stackbuild.facts.tables import Facts
from stackbuild.host.documents import filled_lines
from stackbuild.host.driver_facts import cuda_version, driver_version, settled_max_cuda
from stackbuild.host.gpu_names import named_gpu
from stackbuild.host.model import Host, HostGpu

_LISTED = re.compile(r"^\s*GPU (\d+): (.{1,120}?)(?: \(UUID: (GPU-[0-9A-Za-z-]{1,64})\))?\s*$")
_LISTED_MIG = re.compile(r"^\s+MIG \S+\s+Device\s+\d+:")
_HOST_COLUMNS = ("host", "hostname", "node", "nodename")
_GPU_COLUMNS = frozenset(
    {
        "name",
        "gpu_name",
        "driver_version",
        "memory.total",
        "compute_cap",
        "uuid",
        "gpu_uuid",
        "mig.mode.current",
        "ecc.mode.current",
        "driver_model.current",
        "cuda_version",
        "pci.bus_id",
        "index",
        "count",
    }
)
_SWITCH = {"enabled": True, "disabled": False}
_LONGEST_LINE = 2000


def is_smi_list(text: str) -> bool:
    """True for the output of ``nvidia-smi -L``."""
    return any(_LISTED.match(line) for line in text.splitlines()[:200] if len(line) <= _LONGEST_LINE)


def read_smi_list(text: str, name: str, facts: Facts) -> list[Host]:
    """Read the output of ``nvidia-smi -L``: the GPUs of one host; it says nothing of the driver."""
    gpus: list[HostGpu] = []
    notes = ["nvidia-smi -L names GPUs only: the driver is unknown"]
    for line in text.splitlines():
        if len(line) > _LONGEST_LINE:
            continue
        listed = _LISTED.match(line)
        if listed:
            gpus.append(_card(listed[2], {"uuid": listed[3] or ""}, notes, facts))
        elif gpus and _LISTED_MIG.match(line):
            gpus[-1] = gpus[-1].model_copy(update={"mig": True})
    return [Host(name=name, gpus=tuple(gpus), notes=tuple(notes))]


def is_smi_csv(text: str) -> bool:
    """True for CSV whose header has the fields of ``nvidia-smi --help-query-gpu``."""
    return len(_GPU_COLUMNS & set(_header(text))) >= 1 and (
        "name" in _header(text) or "gpu_name" in _header(text) or "driver_version" in _header(text)
    )


def read_smi_csv(text: str, name: str, facts: Facts) -> list[Host]:
    """Read ``nvidia-smi --query-gpu=… --format=csv``; the header decides what each column is.

    A column ``host``, ``hostname`` or ``node``, as a loop over machines adds it, makes several hosts.
    """
    columns = _header(text)
    rows: dict[str, list[dict[str, str]]] = {}
    for values in csv.reader(filled_lines(text, _LONGEST_LINE)[1:], skipinitialspace=True):
        row = dict(zip(columns, (value.strip() for value in values), strict=False))
        if [*row.values()] == columns or not any(row.values()):
            continue  # a header again, from the next machine of a loop
        host = next((row[column] for column in _HOST_COLUMNS if row.get(column)), name)
        rows.setdefault(host, []).append(row)
    return [_host(host, members, facts) for host, members in rows.items()] or [_host(name, [], facts)]


def _header(text: str) -> list[str]:
    lines = filled_lines(text[:_LONGEST_LINE], _LONGEST_LINE)
    if not lines:
        return []
    return [re.sub(r"\s*\[.*?\]$", "", column.strip().lower()) for column in lines[0].split(",")]


def _host(name: str, rows: list[dict[str, str]], facts: Facts) -> Host:
    notes: list[str] = []
    driver = next((found for row in rows if (found := driver_version(row.get("driver_version")))), None)
    reported = next((found for row in rows if (found := cuda_version(row.get("cuda_version")))), None)
    settled = settled_max_cuda(driver, reported, facts)
    notes += [settled.note] if settled.note else []
    if driver is None:
        notes.append("the columns give no driver version: query driver_version as well")
    gpus = []
    for row in rows:
        written = row.get("name") or row.get("gpu_name") or ""
        if written and not written.startswith("["):
            gpus.append(_card(written, row, notes, facts))
    return Host(
        name=name,
        posture="windows" if any(gpu.driver_model for gpu in gpus) else "linux",
        driver=driver,
        driver_source="nvidia-smi" if driver else None,
        max_cuda=settled.max_cuda,
        max_cuda_source="nvidia-smi" if settled.max_cuda else None,
        gpus=tuple(gpus),
        notes=tuple(notes),
    )


def _card(written: str, row: Mapping[str, str], notes: list[str], facts: Facts) -> HostGpu:
    known = named_gpu(written, facts)
    if known.note and known.note not in notes:
        notes.append(known.note)
    memory = re.match(r"\d{1,9}", row.get("memory.total", ""))
    capability = row.get("compute_cap", "")
    model = row.get("driver_model.current", "").lower()
    uuid = row.get("uuid") or row.get("gpu_uuid") or ""
    return HostGpu(
        name=known.name,
        compute_capability=capability
        if re.fullmatch(r"[0-9]{1,2}\.[0-9]", capability)
        else known.compute_capability,
        memory_mib=int(memory[0]) if memory else None,
        uuid=uuid if uuid and not uuid.startswith("[") else None,
        brand=known.brand,
        mig=_SWITCH.get(row.get("mig.mode.current", "").lower()),
        ecc=_SWITCH.get(row.get("ecc.mode.current", "").lower()),
        driver_model=model if model in ("wddm", "tcc", "mcdm") else None,
    )
