"""Staging tags: what is being judged has a name of its own until it may have a real one.

``staging-EPOCH-MACHINE-PID-START`` belongs to a run and goes with it; ``staged-EPOCH-DIGEST`` is left for other jobs to
judge and goes after a day.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from stackbuild.digests import short_hex
from stackbuild.engine.ownership import owner_is_gone, owner_label
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.progress import Observer
from stackbuild.registry.writer import RegistryWriter

KEPT_SECONDS = 24 * 60 * 60
INPUTS_PREFIX = "inputs-"
LAYER_PREFIX = "layer-"
_RUN = re.compile(
    r"staging-(?P<epoch>\d{1,12})-(?P<machine>[0-9a-f]{12})-(?P<pid>\d+)-(?P<start>\d+)-[0-9a-z]+"
)
_STAGED = re.compile(r"staged-(?P<epoch>\d{1,12})-[0-9a-f]{12}")
_REFERRERS = re.compile(r"sha256-[0-9a-f]{64}(\.[a-z]+)?")


def run_tag(now: float, name: str) -> str:
    """The staging tag of this process.

    Args:
        now: Seconds since 1970.
        name: Tells apart what one run stages: digits and lower-case letters.
    """
    pid, start, machine = _owner()
    return f"staging-{int(now)}-{machine}-{pid}-{start}-{name}"


def staged_tag(now: float, digest: str) -> str:
    """The tag of an image that other jobs are to judge.

    Args:
        now: Seconds since 1970.
        digest: Of its manifest.
    """
    return f"staged-{int(now)}-{short_hex(digest)}"


def inputs_tag(inputs: str) -> str:
    """The tag of a published image by the hash of what decided it."""
    return f"{INPUTS_PREFIX}{inputs}"


def is_internal(tag: str) -> bool:
    """True for a tag that is for machines: staging, inputs, layers, referrers and signatures."""
    return tag.startswith(("staging-", "staged-", INPUTS_PREFIX, LAYER_PREFIX)) or bool(
        _REFERRERS.fullmatch(tag)
    )


def left_over(tags: Iterable[str], now: float) -> list[str]:
    """Staging tags that nobody needs any more: older than a day, or of a run of this machine that has ended.

    Args:
        tags: A repository's tags.
        now: Seconds since 1970.
    """
    machine = _owner()[2]
    whole = owner_label().split(" ", 2)[2]
    found = []
    for tag in tags:
        match = _RUN.fullmatch(tag)
        if match and _is_dead(match, machine, whole):
            found.append(tag)
            continue
        match = match or _STAGED.fullmatch(tag)
        if match and now - int(match["epoch"]) > KEPT_SECONDS:
            found.append(tag)
    return found


def _is_dead(match: re.Match[str], machine: str, whole: str) -> bool:
    """True for a run of this machine that has ended."""
    return match["machine"] == machine and owner_is_gone(f"{match['pid']} {match['start']} {whole}")


def _owner() -> tuple[str, str, str]:
    pid, start, machine = owner_label().split(" ", 2)
    return pid, start, short_hex(hashlib.sha256(machine.encode()).hexdigest())


class StagingTags:
    """The staging tags of one run in one repository; a context manager that removes them.

    Args:
        writer: Writes the registry.
        repository: The repository.
        observer: Told of steps, and of what stays.
    """

    def __init__(self, writer: RegistryWriter, repository: str, observer: Observer) -> None:
        self._writer = writer
        self._repository = repository
        self._observer = observer
        self._own: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._observer.stage("unstage", self._repository)
        try:
            while self._own:
                self._writer.delete_tag(self._repository, self._own.pop())
        except (LockError, NotJudgedError) as trouble:
            # What happened before is what the person must hear of; the next run collects the rest.
            self._observer.note(f"a staging tag stays for the next run to collect: {trouble.what}")

    def new(self) -> str:
        """A tag of this run's own; it goes at the end."""
        self._own.append(run_tag(time.time(), str(len(self._own))))
        return self._own[-1]

    def collect(self) -> None:
        """Remove tags that nobody needs any more.

        Raises:
            NotJudgedError: The registry cannot be used.
        """
        self._observer.stage("collect", self._repository)
        try:
            tags = self._writer.client.tags(self._repository)
        except LockError as error:
            if error.code != "no-such-repository":
                raise
            return  # nothing was ever pushed there
        for tag in left_over(tags, time.time()):
            if self._writer.delete_tag(self._repository, tag):
                self._observer.note(f"removed the left-over staging tag {tag}")
