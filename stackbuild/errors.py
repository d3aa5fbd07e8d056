"""Every failure stackbuild reports, with its exit code (DESIGN §5).

An error is a sentence for a tired person: what happened, where, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    SPEC_OR_LOCK = 3
    BUILD_FAILED = 4
    NOT_JUDGED = 5
    DRIFT = 6
    INTERRUPTED = 130


# Which code wins when several apply, first wins.
_PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.USAGE,
    ExitCode.SPEC_OR_LOCK,
    ExitCode.BUILD_FAILED,
    ExitCode.GATE_FAILED,
    ExitCode.NOT_JUDGED,
    ExitCode.DRIFT,
    ExitCode.OK,
)


def leading_exit_code(codes: Iterable[int]) -> ExitCode:
    """Return the one exit code that stands for all of ``codes`` (OK when there are none)."""
    present = {ExitCode(code) for code in codes}
    for code in _PRECEDENCE:
        if code in present:
            return code
    return ExitCode.OK


class StackbuildError(Exception):
    """Base of every failure that is reported to a person.

    Args:
        what: One sentence: what went wrong.
        code: The stable kebab-case code that ``stackbuild explain`` knows.
        where: The file, stack, image or step it concerns; empty when ``what`` says it.
        do: What to do next, as a sentence.
        detail: Further lines, such as the last output of a failed step.
    """

    exit_code: ExitCode = ExitCode.NOT_JUDGED

    def __init__(self, what: str, *, code: str, where: str = "", do: str = "", detail: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.code = code
        self.where = where
        self.do = do
        self.detail = detail

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.detail:
            lines.extend(f"    {line}" for line in self.detail.splitlines())
        if self.do:
            lines.append(self.do)
        return "\n".join(lines)


class UsageError(StackbuildError):
    """The command line itself is wrong."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class SpecProblem:
    """One thing that is wrong in a spec or in a file it reads.

    Attributes:
        code: Stable kebab-case code, ``spec-invalid`` where no finer one exists.
        file: The file as the person named it.
        line: Line, from 1; 0 when the problem is the file as a whole.
        column: Column, from 1; 0 when the problem is the file as a whole.
        message: A plain sentence.
        suggestion: What to write in its place; may be empty.
        text: The source line.
    """

    code: str
    file: str
    line: int
    column: int
    message: str
    suggestion: str = ""
    text: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        lines = [f"{place}: {self.message} [{self.code}]"]
        if self.text:
            lines += [f"    {self.text}", "    " + " " * (self.column - 1) + "^"]
        if self.suggestion:
            lines.append(f"    {self.suggestion}")
        return "\n".join(lines)


class SpecError(StackbuildError):
    """The spec is not valid; ``problems`` holds all of them, ``detail`` shows them with line and column."""

    exit_code = ExitCode.SPEC_OR_LOCK

    def __init__(
        self,
        what: str,
        *,
        code: str = "spec-invalid",
        where: str = "",
        do: str = "",
        detail: str = "",
        problems: Sequence[SpecProblem] = (),
    ) -> None:
        super().__init__(what, code=code, where=where, do=do, detail=detail)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, file: str, problems: Sequence[SpecProblem]) -> SpecError:
        """Make one error of all problems found; its code is theirs when they agree."""
        codes = {problem.code for problem in problems}
        return cls(
            "one problem in the spec" if len(problems) == 1 else f"{len(problems)} problems in the spec",
            code=codes.pop() if len(codes) == 1 else "spec-invalid",
            where=file,
            detail="\n".join(str(problem) for problem in problems),
            problems=problems,
        )


class LockError(StackbuildError):
    """The lock is missing, stale or cannot be made or honoured as it is."""

    exit_code = ExitCode.SPEC_OR_LOCK


class BuildError(StackbuildError):
    """A layer maker, a step of the Dockerfile or the disk failed."""

    exit_code = ExitCode.BUILD_FAILED


class NotJudgedError(StackbuildError):
    """Infrastructure trouble: no engine, an index or registry that is down or limiting, no GPU."""

    exit_code = ExitCode.NOT_JUDGED


def foreign_architecture(detail: str, where: str = "") -> NotJudgedError:
    """The error for programs of another processor, which this machine cannot run."""
    return NotJudgedError(
        "This machine cannot run programs of that architecture.",
        code="foreign-architecture",
        where=where,
        detail=detail,
        do="Do this on a machine of that architecture, or install its emulation: apt-get install arch-test "
        "qemu-user-static binfmt-support (with sudo).",
    )


class ScanError(StackbuildError):
    """An image, or a file in one, cannot be read: cut off, hostile or of an unknown format."""

    exit_code = ExitCode.NOT_JUDGED


class InterruptedRunError(StackbuildError):
    """The person stopped the run; everything half-made has been removed."""

    exit_code = ExitCode.INTERRUPTED
