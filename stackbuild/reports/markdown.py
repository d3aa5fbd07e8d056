"""A report as GitHub Flavored Markdown, for pull requests and job summaries.

Source: GitHub Flavored Markdown Spec 0.29 (tables, HTML blocks, fenced code). A comment holds 65,536 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackbuild.findings import Finding, Verdict
from stackbuild.reports.document import Document, Part, evidence
from stackbuild.reports.safe_text import safe_line, safe_text, shortened
from stackbuild.reports.summary import GRAVEST_FIRST, counts, not_judged

_LONGEST_DOCUMENT = 60_000
_LONGEST_EVIDENCE = 4_000
_LONGEST_LOG = 8_000
_MOST_ROWS = 150
_LONGEST_CELL = 400
_SYMBOLS = {
    Verdict.PASS: "✅",
    Verdict.WARN: "⚠️",
    Verdict.FAIL: "❌",
    Verdict.ERROR: "❗",
    Verdict.SKIP: "➖",
}
_HEADS = {
    True: "| Verdict | Gate | On | Finding |\n|---|---|---|---|\n",
    False: "| Verdict | Gate | Finding |\n|---|---|---|\n",
}
_GRAVE = (Verdict.FAIL, Verdict.ERROR, Verdict.WARN)
# What ends a cell or a code span, or is mark-up.
_ENTITIES = tuple((character, f"&#{ord(character)};") for character in "|`*_[]\\~")
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()|~])")
# A mention or the number of an issue, which would notify people or link somewhere.
_REFERENCES = re.compile(r"([@#])(?=\w)")
# A link that is made without any mark-up.
_LINK = re.compile(r"(?i)\b(https?|ftp|www|mailto)(?=[:.])")


def render_markdown(document: Document) -> str:
    """The document as Markdown: verdict, gates, next steps, and evidence that is folded away."""
    head = f"### {_SYMBOLS[document.verdict]} {document.word}: {inline(document.title)}"
    parts = [f"{head}\n\n{_counted(document)}\n"]
    parts.append("".join(f"* {inline(name)}: {code_span(value)}\n" for name, value in document.facts))
    parts.extend(_gates(document))
    parts.extend(_next_steps(document))
    parts.extend(_stack(document))
    text = "\n".join(part for part in parts if part)
    left = 0
    for block in _evidence(document):
        if len(text) + len(block) > _LONGEST_DOCUMENT:
            left += 1
        else:
            text += f"\n{block}"
    if left:
        text += f"\n{left} further pieces of evidence are in the JSON report.\n"
    return text


def _counted(document: Document) -> str:
    missing = not_judged(document.findings)
    told = counts(document.findings) or "nothing was judged"
    if document.complete:
        return f"{told}; complete"
    return f"{told}; **not complete**: {', '.join(code_span(code) for code in missing)} not judged"


def _gates(document: Document) -> Iterator[str]:
    several = len(document.parts) > 1
    rows = [(part, finding) for part in document.parts for finding in part.findings if finding.applies]
    grave = [row for row in rows if row[1].verdict in _GRAVE]
    # Of many stacks and hosts only what needs attention; of one image every gate.
    shown = sorted(grave if several else rows, key=lambda row: GRAVEST_FIRST.index(row[1].verdict))
    if not shown:
        return
    first = _HEADS[several]
    yield first + "".join(_row(part, finding, several=several) for part, finding in shown[:_MOST_ROWS])
    if len(shown) > _MOST_ROWS:
        yield f"{len(shown) - _MOST_ROWS} further rows are in the JSON report.\n"


def _row(part: Part, finding: Finding, *, several: bool) -> str:
    on = f" {inline(part.name)} |" if several else ""
    waived = f" (waived: {inline(finding.waived)})" if finding.waived else ""
    return (
        f"| {_SYMBOLS[finding.verdict]} {finding.verdict.value} | `{finding.code}` |{on} "
        f"{inline(finding.summary)}{waived} |\n"
    )


def _next_steps(document: Document) -> Iterator[str]:
    graves = (finding for finding in document.findings if finding.verdict in _GRAVE and finding.next_step)
    gravest_first = sorted(graves, key=lambda finding: GRAVEST_FIRST.index(finding.verdict))
    steps = dict.fromkeys((finding.code, finding.next_step) for finding in gravest_first)
    advice = dict.fromkeys(f"{part.name}: {line}" for part in document.parts for line in part.advice)
    if not steps and not advice:
        return
    lines = [f"1. `{code}`: {inline(step)}\n" for code, step in steps]
    lines += [f"1. {inline(line)}\n" for line in advice]
    yield "#### Next steps\n\n" + "".join(lines[:_MOST_ROWS])


def _stack(document: Document) -> Iterator[str]:
    if document.stack:
        rows = "".join(
            f"| {inline(row.name)} | {code_span(row.value)} | {code_span(row.required) if row.required else ''} |\n"
            for row in document.stack
        )
        yield _folded("Frozen stack", f"| | Here | Must be |\n|---|---|---|\n{rows}")


def _evidence(document: Document) -> Iterator[str]:
    for part in document.parts:
        for finding in part.findings:
            told = list(evidence(finding)) if finding.verdict in _GRAVE else []
            if told:
                text = "\n".join(_labelled(name, value) for name, value in told)
                # Inside an HTML block Markdown is not read, so that its escapes would show.
                named = [finding.code, finding.subject, part.name if len(document.parts) > 1 else ""]
                about = " ".join(code_span(name) for name in named if name)
                yield _folded(f"Evidence: {about}", _fenced(shortened(text, _LONGEST_EVIDENCE)))
    if document.log:
        yield _folded("Container log", _fenced(shortened(document.log, _LONGEST_LOG)))


def _labelled(name: str, text: str) -> str:
    return f"{name}:\n{text}" if "\n" in text else f"{name}: {text}"


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{content}\n</details>\n"


def _fenced(text: str) -> str:
    safe = safe_text(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", safe)), default=0))
    return f"{fence}text\n{safe}\n{fence}\n"


def code_span(text: str) -> str:
    """As code: nothing in it is read as mark-up, mention or link."""
    safe = shortened(safe_line(text), _LONGEST_CELL).replace("\n", " ")
    if not safe:
        return ""
    # A pipe ends a cell even in code, and a backtick would end it: as entities, in HTML's own element.
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), *_ENTITIES):
        safe = safe.replace(character, entity)
    return f"<code>{safe}</code>"


def inline(text: str) -> str:
    """As running text of one line: nothing in it is read as mark-up, mention or link."""
    safe = shortened(safe_line(text), _LONGEST_CELL).replace("\n", " ")
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINK.sub(r"\1<!-- -->", _REFERENCES.sub(r"\1<!-- -->", _PUNCTUATION.sub(r"\\\1", safe)))
