"""``stackbuild facts``: the compatibility data and its sources."""

from __future__ import annotations

from pathlib import Path

import click

from stackbuild.cli.options import output_options


@click.command("facts")
@click.argument("table", required=False)
@click.option("--check", "check", is_flag=True, help="Say which facts are past their date.")
@output_options
def command(
    table: str | None,
    check: bool,
    format_: str,
    output: Path | None,
    quiet: bool,  # noqa: ARG001
    verbose: bool,
) -> None:
    """Show a table of facts with sources, or the list of tables.

    --check lists what is past its date: ends of life that have passed, and tables whose newest release is
    older than 60 days. It informs; the exit code stays 0.
    """
    from dataclasses import asdict
    from datetime import UTC, datetime

    from stackbuild.cli.output import json_text, write_result
    from stackbuild.errors import UsageError
    from stackbuild.facts.aging import aged_facts
    from stackbuild.facts.tables import TABLES, Facts
    from stackbuild.reports.facts_table import render_table, render_tables

    facts = Facts()
    if table is not None and table not in TABLES:
        raise UsageError(
            f"There is no table of facts named {table!r}.",
            code="unknown-table",
            do=f"The tables are {', '.join(sorted(TABLES))}.",
        )
    if check:
        aged = [item for item in aged_facts(facts, datetime.now(UTC).date()) if table in (None, item.table)]
        if format_ == "json":
            write_result(json_text([asdict(item) for item in aged]), output)
        else:
            text = "".join(f"{item.table}: {item.what}\n" for item in aged)
            write_result(text or "No fact is past its date.\n", output)
        return
    if table is None:
        shown = [facts.table(name) for name in sorted(TABLES)]
        if format_ == "json":
            listed = [{"name": item.name, "about": item.about, "rows": len(item.rows)} for item in shown]
            write_result(json_text(listed), output)
        else:
            write_result(render_tables(shown), output)
        return
    chosen = facts.table(table)
    if format_ == "json":
        document = {"about": chosen.about, "collected": chosen.collected, **chosen.notes}
        write_result(json_text({**document, "rows": [vars(row) for row in chosen.rows]}), output)
    else:
        write_result(render_table(chosen, verbose=verbose), output)
