"""Which facts are past their date: ends of life that have passed, tables with no recent release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from stackbuild.facts.tables import Facts

_NEWEST_RELEASE_MAY_BE = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class AgedFact:
    """One thing past its date."""

    table: str
    what: str


def aged_facts(facts: Facts, today: date) -> Iterator[AgedFact]:
    """Everything past its date on a day.

    Args:
        facts: The fact tables.
        today: The day.
    """
    for name, column in (("distributions", "id"), ("python_versions", "version")):
        for row in facts.table(name).rows:
            if date.fromisoformat(row.eol) < today:
                yield AgedFact(name, f"{getattr(row, column)} reached its end of life on {row.eol}")
    month = f"{today:%Y-%m}"
    for branch in facts.table("driver_branches").rows:
        if branch.eol is not None and branch.eol < month:
            disputed = f" (disputed: {branch.eol_note})" if branch.eol_note else ""
            yield AgedFact(
                "driver_branches", f"R{branch.branch} reached its end of life in {branch.eol}{disputed}"
            )
    for name in ("torch_releases", "onnxruntime_releases"):
        newest = max(facts.table(name).rows, key=lambda row: row.uploaded)
        age = today - date.fromisoformat(newest.uploaded)
        if age > _NEWEST_RELEASE_MAY_BE:
            yield AgedFact(name, f"the newest release known, {newest.version}, is {age.days} days old")
    for name in sorted({"toolkits", "gpus", "cuda_image_digests", "tensorrt_releases"}):
        age = today - date.fromisoformat(facts.table(name).collected)
        if age > _NEWEST_RELEASE_MAY_BE:
            yield AgedFact(name, f"was collected {age.days} days ago")
