"""The ``stackbuild`` command: finds the subcommand lazily and turns failures into sentences and exit codes.

Nothing but click is imported until a command runs, so that help and completion answer at once.
"""

from __future__ import annotations

import errno
import gc
import importlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stackbuild.errors import StackbuildError

# Name → (module that defines ``command``, one line of help). In the order a person needs them.
COMMANDS = {
    "init": ("stackbuild.cli.init", "Write a commented spec to start from."),
    "import": ("stackbuild.cli.import_image", "Draft a spec from an image that others built."),
    "lock": ("stackbuild.cli.lock", "Pin every input of a stack."),
    "check": ("stackbuild.cli.check", "Judge specs and locks, without Docker or a GPU."),
    "render": ("stackbuild.cli.render", "Show a stack as a Dockerfile."),
    "build": ("stackbuild.cli.build", "Build images from locks."),
    "scan": ("stackbuild.cli.scan", "Judge what is in an image, without starting it."),
    "sbom": ("stackbuild.cli.sbom", "Write the CycloneDX SBOM of an image."),
    "diff": ("stackbuild.cli.diff", "Say what differs between two images, locks or SBOMs."),
    "verify": ("stackbuild.cli.verify", "Run the verification suite in an image."),
    "publish": ("stackbuild.cli.publish", "Judge an image in its registry, then tag it for others."),
    "inspect": ("stackbuild.cli.inspect", "Show what an image stands for."),
    "pick": ("stackbuild.cli.pick", "Choose the best tag of a repository for a host."),
    "matrix": ("stackbuild.cli.matrix", "List the jobs of a CI service: build, judge, promote."),
    "nightly": ("stackbuild.cli.nightly", "Rebuild everything from nothing, and say what is not as it was."),
    "host": ("stackbuild.cli.host", "Show this host's drivers and GPUs and what they can run."),
    "explain": ("stackbuild.cli.explain", "Explain a code or a pasted error message."),
    "facts": ("stackbuild.cli.facts", "Show the compatibility facts and their sources."),
    "schema": ("stackbuild.cli.schema", "Print the JSON schema of the spec."),
    "store": ("stackbuild.cli.store", "Show, check or empty the store."),
}

VERBOSE = "stackbuild.verbose"  # key in the root context's meta: -v was given
WITH_PARENT = "STACKBUILD_WITH_PARENT"  # variable: another stackbuild began this one, and it ends with that

_INTERRUPTED = 130
_USAGE = 2
_GARBAGE_THRESHOLD = 50_000
_DEAF = 10.0  # seconds; a clean-up that hangs can be stopped after that


class LazyGroup(click.Group):
    """A group whose commands are imported when they run; help comes from the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name][0]}.command is not a click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name suggested for an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from stackbuild.spelling import closest

            near = closest(args[0], COMMANDS)
            hint = f" Did you mean '{near}'?" if near else " 'stackbuild --help' lists them."
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The commands with the table's help, none of them imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from stackbuild import __version__

        click.echo(f"stackbuild {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 passed, 1 a gate failed, 2 usage, 3 spec or lock, 4 build failed, 5 could not be "
    "judged, 6 drift, 130 interrupted.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Turn a short YAML spec of a GPU machine-learning stack into a pinned, verified container image."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Args:
        args: The arguments; the process's own when None.
    """
    _open_closed_streams()
    # Windows, where 'stackbuild host' and 'check' are of use, knows no SIGHUP.
    interrupt = _Interrupt()
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, interrupt)
    if os.environ.pop(WITH_PARENT, ""):
        from stackbuild.cli.parent import end_with_parent

        end_with_parent()
    # Most of a short command is imports: none of what they make is garbage, and pydantic's plug-ins, which
    # it looks for among all installed distributions, have no say in stackbuild's models.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        code = run(list(sys.argv[1:] if args is None else args))
    except KeyboardInterrupt:  # it came when all was told, and nothing was left to interrupt
        code = _INTERRUPTED
    interrupt.deafen()
    gc.freeze()  # looking through all that was imported once more, for the system to take it back, helps nobody
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open on nothing what the caller closed of stdin, stdout and stderr.

    Else the next file that is opened takes the number, and what a child process prints goes into that file.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


