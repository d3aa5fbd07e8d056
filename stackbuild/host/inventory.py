"""The inventory of this machine: its compatibility card."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date

from stackbuild.facts.tables import Facts
from stackbuild.host.container_toolkit import find_toolkit
from stackbuild.host.driver import find_driver
from stackbuild.host.driver_facts import driver_branch
from stackbuild.host.machine import describe_machine
from stackbuild.host.model import Host, Posture
from stackbuild.host.probe import EngineAnswer, Probe
from stackbuild.host.tier import tier
from stackbuild.host.tools import find_tools


def take_inventory(probe: Probe, facts: Facts, today: date) -> Host:
    """Describe this machine. Whatever is missing or broken is unknown and a note, never a failure.

    Args:
        probe: Where to ask.
        facts: The fact tables.
        today: The day, for ends of life.
    """
    known = probe.platform()
    with ThreadPoolExecutor(max_workers=4) as pool:
        asked_engine = pool.submit(probe.engine)
        asked_driver = pool.submit(find_driver, probe, facts)
        asked_tools = pool.submit(find_tools, probe)
        machine = describe_machine(probe, known)
        engine = asked_engine.result()
        toolkit = find_toolkit(probe, engine.info if not engine.remote else None)
        driver, tools = asked_driver.result(), asked_tools.result()
    notes = [*machine.notes, *driver.notes, *toolkit.notes, *_engine_notes(engine), *tools.notes]
    row = driver_branch(driver.version, facts)
    if row is not None and row.eol is not None and row.eol < f"{today:%Y-%m}":
        disputed = f" (also given: {row.eol_note})" if row.eol_note else ""
        notes.append(f"driver branch R{row.branch} reached its end of life in {row.eol}{disputed}")
    posture = _posture(machine.posture, driver.version, probe, notes)
    host = Host(
        name=known.node or "host",
        posture=posture,
        os=machine.os,
        kernel=machine.kernel,
        machine=known.machine or None,
        glibc=machine.glibc,
        firmware=machine.firmware,
        cpu=machine.cpu,
        compiler=tools.compiler,
        python=known.python,
        driver=driver.version,
        driver_source=driver.version_source,
        driver_branch=f"R{row.branch} {row.type}" if row else None,
        driver_end_of_life=row.eol if row else None,
        driver_flavor=driver.flavor,
        max_cuda=driver.max_cuda,
        max_cuda_source=driver.max_cuda_source,
        gpus=driver.gpus,
        toolkit=toolkit.version,
        injection=toolkit.injection if posture in ("linux", "wsl2") else "none",
        docker=engine.info.server_version if engine.info else None,
        runtimes=engine.info.runtimes if engine.info else (),
        nvcc=tools.nvcc,
        profilers=tools.profilers,
        torch=tools.torch,
        onnxruntime=tools.onnxruntime,
    )
    level, reason = tier(host, facts, today)
    return host.model_copy(
        update={"tier": level, "tier_reason": reason or None, "notes": tuple(dict.fromkeys(notes))}
    )


def _engine_notes(engine: EngineAnswer) -> list[str]:
    notes = [engine.problem] if engine.problem else []
    if engine.remote and engine.info is not None:
        notes.append(f"the Docker engine is not on this machine: {engine.remote}")
    return notes


def _posture(posture: Posture, driver: str | None, probe: Probe, notes: list[str]) -> Posture:
    """An AMD GPU makes the posture when there is no NVIDIA driver."""
    if posture != "linux" or not probe.exists("/dev/kfd"):
        return posture
    rocm = (probe.read("/opt/rocm/.info/version") or "").strip()
    notes.append(f"AMD GPU (/dev/kfd), {f'ROCm {rocm}' if rocm else 'no ROCm in /opt/rocm'}")
    return "linux" if driver else "amd"
