"""The known word that a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to ``word``, or None when none is near."""
    import difflib  # only who misspelt a word pays for it

    folded = {known_word.lower(): known_word for known_word in known}
    near = difflib.get_close_matches(word.lower().replace("_", "-"), list(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None
