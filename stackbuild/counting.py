"""Numbers in sentences: one thing, two things, and some of many."""

from __future__ import annotations

from collections.abc import Iterable


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


def some_of(names: Iterable[str], most: int, kind: str = "", *, between: str = ", ") -> str:
    """``a, b and 3 more``, ``a, b and 3 more pins``: the names, of many the first.

    Args:
        names: In the order in which they are told.
        most: How many are told.
        kind: What the others are, where that has to be said.
        between: Stands between two names.
    """
    each = list(names)
    others = len(each) - most
    told = between.join(each[:most])
    return f"{told} and {others} more{f' {kind}' if kind else ''}" if others > 0 else told
