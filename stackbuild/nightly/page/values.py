"""Numbers and dates as people read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from stackbuild.nightly.model import Outcome
from stackbuild.reports.plots import amount

OUTCOME_WORDS: dict[Outcome, str] = {
    "spec-or-lock": "spec or lock",
    "build-failed": "build failed",
    "failed": "failed",
    "not-judged": "not judged",
    "drift": "drift",
    "unchanged": "unchanged",
}
# Drawn and coloured as these verdicts are.
OUTCOME_CLASSES: dict[Outcome, str] = {
    "spec-or-lock": "fail",
    "build-failed": "fail",
    "failed": "fail",
    "not-judged": "error",
    "drift": "warn",
    "unchanged": "pass",
}


def size(value: int) -> str:
    """Bytes for people; a dash for none."""
    return amount(value, "B") if value else "–"


def duration(seconds: float) -> str:
    """For example ``9.5 s``, ``4 min 05 s`` or ``1 h 02 min``; a dash for none."""
    if not seconds:
        return "–"
    if seconds < 60:
        return amount(seconds, "s")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def day(started: str) -> str:
    """The date of an RFC 3339 time."""
    return started[:10]


def dates(starts: Iterable[str]) -> Callable[[str], str]:
    """What writes a night's start: its date, with the time of day where another night began on that date.

    Args:
        starts: When the nights that are shown began, RFC 3339, UTC.
    """
    counted = Counter(day(started) for started in starts)

    def when(started: str) -> str:
        return day(started) if counted[day(started)] < 2 else f"{day(started)} {started[11:16]}"

    return when


def minute(started: str) -> str:
    """Date and time of an RFC 3339 time in UTC, to the minute."""
    return f"{started[:10]} {started[11:16]} UTC"


def age(started: str, now: datetime) -> str:
    """How long ago a night began, for example ``3 days``; empty for the last day and a half, and for the future."""
    try:
        begun = datetime.fromisoformat(started)
    except ValueError:  # a time that nobody can read is shown as it is, without an age
        return ""
    begun = begun if begun.tzinfo else begun.replace(tzinfo=UTC)
    hours = (now - begun).total_seconds() / 3600
    return f"{hours / 24:.0f} days" if hours > 36 else ""


def shorter(text: str, limit: int = 600) -> str:
    """A text for a table: its beginning, when it is longer than ``limit`` characters."""
    return text if len(text) <= limit else f"{text[:limit].rstrip()}… ({len(text) - limit} more characters)"


def pin(value: object) -> str:
    """The value of a pin in words: lists and mappings without brackets."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {pin(part)}" for name, part in value.items() if part not in (None, ""))
    if isinstance(value, list | tuple):
        return ", ".join(pin(part) for part in value)
    return str(value)
