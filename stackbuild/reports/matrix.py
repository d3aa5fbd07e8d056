"""A check as a matrix for people: one symbol a cell, the reasons for the worst below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stackbuild.compat.asked import GATES_OF_A_STACK
from stackbuild.compat.report import Cell, CheckedStack, CheckReport
from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.reports.safe_text import safe_text
from stackbuild.reports.summary import not_judged

# A line is pieces of text, each with its style; plain text is the pieces alone.
Line = list[tuple[str, str]]

_SYMBOLS = {
    Verdict.PASS: ("ok", "green"),
    Verdict.WARN: ("!", "yellow"),
    Verdict.FAIL: ("X", "bold red"),
    Verdict.ERROR: ("?", "bold magenta"),
    Verdict.SKIP: ("-", "dim"),
}
# Nothing against it, but a gate that applies could not judge: the host did not say enough.
_PARTLY = ("ok?", "yellow")
_WIDEST_MATRIX = 12
_TOLD = (Verdict.FAIL, Verdict.ERROR, Verdict.WARN)


def render_matrix(report: CheckReport, *, colour: bool, width: int = 110, verbose: bool = False) -> str:
    """The check as text.

    Args:
        report: What to show.
        colour: Whether the reader is a terminal that wants colour.
        width: Columns of the terminal; plain text is not wrapped.
        verbose: Also tell what passed and what was not judged.
    """
    lines: list[Line] = []
    if report.hosts:
        lines.extend(_table(report) if len(report.hosts) <= _WIDEST_MATRIX else _summary(report))
    for stack in report.stacks:
        if lines:
            lines.append([])
        lines.extend(_stack(stack, _name(stack, report), verbose=verbose))
    for cell in report.cells:
        lines.extend(_cell(cell, _name(cell, report), verbose=verbose))
    missing = ", ".join(not_judged(report.findings))
    lines.append([(f"complete: false; not judged: {missing}" if missing else "complete: true", "")])
    return _painted(lines, width) if colour else _plain(lines)


def _plain(lines: Iterable[Line]) -> str:
    return "".join(safe_text("".join(text for text, _ in line)).rstrip() + "\n" for line in lines)


def _painted(lines: Iterable[Line], width: int) -> str:
    # Imported here: piped output, as in CI, starts without it.
    import io

    from rich.console import Console
    from rich.text import Text

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, highlight=False, color_system="standard")
    for line in lines:
        console.print(Text.assemble(*((safe_text(text), style) for text, style in line)))
    return stream.getvalue()


def _name(part: CheckedStack | Cell, report: CheckReport) -> str:
    """The stack's name, with the platform where the stack has several."""
    several = len({stack.platform for stack in report.stacks if stack.stack == part.stack}) > 1
    return f"{part.stack} {part.platform}" if several else part.stack


def _cells_of(report: CheckReport, position: int) -> tuple[Cell, ...]:
    """The cells of the stack at a position: its row, in the order of the hosts."""
    columns = len(report.hosts)
    return report.cells[position * columns : (position + 1) * columns]


def _table(report: CheckReport) -> Iterator[Line]:
    rows = [
        [(_name(stack, report), ""), *(_symbol(cell) for cell in _cells_of(report, position))]
        for position, stack in enumerate(report.stacks)
    ]
    return _columns(["stack", *report.hosts], rows)


def _symbol(cell: Cell) -> tuple[str, str]:
    if cell.verdict is Verdict.PASS and not is_complete(cell.findings):
        return _PARTLY
    return _SYMBOLS[cell.verdict]


def _summary(report: CheckReport) -> Iterator[Line]:
    """A fleet too wide for columns: how many hosts give each verdict."""
    rows = []
    for position, stack in enumerate(report.stacks):
        verdicts = [cell.verdict for cell in _cells_of(report, position)]
        rows.append(
            [(_name(stack, report), ""), *((str(verdicts.count(verdict)), "") for verdict in _SYMBOLS)]
        )
    return _columns(["stack", *(verdict.value for verdict in _SYMBOLS)], rows)


def _columns(names: Sequence[str], rows: Sequence[Line]) -> Iterator[Line]:
    """The first column to the left, the others centred below their names."""
    widths = [max(len(name), *(len(row[index][0]) for row in rows)) for index, name in enumerate(names)]
    for row in [[(name, "bold") for name in names], *rows]:
        first, *others = zip(row, widths, strict=True)
        yield [
            (first[0][0].ljust(first[1]), first[0][1]),
            *((f"  {text.center(width)}", style) for (text, style), width in others),
        ]


def _stack(stack: CheckedStack, name: str, *, verbose: bool) -> Iterator[Line]:
    shown = _shown(stack.findings, verbose=verbose)
    floor = f", driver {stack.oldest_driver} or later" if stack.oldest_driver else ""
    yield [(name, "bold"), (f" (judged from its {stack.judged_from}{floor})", "dim")]
    for finding in shown:
        yield from _finding(finding)
    if not shown:
        yield [("  ok   nothing against it by itself", "green")]
    if verbose:
        quiet = [code for code in GATES_OF_A_STACK if all(finding.code != code for finding in stack.findings)]
        yield [("       asked, and nothing found: ", "dim"), (", ".join(quiet), "dim")]


def _cell(cell: Cell, name: str, *, verbose: bool) -> Iterator[Line]:
    shown = _shown(cell.findings, verbose=verbose)
    if cell.verdict in (Verdict.PASS, Verdict.SKIP) and not verbose:
        # Nothing else is told of this cell: what could not be judged is its reason.
        shown += [finding for finding in cell.findings if finding.verdict is Verdict.SKIP and finding.applies]
    if not shown and not verbose:
        return
    yield []
    yield [(name, "bold"), (" on ", "dim"), (cell.host, "bold")]
    for finding in shown if verbose else _told_once(shown):
        yield from _finding(finding)
    if not shown:
        yield [("  ok   nothing in it depends on this host", "green")]
    for line in cell.advice:
        yield [(f"       {line}", "cyan")]


def _shown(findings: Iterable[Finding], *, verbose: bool) -> list[Finding]:
    return [finding for finding in findings if verbose or finding.verdict in _TOLD]


def _told_once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without those that say the same as one before, such as an unknown driver for each component."""
    said: dict[tuple[str, ...], Finding] = {}
    for finding in findings:
        said.setdefault((finding.code, finding.verdict, finding.summary, finding.next_step), finding)
    return list(said.values())


def _finding(finding: Finding) -> Iterator[Line]:
    symbol, style = _SYMBOLS[finding.verdict]
    yield [(f"  {symbol:<4} ", style), (f"{finding.code}: ", "bold"), (finding.summary, "")]
    if finding.waived:
        yield [(f"       waived: {finding.waived}", "yellow")]
    if finding.next_step and finding.verdict is not Verdict.PASS:
        yield [(f"       {finding.next_step}", "")]
