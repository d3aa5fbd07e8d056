"""Which installed distribution a mapped CUDA library belongs to, and which ships one of the same name."""

from __future__ import annotations

import importlib.metadata
import os
import re
from typing import Any, Dict, Iterator, List, Tuple

from suite.process_maps import CUDA_LIBRARIES, mapped_libraries

# Distributions that carry CUDA libraries; the lists of files of all others need not be read.
CARRIERS = re.compile(r"^(nvidia[-_].*|torch|tensorrt.*|onnxruntime[-_]gpu|cudnn.*)$", re.I)


def stem(path: str) -> str:
    """``libcudnn`` of ``/usr/lib/libcudnn.so.9.1``."""
    return path.rsplit("/", 1)[-1].split(".so")[0]


def mapped_with_owners() -> List[Dict[str, Any]]:
    """Every CUDA library mapped in this process: its file, the distribution it belongs to, and those that ship it.

    ``owner`` is ``[name, version]`` or None for a file of no distribution; ``shipped_by`` lists the
    distributions that have a library of the same stem, wherever the mapped one comes from.
    """
    shipped: Dict[str, List[Tuple[str, str]]] = {}
    owners: Dict[str, Tuple[str, str]] = {}
    for path, owner in _carried():
        owners[os.path.realpath(path)] = owner
        known = shipped.setdefault(stem(path), [])
        if owner not in known:
            known.append(owner)
    return [
        {
            "path": path,
            "file": os.path.realpath(path),
            "owner": list(owners[os.path.realpath(path)]) if os.path.realpath(path) in owners else None,
            "shipped_by": [list(owner) for owner in shipped.get(stem(path), [])],
        }
        for path in mapped_libraries()
    ]


def _carried() -> Iterator[Tuple[str, Tuple[str, str]]]:
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if not CARRIERS.match(name):
            continue
        owner = (re.sub(r"[-_.]+", "-", name).lower(), distribution.metadata["Version"] or "")
        for line in (distribution.read_text("RECORD") or "").splitlines():
            file = line.rsplit(",", 2)[0].strip('"')
            if file.rsplit("/", 1)[-1].startswith(CUDA_LIBRARIES):
                yield str(distribution.locate_file(file)), owner
