"""``stackbuild explain``: what a code, or a pasted error, means and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackbuild.cli.options import output_options

if TYPE_CHECKING:
    from stackbuild.facts.tables import Facts

_TAIL = 20  # last lines of a text that are compared with known ones when nothing is recognised


@click.command("explain")
@click.argument("words", nargs=-1, metavar="[CODE|TEXT]...")
@output_options
def command(
    words: tuple[str, ...],
    format_: str,
    output: Path | None,
    quiet: bool,  # noqa: ARG001
    verbose: bool,
) -> None:
    """Explain a code such as driver-too-old, or a pasted error or log.

    Without an argument, or with -, the text is read from stdin, however long. Exit codes: 0 explained, also
    when a text is not recognised (it then says what to collect); 2 a word that is neither a code nor known.
    """
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.errors import UsageError
    from stackbuild.facts.tables import Facts
    from stackbuild.reports.explanation import (
        explanation_document,
        recognised_document,
        render_explanation,
        render_recognised,
        render_unknown,
    )

    facts = Facts()
    from_stdin = words in ((), ("-",))
    if from_stdin and not words and sys.stdin.isatty():
        raise UsageError(
            "There is nothing to explain.",
            code="usage",
            do="Name a code, paste an error in quotes, or pipe a log in: docker logs NAME 2>&1 | stackbuild explain",
        )
    pages = () if from_stdin else _pages(words, facts)
    if pages:
        document: Any = explanation_document(pages)
        text = "\n".join(render_explanation(page) for page in pages)
    else:
        found, near = _recognised(_stdin() if from_stdin else _lines(words), facts)
        if not found and not from_stdin:
            _refuse_unknown_code(words, facts)
        document = recognised_document(found, near)
        text = render_recognised(found, verbose=verbose) if found else render_unknown(near)
    write_result(json_text(document) if format_ == "json" else text, output)


def _pages(words: tuple[str, ...], facts: Facts) -> tuple[Any, ...]:
    """The pages of the words when every one of them is a known code, else nothing."""
    from stackbuild.explain.lookup import as_code, explanation

    codes = [as_code(word) for word in words]
    found = [explanation(code, facts) for code in codes if code is not None]
    return tuple(found) if len(found) == len(words) and None not in found else ()


def _recognised(lines: Iterable[str], facts: Facts) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    from collections import deque

    from stackbuild.explain.lookup import near_failures
    from stackbuild.explain.recognise import recognise

    last: deque[str] = deque(maxlen=_TAIL)

    def remembered() -> Iterator[str]:
        for line in lines:
            last.append(line)
            yield line

    found = recognise(remembered(), facts)
    return found, () if found else near_failures(list(last), facts)


def _refuse_unknown_code(words: tuple[str, ...], facts: Facts) -> None:
    """A single word with the form of a code is a code that was mistaken, not a text."""
    from stackbuild.errors import UsageError
    from stackbuild.explain.lookup import as_code, near_codes

    code = as_code(words[0]) if len(words) == 1 else None
    if code is None:
        return
    near = near_codes(code, facts)
    raise UsageError(
        f"There is no code {code!r}, and it is no error text that is known.",
        code="unknown-code",
        do=f"Did you mean {' or '.join(near)}?" if near else "docs/gates.md lists all codes.",
    )


def _lines(words: tuple[str, ...]) -> list[str]:
    return " ".join(words).splitlines()


def _stdin() -> Iterator[str]:
    """Lines of stdin, whatever bytes they hold; an endless line comes in pieces."""
    from stackbuild.explain.recognise import bounded_lines

    yield from bounded_lines(sys.stdin.buffer)
