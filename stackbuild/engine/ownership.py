"""Who owns what is left in the engine: a label that tells whether its process still lives."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

LABEL = "stackbuild"


def _start_time(pid: int) -> str | None:
    """Start time of a process in clock ticks since boot, None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # proc(5): the second field is the name in brackets and may hold spaces; starttime is field 22.
    return stat.rpartition(")")[2].split()[19]


@cache
def _machine() -> str:
    """This host and its pid namespace and boot, so that a pid means something."""
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        namespace, boot = "unknown", "unknown"
    return f"{socket.gethostname()} {namespace} {boot}"


def owner_label() -> str:
    """The label's value for what this process makes."""
    pid = os.getpid()
    return f"{pid} {_start_time(pid) or 0} {_machine()}"


def owner_is_gone(value: str) -> bool:
    """True when the process that wrote this label ran here and has ended.

    What another machine or pid namespace made is never called gone: its process cannot be seen from here.
    After a reboot all earlier processes of this host are gone.
    """
    pid, _, rest = value.partition(" ")
    started, _, machine = rest.partition(" ")
    if not pid.isdigit() or not machine:
        return False
    if machine != _machine():
        there, here = machine.split(" "), _machine().split(" ")
        return len(there) == 3 and there[:2] == here[:2] and there[2] != here[2]
    return _start_time(int(pid)) != started
