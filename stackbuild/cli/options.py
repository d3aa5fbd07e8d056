"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

import click

from stackbuild.cli.main import VERBOSE

F = TypeVar("F", bound=Callable[..., Any])

TABLE_AND_JSON = ("table", "json")


def remember_verbose(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    """Callback of -v: lets a failure show where it came from."""
    if value:
        ctx.find_root().meta[VERBOSE] = True
    return value


@overload
def output_options(function: F, /) -> F: ...


@overload
def output_options(*, formats: Sequence[str] = ...) -> Callable[[F], F]: ...


def output_options(
    function: F | None = None, /, *, formats: Sequence[str] = TABLE_AND_JSON
) -> F | Callable[[F], F]:
    """Add --format, -o, -q and -v as the parameters ``format_``, ``output``, ``quiet`` and ``verbose``.

    Args:
        function: The command's function, when used without brackets.
        formats: What --format takes; the first is the default.
    """

    def decorate(target: F) -> F:
        for option in (
            click.option("-v", "--verbose", is_flag=True, callback=remember_verbose, help="Tell more."),
            click.option("-q", "--quiet", is_flag=True, help="Tell errors only."),
            click.option(
                "-o",
                "--output",
                type=click.Path(dir_okay=False, path_type=Path),
                metavar="FILE",
                help="Write the result there, whole or not at all.",
            ),
            click.option(
                "--format",
                "format_",
                type=click.Choice(list(formats)),
                default=formats[0],
                show_default=True,
                help="How to show the result.",
            ),
        ):
            target = option(target)
        return target

    return decorate if function is None else decorate(function)


def stack_argument(function: F) -> F:
    """Add any number of STACK arguments as the parameter ``stacks``."""
    return click.argument("stacks", nargs=-1, metavar="[STACK]...")(function)
