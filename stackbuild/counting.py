"""Numbers in sentences: one thing, two things."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 file``, ``1,234 files``.

    Args:
        number: How many.
        noun: What, in the singular.
        plural: What, in the plural, where that is not the singular with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def share(number: int, total: int, noun: str) -> str:
    """``all 3 wheels are``, ``the one wheel is``, ``2 of 3 wheels are``: for the middle of a sentence.

    Args:
        number: How many of them.
        total: How many there are.
        noun: What, in the singular.
    """
    if number == total:
        return f"the one {noun} is" if total == 1 else f"all {counted(total, noun)} are"
    return f"{number:,} of {counted(total, noun)} {'is' if number == 1 else 'are'}"
