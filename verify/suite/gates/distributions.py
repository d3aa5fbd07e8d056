"""What is installed, by the metadata that every Python tool in the image reads."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from typing import Any, Dict, List

# Byte-code is made in a layer of its own and may be left out; its absence is no missing file.
BYTECODE = (".pyc", ".pyo")
# A broken distribution can miss thousands of files; a few names are evidence enough.
NAMES_SHOWN = 5


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """List every distribution on the path with version, requirements and missing files; takes no options."""
    del options
    return {
        "distributions": [_describe(found) for found in importlib.metadata.distributions()],
        "markers": _marker_environment(),
    }


def normalised(name: str) -> str:
    """A project name as the packaging specifications compare it ("Name normalization", formerly PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _describe(found: importlib.metadata.Distribution) -> Dict[str, Any]:
    metadata = found.metadata
    missing = _missing_files(found)
    return {
        "name": normalised(metadata["Name"] or ""),
        "version": metadata["Version"] or "",
        "requires": list(found.requires or ()),
        "location": str(found.locate_file("")),
        "missing_files": len(missing),
        "missing": missing[:NAMES_SHOWN],
    }


def _missing_files(found: importlib.metadata.Distribution) -> List[str]:
    # read_text and one stat per line: `found.files` builds an object per file, ten times as slow.
    record = found.read_text("RECORD")
    if not record:
        return []
    root = str(found.locate_file("")).rstrip("/") + "/"
    missing = []
    for line in record.splitlines():
        path = line.rsplit(",", 2)[0].strip('"')
        if path and not path.endswith(BYTECODE) and not os.path.lexists(root + path):
            missing.append(path)
    return missing


def _marker_environment() -> Dict[str, str]:
    """The variables of "Dependency specifiers" (formerly PEP 508) for this interpreter."""
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": "%d.%d.%d" % sys.implementation.version[:3],
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    }
