"""Makes text that came from an image fit for a report: nothing in it can act on a terminal or break a format."""

from __future__ import annotations

import re

# Everything that does not show as itself: C0 but for tab and line feed, DEL, C1, what XML 1.0 (section 2.2, Char)
# forbids, lone surrogates, and marks that reorder what a reader sees (Unicode Bidirectional Algorithm, UAX 9).
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_LINE_ENDS = re.compile(r"\r\n?")


def safe_text(text: str) -> str:
    """The text with every character that could act as a command written out, for example ``\\x1b``.

    Tab and line feed stay; carriage returns become line feeds, so that a progress bar shows all it said.
    """
    return _UNSAFE.sub(_written_out, _LINE_ENDS.sub("\n", text))


def safe_line(text: str) -> str:
    """The same, on one line."""
    return " ".join(safe_text(text).split())


def shortened(text: str, limit: int) -> str:
    """The beginning and the end of a text longer than ``limit`` characters, with a line that says what is left out."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 3], text[len(text) - (limit - limit // 3) :]
    return f"{head}\n… {len(text) - limit} characters left out …\n{tail}"


def _written_out(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
