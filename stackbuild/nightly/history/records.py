"""Nights as rows, and rows as the results of nights."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from stackbuild.drift.model import Drift
from stackbuild.errors import NotJudgedError
from stackbuild.findings import Finding, Verdict
from stackbuild.frozen_model import FrozenModel
from stackbuild.nightly.history.contents import Contents
from stackbuild.nightly.history.database import Database
from stackbuild.nightly.history.model import TrendPoint
from stackbuild.nightly.model import Night, StackNight

_MOST_FILES = 2_000  # of one drift
# Columns by the names of StackNight's fields: those that are plain, those that name a content, those that are JSON.
_PLAIN = {
    "stack": "s.name",
    "external": "r.external",
    "platform": "r.platform",
    "outcome": "r.outcome",
    "complete": "r.complete",
    "config_digest": "i.config_digest",
    "lock_sha256": "i.lock_sha256",
    "inputs_sha256": "i.inputs_sha256",
    "image": "i.name",
    "registry_digest": "i.registry_digest",
    "compared_with": "r.compared_with",
    "size": "i.size",
    "tries": "r.tries",
}
_BY_CONTENT = {
    "findings": "r.findings",
    "diff_ids": "i.diff_ids",
    "pins": "i.pins",
    "newer": "r.newer",
    "drift": "r.drift",
    "change": "r.change",
}
_JSON = {"seconds": "r.seconds", "reports": "r.reports"}
_RESULT = ", ".join([*_PLAIN.values(), *_BY_CONTENT.values(), *_JSON.values(), "r.verdict_set"])
_POINT = (
    "n.id, n.name, n.started, r.outcome, r.complete, i.config_digest, i.lock_sha256, i.size, r.seconds, "
    "r.verdict_set, r.drift IS NOT NULL, r.change IS NOT NULL"
)
_FROM = (
    "FROM results r JOIN nights n ON n.id = r.night JOIN stacks s ON s.id = r.stack "
    "JOIN images i ON i.id = r.image"
)
_NEW_IMAGE = (
    "INSERT INTO images (config_digest, lock_sha256, inputs_sha256, name, registry_digest, size, diff_ids, pins) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_SAME_IMAGE = (
    "SELECT id FROM images WHERE config_digest = ? AND lock_sha256 = ? AND inputs_sha256 = ? AND name = ? "
    "AND registry_digest = ? AND size = ? AND diff_ids = ? AND pins = ?"
)
_NEW_RESULT = (
    "INSERT INTO results (night, platform, external, outcome, complete, image, verdict_set, findings, newer, drift, "
    "change, compared_with, tries, seconds, reports, stack) "
    "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, id FROM stacks WHERE name = ?"
)


def storable(text: str) -> str:
    """The text as SQLite can keep it: what is no valid Unicode is written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Records:
    """Reads and writes the results of nights, inside a transaction of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._contents = Contents(database)

    def add(self, night: Night) -> None:
        """Write a night with the results of its stacks."""
        texts = [storable(text) for text in (night.id, night.started, night.host, night.version)]
        number = self._database.insert(
            "INSERT INTO nights (name, started, host, version, seconds, interrupted) VALUES (?, ?, ?, ?, ?, ?)",
            (*texts, night.seconds, night.interrupted),
        )
        # Named by name and by path, a stack is judged twice in one night: the later result is the one to keep.
        results = {(result.stack, result.platform): result for result in night.stacks}
        for result in results.values():
            self._add_result(number, result)

    def points(self, condition: str, parameters: tuple[object, ...], limit: int) -> tuple[TrendPoint, ...]:
        """The trend points of the results that meet an SQL condition, newest first."""
        rows = self._database.execute(
            f"SELECT {_POINT} {_FROM} WHERE {condition} ORDER BY r.night DESC LIMIT ?",
            (*parameters, limit),
        )
        return tuple(self._point(row) for row in rows)

    def results(self, condition: str, parameters: tuple[object, ...], limit: int) -> tuple[StackNight, ...]:
        """The results that meet an SQL condition, newest night first, within a night in its order."""
        rows = self._database.execute(
            f"SELECT {_RESULT} {_FROM} WHERE {condition} ORDER BY r.night DESC, r.id LIMIT ?",
            (*parameters, limit),
        ).fetchall()
        return tuple(self._result(row) for row in rows)

    def reports(
        self, condition: str, parameters: tuple[object, ...], limit: int
    ) -> tuple[dict[str, str], ...]:
        """The reports of the results that meet an SQL condition, newest first."""
        rows = self._database.execute(
            f"SELECT r.reports {_FROM} WHERE {condition} ORDER BY r.night DESC LIMIT ?", (*parameters, limit)
        )
        return tuple(self._contents.read(reports) for (reports,) in rows)

    # internal ---------------------------------------------------------------

    def _add_result(self, night: int, result: StackNight) -> None:
        stack = storable(result.stack)
        self._database.execute("INSERT OR IGNORE INTO stacks (name) VALUES (?)", (stack,))
        put = self._contents.put
        self._database.execute(
            _NEW_RESULT,
            (
                night,
                storable(result.platform),
                result.external,
                result.outcome,
                result.complete,
                self._image(result),
                self._contents.put_verdicts(result.verdicts),
                put([_told(finding) for finding in result.findings if finding.verdict is not Verdict.PASS]),
                put([_json(newer) for newer in result.newer]),
                None if result.drift is None else put(_json(_bounded(result.drift))),
                None if result.change is None else put(_json(_bounded(result.change))),
                storable(result.compared_with),
                result.tries,
                json.dumps(result.seconds),
                json.dumps(result.reports),
                stack,
            ),
        )

    def _image(self, result: StackNight) -> int:
        texts = (
            result.config_digest,
            result.lock_sha256,
            result.inputs_sha256,
            result.image,
            result.registry_digest,
        )
        numbers = (result.size, self._contents.put(list(result.diff_ids)), self._contents.put(result.pins))
        values = (*map(storable, texts), *numbers)
        known = self._database.execute(_SAME_IMAGE, values).fetchone()
        return int(known[0]) if known is not None else self._database.insert(_NEW_IMAGE, values)

    def _point(self, row: tuple[Any, ...]) -> TrendPoint:
        (
            number,
            night,
            started,
            outcome,
            complete,
            digest,
            lock,
            size,
            seconds,
            verdict_set,
            drift,
            change,
        ) = row
        return TrendPoint(
            number=number,
            night=night,
            started=started,
            outcome=outcome,
            complete=bool(complete),
            config_digest=digest,
            lock_sha256=lock,
            size=size,
            seconds=self._contents.read(seconds),
            verdicts=self._contents.verdicts(verdict_set),
            drifted=bool(drift),
            changed=bool(change),
        )

    def _result(self, row: tuple[Any, ...]) -> StackNight:
        *values, verdict_set = row
        fields = dict(zip([*_PLAIN, *_BY_CONTENT, *_JSON], values, strict=True))
        for name in _BY_CONTENT:
            fields[name] = None if fields[name] is None else self._contents.get(fields[name])
        for name in _JSON:
            fields[name] = self._contents.read(fields[name])
        passed = [
            {"code": code, "verdict": verdict.value, "summary": "passed"}
            for code, verdict in self._contents.verdicts(verdict_set).items()
            if verdict is Verdict.PASS
        ]
        try:
            return StackNight.model_validate(fields | {"findings": [*fields["findings"], *passed]})
        except ValidationError as error:
            raise NotJudgedError(
                f"the history's record of {fields['stack']} is not as this stackbuild knows it",
                code="history-newer",
                where=str(self._database.path),
                detail=str(error),
                do="Use the stackbuild that wrote it, or a newer one.",
            ) from error


def _json(model: FrozenModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True)


def _bounded(drift: Drift) -> Drift:
    """A drift of bounded size: a stack that builds to other bytes each night must not make a huge file of a year."""
    more = len(drift.files) - _MOST_FILES
    if more <= 0:
        return drift
    kept = sorted(drift.files, key=lambda file: bool(file.noise))[:_MOST_FILES]
    sentence = (
        f"{more:,} more files differ; the history keeps {_MOST_FILES:,} of a night, its report has all."
    )
    return drift.model_copy(update={"files": tuple(kept), "unknown": (*drift.unknown, sentence)})


def _told(finding: Finding) -> dict[str, Any]:
    """A finding without its machine-readable evidence, which can be a whole log: the night's reports have that."""
    return finding.model_dump(exclude={"details"})
