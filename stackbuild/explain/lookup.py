"""What a code means, and which codes or failures an unknown text is near to."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from stackbuild.facts.tables import Facts
from stackbuild.gates.pages import gate_pages

_CODE = re.compile(r"\[?([a-z0-9]+(?:-[a-z0-9]+)*)\]?")
_MOST_NEAR = 3
_LONGEST_COMPARED = 300  # characters of a line; comparing is quadratic
_MOST_COMPARED = 20  # lines


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a person should know of one code.

    Attributes:
        code: The stable code.
        title: A few words.
        meaning: What it says and why it matters.
        evidence: What is measured, or what to collect.
        next_step: What to do.
        texts: Error texts of other programs that mean the same.
    """

    code: str
    title: str
    meaning: str
    evidence: str
    next_step: str
    texts: tuple[str, ...] = ()


def as_code(text: str) -> str | None:
    """The text as a code when it has the form of one (brackets around it are allowed), else None."""
    match = _CODE.fullmatch(text.strip())
    return match[1] if match else None


def known_codes(facts: Facts) -> tuple[str, ...]:
    """Every code that can be explained: those of gates and errors, then those of the failure catalog alone."""
    catalog = (row.code for row in facts.table("failure_signatures").rows)
    return tuple(dict.fromkeys((*gate_pages(), *catalog)))


def explanation(code: str, facts: Facts) -> Explanation | None:
    """The page of a code, from the gate pages or else from the failure catalog; None when it is unknown."""
    rows = [row for row in facts.table("failure_signatures").rows if row.code == code]
    texts = tuple(dict.fromkeys(row.signature for row in rows))
    page = gate_pages().get(code)
    if page is not None:
        return Explanation(code, page.title, page.meaning, page.evidence, page.next_step, texts)
    if rows:
        row = rows[0]
        meaning = row.cause + (f" Told apart: {row.apart}" if row.apart else "")
        return Explanation(code, row.signature, meaning, row.evidence, row.next_step, texts)
    return None


def near_codes(code: str, facts: Facts) -> tuple[str, ...]:
    """Known codes that look like this one, the nearest first; none when none is near."""
    known = known_codes(facts)
    words = set(code.split("-"))
    # A long word that both have, such as "code", makes any two alike: what differs must be near, too.
    near = [
        other
        for other in difflib.get_close_matches(code, known, n=_MOST_NEAR, cutoff=0.6)
        if _differ_little(words, set(other.split("-")))
    ]
    # Words in another order: old-driver is near driver-too-old.
    shared = [other for other in known if len(words) > 1 and words <= set(other.split("-"))]
    return tuple(dict.fromkeys((*near, *shared)))[:_MOST_NEAR]


def _differ_little(words: set[str], others: set[str]) -> bool:
    """Whether each word that only the first has is near a word of the other, or that one has a word fewer."""
    rest = others - words
    return all(difflib.get_close_matches(word, rest, n=1, cutoff=0.6) for word in words - others)


def near_failures(lines: Sequence[str], facts: Facts) -> tuple[str, ...]:
    """Codes of the catalog whose text looks like a line of these, for a few lines; the nearest first."""
    by_text = {row.signature[:_LONGEST_COMPARED]: row.code for row in facts.table("failure_signatures").rows}
    found: dict[str, None] = {}
    for line in lines[-_MOST_COMPARED:]:
        for text in difflib.get_close_matches(line.strip()[:_LONGEST_COMPARED], by_text, n=1, cutoff=0.7):
            found[by_text[text]] = None
    return tuple(found)[:_MOST_NEAR]
