"""Gates that misbehave, for the runner's tests; runs inside the suite, so standard library only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOADED: list[int] = []


def load(options: dict[str, Any]) -> dict[str, Any]:
    """Remember in the worker that it was loaded."""
    LOADED.append(os.getpid())
    return {"worker": os.getpid()}


def well(options: dict[str, Any]) -> dict[str, Any]:
    """Tell where it ran and what the worker had loaded."""
    return {"loaded": list(LOADED), "pid": os.getpid(), "session": os.getsid(0), "options": options}


def raises(options: dict[str, Any]) -> dict[str, Any]:
    """Raise."""
    raise RuntimeError("no kernel image is available")


def exits(options: dict[str, Any]) -> dict[str, Any]:
    """Leave as a library that calls exit() does."""
    sys.exit("driver too old")


def vanishes(options: dict[str, Any]) -> dict[str, Any]:
    """Leave without a word and with success."""
    os._exit(0)


def dies(options: dict[str, Any]) -> dict[str, Any]:
    """Die of the signal named in the options."""
    os.kill(os.getpid(), getattr(signal, options["signal"]))
    time.sleep(30)
    return {}


def hangs(options: dict[str, Any]) -> dict[str, Any]:
    """Hang, with a child that hangs as well and tells its number."""
    child = subprocess.Popen(["sleep", "60"])
    sys.stdout.write(f"child {child.pid}\n")
    sys.stdout.flush()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
    return {}


def shouts(options: dict[str, Any]) -> dict[str, Any]:
    """Print megabytes that are no text."""
    os.write(1, b"first words\n")
    for _ in range(200):
        os.write(1, b"\xff\xfe" * 32768)
    os.write(2, b"\nlast words\n")
    return {"said": True}


def forges(options: dict[str, Any]) -> dict[str, Any]:
    """Print a line that looks like a result."""
    os.write(1, b'@stackbuild@ {"event": "gate", "name": "dies", "outcome": "measured"}' + b"\n")
    return {"honest": True}


def bloats(options: dict[str, Any]) -> dict[str, Any]:
    """Answer with more than anybody wants to read."""
    return {"text": "x" * (9 * 1024 * 1024)}


def reads_input(options: dict[str, Any]) -> dict[str, Any]:
    """Read standard input to its end."""
    return {"read": sys.stdin.read()}


def meets(options: dict[str, Any]) -> dict[str, Any]:
    """Wait until as many gates as the options say have come to the same folder."""
    folder = Path(options["folder"])
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < options["number"]:
        time.sleep(0.02)
    return {"met": options["number"]}


def leaves_child(options: dict[str, Any]) -> dict[str, Any]:
    """Leave a process behind that keeps the output open."""
    subprocess.Popen(["sleep", "60"])
    return {"left": True}
