"""Failed requests: which are worth another try, when, and what a person can do about the rest."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """How often and after how many seconds something is tried again.

    Args:
        attempts: Tries that bring nothing before giving up.
        first_delay: Seconds before the second try; doubled each time.
        longest_delay: Seconds that are never exceeded, whatever a server asks for.
    """

    attempts: int = 5
    first_delay: float = 0.5
    longest_delay: float = 60.0

    def is_over(self, attempt: int, error: TransferError) -> bool:
        """Whether no try after the failed one of number ``attempt`` (from 1) is of use.

        So also where a server limits its clients for longer than all further tries would wait.
        """
        left = (self.attempts - attempt) * self.longest_delay
        return error.lasting or left <= 0 or (error.retry_after is not None and error.retry_after > left)

    def delay(self, attempt: int, retry_after: float | None = None) -> float:
        """Seconds to wait after the failed try number ``attempt`` (from 1)."""
        if retry_after is not None:
            return min(retry_after, self.longest_delay)
        backed_off = float(self.first_delay * 2 ** (attempt - 1))
        # Up to a quarter more, so that parallel downloads do not come back at the same instant.
        return min(backed_off * (1 + random.random() / 4), self.longest_delay)  # noqa: S311


class TransferError(Exception):
    """One try failed in a way that another may not.

    ``retry_after`` is in seconds, where the server said so; ``limiting`` is true when it limits its clients;
    ``untrusted`` when its certificate is not accepted, and ``given_up`` when it failed too often before: no further
    try changes that.
    """

    def __init__(
        self,
        reason: str,
        *,
        retry_after: float | None = None,
        limiting: bool = False,
        untrusted: bool = False,
        given_up: bool = False,
    ) -> None:
        super().__init__(reason)
        self.given_up = given_up
        self.untrusted = untrusted
        self.reason = reason
        self.retry_after = retry_after
        self.limiting = limiting

    @property
    def lasting(self) -> bool:
        """Whether a further try is pointless."""
        return self.untrusted or self.given_up


def next_step(error: TransferError, what: str, mapped_in: str = "") -> str:
    """What a person can do about a server that was given up, as a sentence.

    Args:
        error: The last failure.
        what: What the site file can map to a mirror, such as ``the index default``.
        mapped_in: The file or variable that does so already.
    """
    if error.untrusted:
        return (
            "Name the CA bundle of your proxy or mirror as `ca-bundle` in the site file, or in SSL_CERT_FILE."
        )
    if mapped_in:
        return f"Try again later, or map {what} elsewhere: {mapped_in} says where it is."
    return f"Try again later, or map {what} to a mirror in the site file."


class RefusedError(Exception):
    """The server answers that this is not to be had (404, 403, …); trying again is pointless."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
