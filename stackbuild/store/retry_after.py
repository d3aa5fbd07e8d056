"""When a server wants to be asked again."""

from __future__ import annotations

import email.utils
import time


def retry_after_seconds(value: str) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110, section 10.2.3); None where it says nothing.

    Args:
        value: A number of seconds, or a date; empty for none.
    """
    value = value.strip()
    if value.isdigit():
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())