class _Interrupt:
    """Raises KeyboardInterrupt, once: an impatient second Ctrl-C would stop the clean-up that the first began."""

    def __init__(self) -> None:
        self._deaf_until = 0.0

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if now >= self._deaf_until:
            self._deaf_until = now + _DEAF
            raise KeyboardInterrupt

    def deafen(self) -> None:
        """Raise nothing for a while: the process is about to end by itself, with the code that it has."""
        self._deaf_until = time.monotonic() + _DEAF


def run(args: list[str]) -> int:
    """Run the command line and return its exit code; failures are told on stderr."""
    verbose = False
    try:
        with cli.make_context("stackbuild", args) as ctx:
            try:
                cli.invoke(ctx)
            finally:
                verbose = bool(ctx.meta.get(VERBOSE))
    except click.exceptions.Exit as exit_:
        return _flushed(exit_.exit_code)
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return _USAGE
    except (KeyboardInterrupt, click.Abort):
        # CPython 3.11 remembers an interrupt that came while a dataclass was being made, and ends `python -m`
        # with the signal even though it was handled. Running any text makes it forget.
        exec("")  # noqa: S102
        _tell("interrupted; nothing left behind")
        return _INTERRUPTED
    except BrokenPipeError:
        return _flushed(0)
    except Exception as error:  # noqa: BLE001 - the last resort: every failure gets a sentence and a code
        return _told(error, verbose=verbose)
    return _flushed(0)


def _flushed(code: int) -> int:
    """``code``, with stdout flushed: a reader that has gone away is not a failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Else the interpreter complains again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _told(error: Exception, *, verbose: bool) -> int:
    if verbose:
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True)
    told = _as_ours(error, verbose=verbose)
    if _while_interrupted(error):
        _tell(f"interrupted, and not all could be undone: {told}\n[{told.code}]")
        return _INTERRUPTED
    _tell(f"{told}\n[{told.code}]")
    return int(told.exit_code)


def _while_interrupted(error: BaseException) -> bool:
    """True for a failure of what an interrupt had set going."""
    before: BaseException | None = error
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__cause__ or before.__context__
    return before is not None


def _as_ours(error: Exception, *, verbose: bool) -> StackbuildError:
    """Any failure as one with a code and a next step."""
    from stackbuild.errors import BuildError, NotJudgedError, StackbuildError

    if isinstance(error, StackbuildError):
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return BuildError(
            f"The disk is full{f': {error.filename}' if error.filename else ''}.", code="disk-full"
        )
    if isinstance(error, FileNotFoundError) and (vanished := _vanished(error)) is not None:
        return vanished
    # A mistake in stackbuild itself says nothing of the image: "could not be judged".
    return NotJudgedError(
        f"This is a mistake in stackbuild itself: {type(error).__name__}: {error}",
        code="internal-error",
        do="" if verbose else "Run the same command with -v to see where, and report it.",
    )


def _vanished(error: FileNotFoundError) -> StackbuildError | None:
    """What is said of a missing file when it is one of the store here."""
    from stackbuild.cli.context import project
    from stackbuild.errors import StackbuildError
    from stackbuild.store.vanished import store_vanished

    try:
        return store_vanished(error, [project().store_root])
    except (StackbuildError, OSError):  # no folder to be in, or a site file that cannot be read
        return None


def _tell(message: str) -> None:
    from stackbuild.reports.safe_text import safe_text

    plain = bool(os.environ.get("NO_COLOR"))
    # It may quote a registry, an archive, a name: nothing of those acts on a terminal.
    said = click.style("stackbuild: ", fg="red", bold=True) + safe_text(message)
    with suppress(OSError):  # nobody hears it; the exit code still tells
        click.echo(said, err=True, color=False if plain else None)


if __name__ == "__main__":
    main()
