"""Fact tables as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stackbuild.facts.tables import Table

_WIDEST = 60


def render_tables(tables: Iterable[Table[Any]]) -> str:
    """The list of tables: name, rows, what each is about."""
    return "".join(f"{table.name:<26} {len(table.rows):>4} rows  {table.about}\n" for table in tables)


def render_table(table: Table[Any], *, verbose: bool = False) -> str:
    """One table in columns.

    Args:
        table: The table.
        verbose: Whole values and each row's sources.
    """
    names = [name for name in table.rows[0].FIELDS if name != "source"]
    rows = [[_text(getattr(row, name), verbose=verbose) for name in names] for row in table.rows]
    widths = [max(len(name), *(len(row[index]) for row in rows)) for index, name in enumerate(names)]
    lines = [table.about, ""]
    lines.append("  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)))
    for row, fact in zip(rows, table.rows, strict=True):
        lines.append("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)))
        if verbose:
            lines.extend(f"    source: {source}" for source in fact.source)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _text(value: Any, *, verbose: bool) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple):
        text = " ".join(str(item) for item in value)
    elif isinstance(value, dict):
        text = " ".join(f"{key}={item}" for key, item in value.items())
    else:
        text = str(value)
    return text if verbose or len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
