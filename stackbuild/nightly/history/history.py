"""The history of nights, for those who keep it and those who show it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from stackbuild.errors import UsageError
from stackbuild.nightly.history.database import Database
from stackbuild.nightly.history.model import NightSummary, Series, TrendPoint
from stackbuild.nightly.history.records import Records, storable
from stackbuild.nightly.history.schema import STEPS, Step
from stackbuild.nightly.model import Night, Outcome, StackNight
from stackbuild.progress import Observer, SilentObserver

_ALL = -1  # SQLite: a negative LIMIT is none
# A result that ended before its platform was known counts for every platform of its stack.
_OF_SERIES = "s.name = ? AND (? = '' OR r.platform IN (?, ''))"


class History:
    """Nights in one file; a context manager. Several processes may use one file at a time.

    A night is in the file whole, on the disk, when :meth:`add` returns, and not at all before. "Newest" is the
    night added last: clocks go back, the order of adding does not.

    Args:
        path: The SQLite file, on a local disk; made when missing. SQLite keeps ``-wal`` and ``-shm`` beside it.
        observer: Hears of waiting for another process.
        patience: Seconds to wait for another process.
        steps: The schema's steps, oldest first; a file of an older schema is brought to the newest.

    Raises:
        NotJudgedError: The file is damaged (``history-damaged``), of a newer stackbuild (``history-newer``), or
            another process holds it for longer than ``patience`` (``history-busy``).
        UsageError: It cannot be made or written (``history-unusable``).
        BuildError: The disk is full (``disk-full``).
    """

    def __init__(
        self,
        path: Path,
        *,
        observer: Observer | None = None,
        patience: float = 60.0,
        steps: Sequence[Step] = STEPS,
    ) -> None:
        self._database = Database(path, observer=observer or SilentObserver(), patience=patience, steps=steps)
        self._records = Records(self._database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(self, night: Night) -> None:
        """Add a night, in one transaction; it is on the disk when this returns.

        Where the file was removed or replaced since it was opened, the night goes to the one that is there now.

        Kept are all fields but the texts of findings that passed, the ``details`` of the others, and what a drift
        has beyond its first 2,000 files.

        Raises:
            UsageError: A night of that id is there already (``history-has-night``).
            As the constructor does.
        """
        if self._database.open_anew_where_replaced():
            self._records = Records(self._database)
        with self._database.writing():
            known = self._database.execute("SELECT 1 FROM nights WHERE name = ?", (storable(night.id),))
            if known.fetchone() is not None:
                raise UsageError(
                    f"the history has the night {night.id} already",
                    code="history-has-night",
                    where=str(self._database.path),
                    do="Nothing was added; the night that is there stays as it is.",
                )
            self._records.add(night)

    def last(self, stack: str, *, good: bool = False, platform: str = "") -> StackNight | None:
        """The newest result of a stack, or None.

        Args:
            stack: Its name.
            good: Only a night whose outcome was ``unchanged``: the image that the next one should equal.
            platform: Only of this platform, for example linux/amd64; empty for any.
        """
        conditions, parameters = ["s.name = ?"], [storable(stack)]
        if platform:
            conditions.append("r.platform = ?")
            parameters.append(storable(platform))
        if good:
            conditions.append("r.outcome = 'unchanged'")
        with self._database.reading():
            found = self._records.results(" AND ".join(conditions), tuple(parameters), 1)
        return found[0] if found else None

    def nights(self, limit: int | None = None) -> tuple[NightSummary, ...]:
        """The newest nights, newest first."""
        with self._database.reading():
            rows = self._database.execute(
                "SELECT id, name, started, seconds, host, version, interrupted FROM nights ORDER BY id DESC LIMIT ?",
                (_ALL if limit is None else limit,),
            ).fetchall()
            return tuple(
                NightSummary(
                    number, name, started, seconds, host, version, bool(interrupted), self._outcomes(number)
                )
                for number, name, started, seconds, host, version, interrupted in rows
            )

    def stacks(self) -> tuple[str, ...]:
        """The names of all stacks that some night knows, in name order."""
        return tuple(dict.fromkeys(series.stack for series in self.series()))

    def series(self) -> tuple[Series, ...]:
        """All stacks by platform, in name order."""
        with self._database.reading():
            rows = self._database.execute(
                "SELECT DISTINCT s.name, r.platform FROM results r JOIN stacks s ON s.id = r.stack"
            ).fetchall()
        platforms: dict[str, list[str]] = {}
        for stack, platform in sorted(rows):
            platforms.setdefault(stack, []).append(platform)
        return tuple(
            Series(stack, platform, only=len(known) == 1)
            for stack, found in platforms.items()
            for known in [[name for name in found if name] or [""]]
            for platform in known
        )

    def stack_trend(
        self, stack: str, limit: int | None = None, *, platform: str = ""
    ) -> tuple[TrendPoint, ...]:
        """The newest nights of a stack, newest first, without their texts.

        Args:
            stack: Its name.
            limit: At most so many; None for all.
            platform: Only of this platform, and of nights that ended before it was known; empty for any.
        """
        name, of = storable(stack), storable(platform)
        with self._database.reading():
            return self._records.points(_OF_SERIES, (name, of, of), _ALL if limit is None else limit)

    def reports(self, stack: str, limit: int, *, platform: str = "") -> tuple[dict[str, str], ...]:
        """What the newest nights of a stack wrote, name → path, in the order of :meth:`stack_trend`."""
        name, of = storable(stack), storable(platform)
        with self._database.reading():
            return self._records.reports(_OF_SERIES, (name, of, of), limit)

    def result(self, stack: str, night: str, *, platform: str = "") -> StackNight | None:
        """One stack in the night of that id, or None; ``platform`` as in :meth:`stack_trend`."""
        name, of = storable(stack), storable(platform)
        with self._database.reading():
            found = self._records.results(f"{_OF_SERIES} AND n.name = ?", (name, of, of, storable(night)), 1)
        return found[0] if found else None

    def prune(self, keep: int) -> int:
        """Remove all but the newest ``keep`` nights, and give the space back; returns how many went.

        Raises:
            ValueError: ``keep`` is less than 1.
        """
        if keep < 1:
            raise ValueError(f"at least one night is kept, not {keep}")
        run = self._database.execute
        with self._database.writing():
            gone = run(
                "DELETE FROM nights WHERE id <= (SELECT id FROM nights ORDER BY id DESC LIMIT 1 OFFSET ?)",
                (keep,),
            ).rowcount
            run("DELETE FROM images WHERE id NOT IN (SELECT image FROM results)")
            run("DELETE FROM verdict_sets WHERE id NOT IN (SELECT verdict_set FROM results)")
            run(
                "DELETE FROM contents WHERE id NOT IN (SELECT findings FROM results UNION SELECT newer FROM results "
                "UNION SELECT drift FROM results WHERE drift IS NOT NULL UNION SELECT diff_ids FROM images "
                "UNION SELECT pins FROM images "
                "UNION SELECT change FROM results WHERE change IS NOT NULL)"
            )
            run("DELETE FROM stacks WHERE id NOT IN (SELECT stack FROM results)")
        self._records = Records(self._database)  # what it has read by number may be gone
        self._database.give_back()
        return int(gone)

    @contextlib.contextmanager
    def view(self) -> Iterator[None]:
        """All that is read in the block is of one moment, whatever other processes add meanwhile."""
        with self._database.reading():
            yield

    def _outcomes(self, night: int) -> Counter[Outcome]:
        rows = self._database.execute(
            "SELECT outcome, count(*) FROM results WHERE night = ? GROUP BY outcome", (night,)
        )
        return Counter({cast(Outcome, outcome): count for outcome, count in rows})
