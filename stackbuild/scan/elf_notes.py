"""Notes in ELF files (gABI chapter 5, "Note Section"), and what NVIDIA writes in one."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from stackbuild.scan.byte_source import ByteSource

_LARGEST = 1 << 20
_CUDA_VERSION = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){1,2}")


@dataclass(frozen=True, slots=True)
class CompatNote:
    """What a cuda-compat libcuda says of itself (note ``.note.cuda.fwd_compatibility``).

    Source: NVIDIA Container Toolkit 1.19, cmd/nvidia-cdi-hook/cudacompat: the note's description is JSON.

    Attributes:
        cuda: The CUDA level it gives, for example ``13.1``; empty when it does not say.
        drivers: Branches of host drivers it may be used with.
    """

    cuda: str
    drivers: tuple[int, ...]


def notes(source: ByteSource, offset: int, size: int, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    """The notes in a range of a file: name, type, description; a note that leaves the range ends it.

    Args:
        source: The file.
        offset: Where the notes begin.
        size: Their bytes.
        order: Byte order as ``struct`` writes it.
    """
    layout = struct.Struct(order + "III")
    data = source.read_up_to(offset, min(size, _LARGEST))
    at = 0
    while at + layout.size <= len(data):
        name_size, size_of_description, kind = layout.unpack_from(data, at)
        name_at = at + layout.size
        description_at = name_at + _aligned(name_size)
        end = description_at + size_of_description
        if end > len(data):
            return
        yield data[name_at : name_at + name_size].rstrip(b"\0"), kind, data[description_at:end]
        at = description_at + _aligned(size_of_description)


def _aligned(size: int) -> int:
    return (size + 3) & ~3


def compat_note(description: bytes) -> CompatNote:
    """The note's description as what it says; empty where it is malformed."""
    try:
        value = json.loads(description.strip(b"\0").decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return CompatNote("", ())
    cuda, drivers = value.get("CUDA Version"), value.get("Driver")
    listed = drivers if isinstance(drivers, list) else []
    return CompatNote(
        cuda if isinstance(cuda, str) and _CUDA_VERSION.fullmatch(cuda) else "",
        tuple(item for item in listed if isinstance(item, int) and not isinstance(item, bool)),
    )
