"""Explanations for people and machines: the page of a code, and what a pasted text shows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from stackbuild.explain.lookup import Explanation
from stackbuild.explain.recognise import Recognised

_WIDTH = 100
_LABELS = ("what", "evidence", "do", "apart", "seen", "sources")
_INDENT = max(map(len, _LABELS)) + 4
# What makes an unknown failure answerable by whoever is asked next.
COLLECT = (
    "the whole first error, not the last line alone, with the ten lines before it",
    "the exact command, and where it ran: host, container, docker build, pod",
    "'stackbuild host --format json' of the machine, or nvidia-smi and docker info",
    "the image by digest, and 'stackbuild inspect IMAGE' or docker image inspect IMAGE",
)


def _field(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=f"  {label:{_INDENT - 2}}",
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def render_explanation(shown: Explanation) -> str:
    """One code's page as text."""
    lines = [
        f"{shown.code}: {shown.title}",
        _field("what", shown.meaning),
        _field("evidence", shown.evidence),
        _field("do", shown.next_step),
        *(_field("seen", text) for text in shown.texts),
    ]
    return "\n".join(lines) + "\n"


def render_recognised(found: Sequence[Recognised], *, verbose: bool = False) -> str:
    """What a text shows, best first.

    Args:
        found: The failures.
        verbose: Also the sources.
    """
    parts = []
    for one in found:
        row = one.signature
        lines = [row.code]
        for sighting in one.sightings:
            times = f", {sighting.times} times" if sighting.times > 1 else ""
            values = "".join(f" [{name}: {value}]" for name, value in sighting.values.items())
            lines.append(_field("seen", f"line {sighting.line}{times}: {sighting.text}{values}"))
        unsure = " (An uncertain fact.)" if row.confidence == "uncertain" else ""
        lines.append(_field("what", row.cause + unsure))
        if row.apart:
            lines.append(_field("apart", row.apart))
        lines += [_field("evidence", row.evidence), _field("do", row.next_step)]
        if verbose:
            lines += [_field("sources", f"{source} ({row.confidence})") for source in row.source]
        parts.append("\n".join(lines) + "\n")
    if sum(bool(one.signature.apart) for one in found) > 1:
        parts.append("Several failures have this text; 'apart' says which of them it is.\n")
    return "\n".join(parts)


def render_unknown(near: Sequence[str]) -> str:
    """What to say of a text that nothing recognises."""
    lines = ["This text is not recognised."]
    if near:
        lines.append(f"It looks a little like: {', '.join(near)}.")
    lines.append("To have it looked at, collect:")
    lines += [f"  * {item}" for item in COLLECT]
    return "\n".join(lines) + "\n"


def explanation_document(shown: Sequence[Explanation]) -> dict[str, Any]:
    """Pages of codes as a JSON document."""
    return {
        "schema": 1,
        "codes": [
            {
                "code": one.code,
                "title": one.title,
                "meaning": one.meaning,
                "evidence": one.evidence,
                "next-step": one.next_step,
                "texts": list(one.texts),
            }
            for one in shown
        ],
    }


def recognised_document(found: Sequence[Recognised], near: Sequence[str]) -> dict[str, Any]:
    """What a text shows as a JSON document; ``near`` and ``collect`` help where nothing was recognised."""
    return {
        "schema": 1,
        "recognised": [
            {
                "code": one.code,
                "stage": one.signature.stage,
                "cause": one.signature.cause,
                "apart": one.signature.apart,
                "evidence": one.signature.evidence,
                "next-step": one.signature.next_step,
                "confidence": one.signature.confidence,
                "source": list(one.signature.source),
                "sightings": [
                    {
                        "line": sighting.line,
                        "times": sighting.times,
                        "text": sighting.text,
                        "values": sighting.values,
                    }
                    for sighting in one.sightings
                ],
            }
            for one in found
        ],
        "near": list(near),
        "collect": [] if found else list(COLLECT),
    }
