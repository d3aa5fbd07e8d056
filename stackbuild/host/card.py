"""The compatibility card as text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date

from stackbuild.compat.subject import Compatibility
from stackbuild.compat.variants import Choice, newest_fitting
from stackbuild.facts.tables import Facts
from stackbuild.host.driver_facts import driver_branch
from stackbuild.host.model import Host, HostGpu
from stackbuild.host.offer import host_offer
from stackbuild.host.tier import NAMES
from stackbuild.sizes import size_text

_SWITCH = {True: "on", False: "off"}


def render_card(host: Host, facts: Facts, today: date) -> str:
    """A host's card in sections: machine, driver, GPUs, containers, tools, what it can run, notes.

    Args:
        host: The card.
        facts: The fact tables, for what it can run.
        today: The day, for ends of life.
    """
    title = f"{host.name}: tier {host.tier} of 5, {NAMES[host.tier]}" if host.tier else host.name
    sections = [
        ("Machine", list(_machine(host))),
        ("Driver", list(_driver(host, facts, today))),
        ("GPUs", list(_gpus(host.gpus))),
        ("Containers", list(_containers(host))),
        ("Tools", list(_tools(host))),
        ("Can run", list(_can_run(host, facts))),
        ("Notes", [("-", note) for note in host.notes]),
    ]
    lines = [title]
    if host.tier_reason:
        lines.append(f"Next tier: {host.tier_reason}.")
    for heading, rows in sections:
        if rows:
            width = 0 if heading == "Notes" else 14
            lines += ["", heading, *(f"  {label:<{width}} {value}" for label, value in rows)]
    return "\n".join(lines) + "\n"


def render_cards(hosts: Iterable[Host], facts: Facts, today: date) -> str:
    """Several cards, a blank line between them."""
    return "\n".join(render_card(host, facts, today) for host in hosts)


_Rows = Iterator[tuple[str, str]]


def _machine(host: Host) -> _Rows:
    place = {"wsl2": "WSL2", "amd": "AMD GPU"}.get(host.posture)
    yield "system", ", ".join(part for part in (host.os, place, host.machine) if part) or "unknown"
    for label, value in (
        ("kernel", host.kernel),
        ("glibc", host.glibc),
        ("firmware", host.firmware),
        ("CPU", host.cpu),
    ):
        if value:
            yield label, value


def _absent(host: Host) -> str:
    """Only an inventory, which gives a tier, has looked for what is not in the card."""
    return "unknown" if host.tier is None else "not found"


def _driver(host: Host, facts: Facts, today: date) -> _Rows:
    if host.driver is None:
        yield "NVIDIA driver", _absent(host)
        return
    flavor = f", {host.driver_flavor} kernel module" if host.driver_flavor in ("open", "proprietary") else ""
    yield "NVIDIA driver", f"{host.driver}{flavor}{_from(host.driver_source)}"
    row = driver_branch(host.driver, facts)
    if row is not None:
        past = " (past)" if row.eol and row.eol < f"{today:%Y-%m}" else ""
        yield "branch", f"R{row.branch} {row.type}, end of life {row.eol or 'not announced'}{past}"
    yield "CUDA maximum", f"{host.max_cuda}{_from(host.max_cuda_source)}" if host.max_cuda else "unknown"


def _from(source: str | None) -> str:
    return f" (from {source})" if source else ""


def _gpus(gpus: tuple[HostGpu, ...]) -> _Rows:
    for gpu, count in Counter(gpu.model_copy(update={"uuid": None}) for gpu in gpus).items():
        facts = [
            gpu.name,
            f"compute capability {gpu.compute_capability or 'unknown'}",
            *([size_text(gpu.memory_mib << 20)] if gpu.memory_mib else []),
            *([f"MIG {_SWITCH[gpu.mig]}"] if gpu.mig is not None else []),
            *([f"ECC {_SWITCH[gpu.ecc]}"] if gpu.ecc is not None else []),
            *([gpu.driver_model.upper()] if gpu.driver_model else []),
            *([f"brand {gpu.brand}"] if gpu.brand else []),
        ]
        yield f"{count} ×", ", ".join(facts)


def _containers(host: Host) -> _Rows:
    runtimes = f", runtimes {', '.join(host.runtimes)}" if host.runtimes else ""
    yield "Docker", f"{host.docker}{runtimes}" if host.docker else _absent(host)
    yield "toolkit", host.toolkit or _absent(host)
    if host.injection:
        yield "injection", host.injection


def _tools(host: Host) -> _Rows:
    for label, value in (
        ("Python", host.python),
        ("compiler", host.compiler),
        ("nvcc", host.nvcc),
        *sorted(host.profilers.items()),
        ("torch", host.torch),
        ("ONNX Runtime", host.onnxruntime),
    ):
        if value:
            yield label, value


def _can_run(host: Host, facts: Facts) -> _Rows:
    if host.posture not in ("linux", "wsl2") or host.driver is None:
        yield (
            "images",
            {
                "macos": "CPU images; MPS or MLX outside of containers",
                "amd": "CPU images; ROCm builds of the frameworks",
                "windows": "GPU images inside WSL2 only",
            }.get(host.posture, "CPU images"),
        )
        return
    offer = host_offer(host, facts)
    native, minor = (newest_fitting(offer, how, facts) for how in _ways())
    yield "native", _choice(native) if native else "no torch build of the facts"
    if minor is not None and (native is None or _newer(minor, native)):
        yield "minor-version", f"{_choice(minor)}, with compatibility: minor in the target"


def _ways() -> tuple[Compatibility, ...]:
    return "native", "minor"


def _newer(one: Choice, other: Choice) -> bool:
    return (one.torch, one.variant, one.base_cuda) != (other.torch, other.variant, other.base_cuda)


def _choice(choice: Choice) -> str:
    base = f", bases up to CUDA {choice.base_cuda}" if choice.base_cuda else ""
    return f"torch {choice.torch}, {choice.variant}{base}"
