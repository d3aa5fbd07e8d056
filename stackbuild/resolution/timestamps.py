"""Timestamps of inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

_FRACTION = re.compile(r"\.\d+")


def newest(moments: Iterable[str | None]) -> str:
    """The newest of RFC 3339 timestamps, in UTC and whole seconds; those that are None or empty do not count.

    Raises:
        ValueError: None counts, or one is no timestamp.
    """
    # Registries write nanoseconds, which datetime does not read.
    parsed = [datetime.fromisoformat(_FRACTION.sub("", moment)) for moment in moments if moment]
    latest = max(moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in parsed)
    return latest.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
