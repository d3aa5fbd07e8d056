"""``nvidia-smi``'s table, as people paste it: R470, R535, R580 and the R610 wording, Linux, WSL2 and Windows.

The table has no schema, so it is read by what each line must hold: the banner the versions, a GPU's first
line its name and PCI address. Source of the wordings: outputs of the drivers named above; R610 renamed
``Driver Version`` to ``KMD Version`` and ``CUDA Version`` to ``CUDA UMD Version``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stackbuild.facts.tables import Facts
from stackbuild.host.driver_facts import cuda_version, driver_version, settled_max_cuda
from stackbuild.host.gpu_names import named_gpu
from stackbuild.host.model import Host, HostGpu, Posture

_BANNER = re.compile(r"NVIDIA-SMI\s+(\S+)\s+(?:Driver|KMD) Version:\s*(\S+)")
_CUDA = re.compile(r"CUDA (?:UMD )?Version:\s*(\S+)")
_GPU = re.compile(
    r"\|\s*(?P<index>\d+)\s+(?P<name>\S.*?)\s+(?P<mode>On|Off|N/A|ERR!|WDDM|TCC|MCDM)\s*\|"
    r"\s*(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])(?P<rest>.*)"
)
_MEMORY = re.compile(r"/\s*(\d{1,9})MiB")
_MIG = re.compile(r"\|\s*(Enabled|Disabled)\*?\s*\|\s*$")
_LOST = re.compile(r"Unable to determine the device handle.{0,200}")
_WINDOWS_HEADER = re.compile(r"TCC/WDDM|WDDM/TCC|Driver-Model")
_END_OF_GPUS = re.compile(r"MIG devices:|Processes:")
_LONGEST_LINE = 400


@dataclass
class _Table:
    """What one table says, while it is read."""

    tool: str
    driver: str
    cuda: str | None
    gpus: list[HostGpu] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    windows: bool = False


def is_smi_table(text: str) -> bool:
    """True for text with nvidia-smi's banner."""
    return _BANNER.search(text) is not None


def read_smi_table(text: str, name: str, facts: Facts) -> list[Host]:
    """Read pasted ``nvidia-smi`` tables; each banner is a host.

    Args:
        text: One or several tables, with anything around them.
        name: The host's name; several get ``-1``, ``-2`` … behind it.
        facts: The fact tables.
    """
    tables = list(_tables(text.splitlines(), facts))
    several = len(tables) > 1
    return [
        _host(table, f"{name}-{number}" if several else name, facts) for number, table in enumerate(tables, 1)
    ]


def _tables(lines: list[str], facts: Facts) -> Iterator[_Table]:
    table: _Table | None = None
    in_gpus = False
    for long_line in lines:
        line = long_line[:_LONGEST_LINE].rstrip()
        banner = _BANNER.search(line)
        if banner:
            if table is not None:
                yield table
            cuda = _CUDA.search(line)
            table = _Table(banner[1], banner[2], cuda[1] if cuda else None)
            in_gpus = True
        elif table is not None:
            in_gpus = in_gpus and _END_OF_GPUS.search(line) is None
            if in_gpus:
                _read_line(line, table, facts)
    if table is not None:
        yield table


def _read_line(line: str, table: _Table, facts: Facts) -> None:
    if _WINDOWS_HEADER.search(line):
        table.windows = True
    lost = _LOST.search(line)
    if lost:
        table.notes.append(lost[0])
    row = _GPU.search(line)
    if row is not None:
        _read_gpu(row, table, facts)
    elif table.gpus:
        _read_more(line, table)


def _read_gpu(row: re.Match[str], table: _Table, facts: Facts) -> None:
    if "ERR!" in row["name"]:
        table.notes.append(f"GPU {row['index']} at {row['bus']} answers ERR! and is left out")
        return
    known = named_gpu(row["name"], facts)
    if known.note and known.note not in table.notes:
        table.notes.append(known.note)
    mode = row["mode"]
    last = row["rest"].strip(" |").rpartition("|")[2].strip()
    table.gpus.append(
        HostGpu(
            name=known.name,
            compute_capability=known.compute_capability,
            brand=known.brand,
            # The column holds the count of errors where ECC is on, On under MIG, Off, or N/A where there is none.
            ecc=True if last == "On" or last.isdigit() else False if last == "Off" else None,
            driver_model={"WDDM": "wddm", "TCC": "tcc", "MCDM": "mcdm"}.get(mode),
        )
    )


def _read_more(line: str, table: _Table) -> None:
    """Memory and MIG mode stand in the lines under a GPU's first."""
    memory, mig = _MEMORY.search(line), _MIG.search(line)
    update: dict[str, object] = {}
    if memory and table.gpus[-1].memory_mib is None:
        update["memory_mib"] = int(memory[1])
    if mig and table.gpus[-1].mig is None:
        update["mig"] = mig[1] == "Enabled"
    if update:
        table.gpus[-1] = table.gpus[-1].model_copy(update=update)


def _host(table: _Table, name: str, facts: Facts) -> Host:
    driver, reported = driver_version(table.driver), cuda_version(table.cuda)
    settled = settled_max_cuda(driver, reported, facts)
    notes = [*table.notes, *([settled.note] if settled.note else [])]
    if driver is None:
        notes.append(f"nvidia-smi gives no usable driver version ({table.driver})")
    if reported is None:
        notes.append(
            f"nvidia-smi gives no CUDA version ({table.cuda or 'none'}); the facts of the driver count"
        )
    posture: Posture = "linux"
    if table.windows or any(gpu.driver_model for gpu in table.gpus):
        posture = "windows"
        notes.append(
            "the table is Windows' own; containers there run in WSL2, where nvidia-smi prints another"
        )
    elif driver is not None and driver_version(table.tool) and table.tool != driver:
        # On Linux a tool that is not the driver's refuses to run; in WSL2 the driver is Windows'.
        posture = "wsl2"
        notes.append(f"nvidia-smi {table.tool} talks to driver {driver}: this is WSL2 on that Windows driver")
    return Host(
        name=name,
        posture=posture,
        driver=driver,
        driver_source="nvidia-smi" if driver else None,
        max_cuda=settled.max_cuda,
        max_cuda_source=("nvidia-smi" if not settled.note else "facts") if settled.max_cuda else None,
        gpus=tuple(table.gpus),
        notes=tuple(notes),
    )
