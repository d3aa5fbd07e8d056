"""Whether a distribution's own top-level modules can be imported, as the image's user."""

from __future__ import annotations

import importlib
import importlib.metadata
import time
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any, Dict, List, Set


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Import every top-level module of ``options["distribution"]``; what it raises is the measurement."""
    modules = top_level_modules(importlib.metadata.distribution(options["distribution"]))
    seconds = {}
    for module in modules:
        began = time.monotonic()
        importlib.import_module(module)
        seconds[module] = round(time.monotonic() - began, 4)
    return {"modules": seconds}


def top_level_modules(distribution: importlib.metadata.Distribution) -> List[str]:
    """Names that ``import`` takes, read from the distribution's list of files.

    Private names, tests shipped by accident, and folders without an ``__init__.py`` are no modules of it.
    """
    names: Set[str] = set()
    for line in (distribution.read_text("RECORD") or "").splitlines():
        parts = line.rsplit(",", 2)[0].strip('"').split("/")
        if len(parts) == 2 and parts[1] == "__init__.py":
            names.add(parts[0])
        elif len(parts) == 1 and parts[0].endswith(".py"):
            names.add(parts[0][: -len(".py")])
        elif len(parts) == 1:
            for suffix in EXTENSION_SUFFIXES:
                if parts[0].endswith(suffix):
                    names.add(parts[0][: -len(suffix)])
                    break
    return sorted(
        name
        for name in names
        if name.isidentifier() and not name.startswith("_") and name not in ("test", "tests", "setup")
    )
