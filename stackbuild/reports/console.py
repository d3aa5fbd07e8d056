"""A report for a person at a terminal; plain text where colour is not wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from stackbuild.counting import some_of
from stackbuild.findings import Finding, Verdict
from stackbuild.reports.document import StackRow
from stackbuild.reports.interface import Report
from stackbuild.reports.safe_text import safe_line, safe_text
from stackbuild.reports.summary import counts, leading_verdict, not_applicable, not_judged
from stackbuild.reports.text_page import TextPage

_STYLES = {
    Verdict.PASS: "green",
    Verdict.WARN: "yellow",
    Verdict.FAIL: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.SKIP: "dim",
}
_LONGEST_DETAIL_LINES = 12
_MOST_GAPS = 12  # a run that never began has them all
# Details that are text a person wants to read; the rest is for machines and stays in JSON.
_SHOWN_DETAILS = ("traceback", "output", "log_lines", "engine", "log", "problems")


def render_console(
    report: Report,
    *,
    colour: bool,
    width: int = 110,
    verbose: bool = False,
    stack: Sequence[StackRow] = (),
) -> str:
    """The report as text.

    Args:
        report: What to show.
        colour: Whether the reader is a terminal that wants colour; False gives plain text.
        width: Columns; plain text is not wrapped.
        verbose: Also show measurements of what passed, and gates with nothing to judge.
        stack: The frozen stack, to be shown below the gates.
    """
    page = TextPage(colour=colour, width=width)
    console = page.console
    verdict = leading_verdict(report.findings)
    console.print(Text(safe_line(report.title), style="bold"))
    for name, value in report.headline:
        console.print(Text(f"  {name:<10} ", style="dim").append(safe_line(value), style="none"))
    console.print()
    shown = [finding for finding in report.findings if finding.applies or verbose]
    if not verbose:
        shown = _without_repeated_skips(shown)
    column = max((len(finding.code) for finding in shown), default=0)
    for finding in shown:
        _print_finding(console, finding, column, verbose=verbose)
    if shown:
        console.print()
    _print_stack(console, stack)
    console.print(Text(verdict.value, style=_STYLES[verdict]).append(f"  {counts(report.findings)}", "none"))
    _print_gaps(console, report, verbose=verbose)
    return page.text()


def _print_stack(console: Console, stack: Sequence[StackRow]) -> None:
    column = max((len(row.name) for row in stack), default=0)
    for row in stack:
        required = f"  (must be {row.required})" if row.required not in ("", row.value) else ""
        value = safe_line(f"{row.value} {required}")
        console.print(Text(f"  {safe_line(row.name):<{column}}  ", style="dim").append(value, style="none"))
    if stack:
        console.print()


def _without_repeated_skips(findings: Sequence[Finding]) -> list[Finding]:
    """One line for all SKIPs of one reason: what was not judged is named at the end anyway."""
    reasons = Counter(finding.summary for finding in findings if finding.verdict is Verdict.SKIP)
    shown: list[Finding] = []
    told: set[str] = set()
    for finding in findings:
        if finding.verdict is Verdict.SKIP and reasons[finding.summary] > 1:
            if finding.summary in told:
                continue
            told.add(finding.summary)
            more = f" (and {reasons[finding.summary] - 1} more)"
            shown.append(finding.model_copy(update={"summary": finding.summary + more}))
        else:
            shown.append(finding)
    return shown


def _print_finding(console: Console, finding: Finding, column: int, *, verbose: bool) -> None:
    line = Text(f"{finding.verdict.value:<5}", style=_STYLES[finding.verdict])
    line.append(f"  {finding.code:<{column}}  ", style="none").append(
        safe_line(finding.summary), style="none"
    )
    console.print(line)
    for text in _further(finding, verbose=verbose):
        console.print(Padding(Text(safe_text(text)), (0, 0, 0, 7)))


def _further(finding: Finding, *, verbose: bool) -> Iterable[str]:
    """The lines under a finding: evidence and what to do, for whatever is not simply well."""
    well = finding.verdict in (Verdict.PASS, Verdict.SKIP)
    if (not well or verbose) and finding.measured:
        yield f"measured: {finding.measured}"
    if (not well or verbose) and finding.required:
        yield f"required: {finding.required}"
    if finding.waived:
        yield f"waived: {finding.waived}"
    if well:
        return
    for name in _SHOWN_DETAILS:
        yield from (f"| {line}" for line in _lines(finding.details.get(name)))
    if finding.next_step:
        yield f"-> {finding.next_step}"


def _lines(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return value.rstrip().splitlines()[-_LONGEST_DETAIL_LINES:]
    if isinstance(value, list):
        return [str(item) for item in value[:_LONGEST_DETAIL_LINES]]
    return ()


def _print_gaps(console: Console, report: Report, *, verbose: bool) -> None:
    missing = not_judged(report.findings)
    if missing:
        most = len(missing) if verbose else _MOST_GAPS
        more = " (-v lists them)" if len(missing) > most else ""
        console.print(Text(f"complete: false; not judged: {some_of(missing, most)}{more}"))
    elif report.complete:
        console.print(Text("complete: true"))
    idle = not_applicable(report.findings)
    if idle and not verbose:
        gates = "1 gate has" if len(idle) == 1 else f"{len(idle)} gates have"
        console.print(Text(f"{gates} nothing to judge here (-v lists them)", style="dim"))
