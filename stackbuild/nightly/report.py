"""A night for people and machines: a line or two for each stack, and a document for the other formats."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from rich.padding import Padding
from rich.text import Text

from stackbuild.counting import some_of
from stackbuild.drift.findings import own_files, package_text, pin_text
from stackbuild.findings import Finding, Verdict
from stackbuild.nightly.model import Night, Outcome, StackNight
from stackbuild.nightly.outcome import worst_outcome
from stackbuild.reports.document import Document, Part
from stackbuild.reports.safe_text import safe_line
from stackbuild.reports.summary import counts, not_judged
from stackbuild.reports.text_page import TextPage

_STYLES: dict[Outcome, str] = {
    "spec-or-lock": "bold red",
    "build-failed": "bold red",
    "failed": "bold red",
    "not-judged": "bold magenta",
    "drift": "bold yellow",
    "unchanged": "green",
}
# Which verdicts say why a night had its outcome, the telling ones first.
_REASONS: dict[Outcome, tuple[Verdict, ...]] = {
    "spec-or-lock": (Verdict.FAIL,),
    "build-failed": (Verdict.FAIL,),
    "failed": (Verdict.FAIL, Verdict.WARN),
    "not-judged": (Verdict.ERROR,),
    "drift": (Verdict.FAIL, Verdict.WARN),
    "unchanged": (),
}
_GRAVITY: dict[Outcome, Verdict] = {
    "spec-or-lock": Verdict.FAIL,
    "build-failed": Verdict.FAIL,
    "failed": Verdict.FAIL,
    "not-judged": Verdict.ERROR,
    "drift": Verdict.WARN,
    "unchanged": Verdict.PASS,
}
_MOVED_CODES = ("base-tag-moved", "external-moved")
_DRIFT_CODES = ("rebuild-reproduces", *_MOVED_CODES)
_SHOWN_CHANGES = 4
_SHOWN_CODES = 3  # of what was not judged
_SHOWN_STACKS = 4
_SHOWN_LINES = 8  # of an error's own detail


def document_of_night(night: Night) -> Document:
    """The document of a night: a part for each stack."""
    return Document(
        title=title_of(night),
        headline=(
            ("stacks", _counted(night.stacks)),
            ("host", night.host),
            ("stackbuild", night.version),
        ),
        parts=tuple(
            Part(
                label,
                stack.findings,
                seconds=stack.seconds.get("total", 0.0),
                told=f"{stack.outcome}: {headline_of(stack)} [{code_of(stack)}]",
            )
            for label, stack in zip(night.labels, night.stacks, strict=True)
        ),
        complete=night.complete and not night.interrupted,
        started=night.started,
        seconds=night.seconds,
        outcome=_whole(night),
    )


def _whole(night: Night) -> tuple[str, Verdict] | None:
    """The word for all stacks, and how grave it is."""
    if not night.stacks:
        return None
    outcome = worst_outcome(stack.outcome for stack in night.stacks)
    return outcome, _GRAVITY[outcome]


def title_of(night: Night) -> str:
    """One line: which night."""
    stopped = ", interrupted" if night.interrupted else ""
    return f"nightly {night.started}{stopped}"


def headline_of(stack: StackNight) -> str:
    """What a person must know of a stack's night, as one sentence."""
    reasons = reasons_of(stack)
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        return f"{reasons[0].summary}{more}"
    rebuilt = _rebuilt(stack)
    if rebuilt is not None and rebuilt.verdict is Verdict.WARN:
        return f"no drift: {rebuilt.summary}"
    if stack.change is not None:
        moves = [
            *(pin_text(pin) for pin in stack.change.pins),
            *(package_text(package) for package in stack.change.packages),
            *own_files(stack.change),
        ]
        shown = some_of(moves, _SHOWN_CHANGES) or "no pin and no package moved"
        return f"no drift: as its new inputs make it: {shown}"
    if rebuilt is not None:
        return rebuilt.summary
    return (
        f"the same as {stack.compared_with}"
        if stack.compared_with
        else "first night: nothing to compare with"
    )


def code_of(stack: StackNight) -> str:
    """The code that `stackbuild explain` knows, of what a stack's night ended with."""
    told = next(iter(reasons_of(stack)), None) or _rebuilt(stack)
    return told.code if told is not None else stack.outcome


def reasons_of(stack: StackNight) -> Sequence[Finding]:
    """The findings that its outcome comes from, the telling one first; trouble of several stages once."""
    reasons: list[Finding] = []
    for verdict in _REASONS[stack.outcome]:
        for finding in stack.findings:
            told = any(
                one.code == finding.code and one.summary.startswith(finding.summary) for one in reasons
            )
            if finding.verdict is verdict and _tells(finding, stack) and not told:
                reasons.append(finding)
    return reasons


