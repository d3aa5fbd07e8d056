"""``stackbuild explain``: what a code, or a pasted error, means and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackbuild.cli.options import output_options

if TYPE_CHECKING:
    from stackbuild.errors import UsageError
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
    pages, unknown = ((), ()) if from_stdin else _pages(words, facts)
    if pages and not unknown:
        document: Any = explanation_document(pages)
        text = "\n".join(render_explanation(page) for page in pages)
    else:
        found, near = _recognised(_stdin() if from_stdin else _lines(words), facts)
        if not found and unknown:
            if pages:
                document = explanation_document(pages)
                text = "\n".join(render_explanation(page) for page in pages)
                write_result(json_text(document) if format_ == "json" else text, output)
            raise _unknown_codes(unknown, facts)
        document = recognised_document(found, near)
        text = render_recognised(found, verbose=verbose) if found else render_unknown(near)
    write_result(json_text(document) if format_ == "json" else text, output)


def _pages(words: tuple[str, ...], facts: Facts) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The pages of known codes, and the unknown ones; neither where the words are a text."""
    from stackbuild.explain.lookup import as_code, explanation

    codes = [code for word in words if (code := as_code(word)) is not None]
    if len(codes) < len(words):
        return (), ()
    found = {code: explanation(code, facts) for code in codes}
    unknown = tuple(code for code, page in found.items() if page is None)
    # Words without a hyphen, of which no code is, are a sentence.
    if len(words) > 1 and len(unknown) == len(found) and not all("-" in code for code in codes):
        return (), ()
    return tuple(page for page in found.values() if page is not None), unknown


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


def _unknown_codes(codes: tuple[str, ...], facts: Facts) -> UsageError:
    """What has the form of a code is a code that was mistaken, not a text."""
    from stackbuild.errors import UsageError
    from stackbuild.explain.lookup import near_codes

    near = {code: near_codes(code, facts) for code in codes}
    if len(codes) == 1:
        (guesses,) = near.values()
        meant = f"Did you mean {' or '.join(guesses)}?" if guesses else ""
    else:
        told = [f"{' or '.join(guesses)} for {code}" for code, guesses in near.items() if guesses]
        meant = f"Did you mean {', '.join(told)}?" if told else ""
    named = " and no code ".join(repr(code) for code in codes)
    return UsageError(
        f"There is no code {named}, and it is no error text that is known.",
        code="unknown-code",
        do=meant or "docs/gates.md lists all codes.",
    )


def _lines(words: tuple[str, ...]) -> list[str]:
    return " ".join(words).splitlines()


def _stdin() -> Iterator[str]:
    """Lines of stdin, whatever bytes they hold; an endless line comes in pieces."""
    from stackbuild.explain.recognise import bounded_lines

    yield from bounded_lines(sys.stdin.buffer)
