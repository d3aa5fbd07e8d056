"""Sizes for people, in one unit everywhere."""

from __future__ import annotations

_LARGER = ("kB", "MB", "GB", "TB")


def size_text(count: float) -> str:
    """A number of bytes for people: ``512 B``, ``1.5 kB``, ``67.1 MB``, ``151 GB``.

    In multiples of 1000 with two or three digits, as ``docker images`` writes them (docker/go-units,
    HumanSizeWithPrecision): of files and of memory alike, which nvidia-smi writes in MiB.
    """
    size, unit = float(count), "B"
    for larger in _LARGER:
        if round(size) < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.1f} {unit}" if unit != "B" and size < 99.95 else f"{size:.0f} {unit}"
