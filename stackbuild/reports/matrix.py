"""A check as a matrix for people: one symbol a cell, the reasons for the worst below."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stackbuild.compat.report import Cell, CheckedStack, CheckReport
from stackbuild.findings import Finding, Verdict

_SYMBOLS = {
    Verdict.PASS: ("ok", "green"),
    Verdict.WARN: ("!", "yellow"),
    Verdict.FAIL: ("X", "bold red"),
    Verdict.ERROR: ("?", "bold magenta"),
    Verdict.SKIP: ("-", "dim"),
}
_WIDEST_MATRIX = 12
_TOLD = (Verdict.FAIL, Verdict.ERROR, Verdict.WARN)


def render_matrix(report: CheckReport, *, colour: bool, width: int = 110, verbose: bool = False) -> str:
    """The check as text.

    Args:
        report: What to show.
        colour: Whether the reader is a terminal that wants colour.
        width: Columns of the terminal.
        verbose: Also tell what passed and what was not judged.
    """
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=colour,
        no_color=not colour,
        width=width if colour else 10_000,
        highlight=False,
        color_system="standard" if colour else None,
    )
    if report.hosts and len(report.hosts) <= _WIDEST_MATRIX:
        console.print(_table(report))
    elif report.hosts:
        console.print(_summary(report))
    for stack in report.stacks:
        _print_stack(console, stack, verbose=verbose)
    for cell in report.cells:
        _print_cell(console, cell, verbose=verbose)
    console.print(f"complete: {'true' if report.complete else 'false'}")
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _cells_of(report: CheckReport, position: int) -> tuple[Cell, ...]:
    """The cells of the stack at a position: its row, in the order of the hosts."""
    columns = len(report.hosts)
    return report.cells[position * columns : (position + 1) * columns]


def _table(report: CheckReport) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    table.add_column("stack")
    for host in report.hosts:
        table.add_column(host, justify="center")
    for position, stack in enumerate(report.stacks):
        symbols = [Text(*_SYMBOLS[cell.verdict]) for cell in _cells_of(report, position)]
        table.add_row(stack.stack, *symbols)
    return table


def _summary(report: CheckReport) -> Table:
    """A fleet too wide for columns: how many hosts give each verdict."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    table.add_column("stack")
    for verdict in _SYMBOLS:
        table.add_column(verdict.value, justify="right")
    for position, stack in enumerate(report.stacks):
        verdicts = [cell.verdict for cell in _cells_of(report, position)]
        table.add_row(stack.stack, *(str(verdicts.count(verdict)) for verdict in _SYMBOLS))
    return table


def _print_stack(console: Console, stack: CheckedStack, *, verbose: bool) -> None:
    shown = _shown(stack.findings, verbose=verbose)
    floor = f", driver {stack.oldest_driver} or later" if stack.oldest_driver else ""
    console.print(
        Text(f"\n{stack.stack}", style="bold").append(f" (judged from its {stack.judged_from}{floor})", "dim")
    )
    for finding in shown:
        _print_finding(console, finding)
    if not shown:
        console.print(Text("  ok   nothing against it by itself", style="green"))


def _print_cell(console: Console, cell: Cell, *, verbose: bool) -> None:
    shown = _shown(cell.findings, verbose=verbose)
    if not shown and not verbose:
        return
    console.print(Text(f"\n{cell.stack}", style="bold").append(" on ", "dim").append(cell.host, "bold"))
    for finding in shown:
        _print_finding(console, finding)
    for line in cell.advice:
        console.print(Text(f"       {line}", style="cyan"))


def _shown(findings: Iterable[Finding], *, verbose: bool) -> list[Finding]:
    return [finding for finding in findings if verbose or finding.verdict in _TOLD]


def _print_finding(console: Console, finding: Finding) -> None:
    symbol, style = _SYMBOLS[finding.verdict]
    console.print(
        Text(f"  {symbol:<4} ", style=style)
        .append(f"{finding.code}: ", "bold")
        .append(finding.summary, "none")
    )
    if finding.waived:
        console.print(Text(f"       waived: {finding.waived}", style="yellow"))
    if finding.next_step and finding.verdict is not Verdict.PASS:
        console.print(Text(f"       {finding.next_step}", style="none"))