def render_night(
    night: Night, *, colour: bool, width: int = 110, verbose: bool = False, folder: Path = Path()
) -> str:
    """The night as text.

    Args:
        night: What to show.
        colour: Whether the reader is a terminal that wants colour; False gives plain text.
        width: Columns; plain text is not wrapped.
        verbose: Also show warnings, newer versions, times and where the reports are.
        folder: Leads from where the reader is to the folder that the paths of the reports are relative to.
    """
    page = TextPage(colour=colour, width=width)
    console = page.console
    console.print(Text(safe_line(title_of(night)), style="bold"))
    console.print()
    column = max(map(len, night.labels), default=0)
    for label, stack in zip(night.labels, night.stacks, strict=True):
        line = Text(f"{stack.outcome:<12}  ", style=_STYLES[stack.outcome])
        line.append(f"{safe_line(label):<{column}}  ", style="bold")
        line.append(f"{safe_line(headline_of(stack))}  ", style="none")
        line.append(f"{stack.seconds.get('total', 0):.0f} s  [{code_of(stack)}]", style="dim")
        console.print(line)
        for text in _further(stack, verbose=verbose, folder=folder):
            console.print(Padding(Text(safe_line(text)), (0, 0, 0, 14)))
    console.print()
    stopped = "interrupted; " if night.interrupted else ""
    console.print(
        Text(
            f"{stopped}{_counted(night.stacks)} in {night.seconds:.0f} s (exit {int(night.exit_code)})"
            f"{_incomplete(night, verbose=verbose)}"
        )
    )
    return page.text()


def _incomplete(night: Night, *, verbose: bool) -> str:
    """What was not judged, and of which stacks; those that lack the same together."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for label, stack in zip(night.labels, night.stacks, strict=True):
        if missing := not_judged(stack.findings):
            lacking.setdefault(missing, []).append(label)
    told = []
    for missing, labels in lacking.items():
        codes = some_of(missing, len(missing) if verbose else _SHOWN_CODES)
        stacks = f" in {some_of(labels, _SHOWN_STACKS)}" if len(night.stacks) > 1 else ""
        told.append(f"{codes} not judged{stacks}")
    most = len(told) if verbose else _SHOWN_STACKS
    return safe_line(f"; not complete: {some_of(told, most, 'such', between='; ')}") if told else ""


def _further(stack: StackNight, *, verbose: bool, folder: Path) -> Iterable[str]:
    reasons = reasons_of(stack)
    for finding in reasons[:1]:
        yield from _measured(finding)
    for finding in reasons[1:]:
        yield f"{finding.verdict.value} {finding.code}: {finding.summary}"
        yield from (f"  {line}" for line in _measured(finding))
    rebuilt = _rebuilt(stack)
    if reasons and rebuilt is not None and rebuilt not in reasons:
        # What else ended badly does not tell whether it still builds.
        yield rebuilt.summary
    if not verbose:
        # What moved is often why it cannot be judged, or fails.
        for finding in stack.findings:
            if finding.code in _MOVED_CODES and finding.verdict is Verdict.WARN and finding not in reasons:
                yield f"{finding.verdict.value} {finding.code}: {finding.summary}"
    steps = dict.fromkeys(finding.next_step for finding in reasons if finding.next_step)
    yield from (f"-> {step}" for step in steps)
    newer = [version for version in stack.newer if version.kind != "deb"]
    if newer and not verbose:
        yield f"newer: {', '.join(f'{one.name} {one.newer} ({one.verdict.value})' for one in newer[:_SHOWN_CHANGES])}"
    if not verbose:
        return
    yield counts(stack.findings)
    shown = {id(finding) for finding in reasons}
    for finding in stack.findings:
        if finding.verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.WARN) and id(finding) not in shown:
            yield f"{finding.verdict.value} {finding.code}: {finding.summary}"
    for version in stack.newer:
        yield f"newer: {version.kind} {version.name} {version.locked} → {version.newer} ({version.verdict.value})"
    yield ", ".join(f"{name} {seconds:.1f} s" for name, seconds in stack.seconds.items())
    yield from (f"{name}: {os.path.normpath(folder / path)}" for name, path in stack.reports.items())


def _rebuilt(stack: StackNight) -> Finding | None:
    return next((finding for finding in stack.findings if finding.code == "rebuild-reproduces"), None)


def _measured(finding: Finding) -> Iterable[str]:
    """What an error says beyond its sentence, such as which keys of a lock are wrong."""
    if finding.measured and not finding.required and finding.measured not in finding.summary:
        lines = finding.measured.strip().splitlines()
        yield from lines[:_SHOWN_LINES]
        if len(lines) > _SHOWN_LINES:
            yield f"… {len(lines) - _SHOWN_LINES} further lines are in the JSON report"


def _tells(finding: Finding, stack: StackNight) -> bool:
    if stack.outcome == "drift":
        return finding.code in _DRIFT_CODES
    # A WARN is the reason only where it fails because of --strict.
    return finding.verdict is not Verdict.WARN or Verdict.FAIL not in stack.verdicts.values()


def _counted(stacks: Sequence[StackNight]) -> str:
    """For example ``1 drift, 2 unchanged``."""
    counted = Counter(stack.outcome for stack in stacks)
    return ", ".join(f"{counted[one]} {one}" for one in get_args(Outcome) if counted[one]) or "no stack"
