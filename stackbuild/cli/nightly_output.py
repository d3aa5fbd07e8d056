"""Where the words of a night go: its result, JUnit beside it, and the reports of each stack."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from stackbuild.cli.output import json_text, plain, write_files, write_result
from stackbuild.cli.report_output import spec_annotations
from stackbuild.errors import SpecError, UsageError
from stackbuild.nightly.ground import Keep
from stackbuild.nightly.model import Night
from stackbuild.nightly.report import document_of_night, render_night
from stackbuild.output_file import require_folder, write_file
from stackbuild.reports.document import Document
from stackbuild.reports.formats import render_document
from stackbuild.reports.github import lines
from stackbuild.spec.load import load_spec


def keeper(folder: Path, start: Path) -> Keep:
    """What writes a stack's reports.

    Args:
        folder: Of the night; each stack gets one below it.
        start: The page's folder, which the names of the reports are relative to.
    """

    def keep(stack: str, documents: Mapping[str, bytes]) -> Mapping[str, str]:
        write_files(folder / stack, documents)
        return {name: Path(os.path.relpath(folder / stack / name, start)).as_posix() for name in documents}

    return keep


def forget_reports(folder: Path, keep: int) -> None:
    """Remove the reports of old nights, killed ones among them.

    Args:
        folder: Has a folder of each night, named by its id; everything else stays.
        keep: How many of the newest stay.
    """
    nights = [path for path in folder.glob("*Z-*") if re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{4}", path.name)]
    for path in sorted(nights)[:-keep]:
        with suppress(FileNotFoundError):  # another night removes them, too
            shutil.rmtree(path)


def require_places(history: Path, folders: Sequence[Path | None], files: Sequence[Path | None]) -> None:
    """Make sure, before a night begins, that what it finds can be written where the person said.

    Args:
        history: The file of the nights, which nothing else may be written to.
        folders: Of the page, the reports and the empty stores.
        files: The result and the JUnit XML.

    Raises:
        UsageError: ``output-unwritable``.
    """
    for folder in folders:
        if folder is not None:
            require_folder(folder)
    for file in files:
        if file is None or str(file) == "-":
            continue
        if file.resolve() == history.resolve():
            raise UsageError(
                "the history of nights would be lost: it is to be written over",
                code="output-unwritable",
                where=str(file),
                do="Name another file.",
            )
        if not file.exists() or file.is_file():
            require_folder(file.parent)


def write_night(
    night: Night,
    format_: str,
    output: Path | None,
    junit: Path | None,
    specs: Sequence[Path],
    *,
    strict: bool,
    verbose: bool,
    folder: Path,
) -> None:
    """Write a night in the format that was asked for, and as JUnit XML beside.

    Args:
        night: What was found.
        format_: One of ``REPORT_FORMATS``.
        output: The file; None for stdout.
        junit: The file of the JUnit XML; None for none.
        specs: Paths of the specs, whose lines annotations are about.
        strict: Whether a WARN counts as a failure.
        verbose: In a table, also warnings, newer versions, times and reports.
        folder: What the names of the reports are relative to.
    """
    document = document_of_night(night)
    try:
        shown = _shown(night, document, format_, output, specs, strict=strict, verbose=verbose, folder=folder)
        write_result(shown, output)
    finally:
        if junit is not None:
            write_file(junit, render_document(document, "junit", strict=strict).encode())


def _shown(
    night: Night,
    document: Document,
    format_: str,
    output: Path | None,
    specs: Sequence[Path],
    *,
    strict: bool,
    verbose: bool,
    folder: Path,
) -> str:
    if format_ == "json":
        return json_text(night.model_dump(mode="json", by_alias=True))
    if format_ == "github":
        return _annotations(night, specs)
    if format_ == "table":
        colour = output is None and not plain(sys.stdout)
        width = shutil.get_terminal_size().columns
        return render_night(night, colour=colour, width=width, verbose=verbose, folder=folder)
    return render_document(document, format_, strict=strict)


def _annotations(night: Night, specs: Sequence[Path]) -> str:
    """Every finding at the line of the spec that it is about."""
    loaded = {}
    for path in specs:
        try:
            stack = load_spec(path)
        except SpecError:  # the night has it as a finding
            continue
        loaded[stack.spec.name] = stack
    return lines(
        told
        for stack in night.stacks
        for told in spec_annotations(stack.findings, loaded.get(stack.stack), stack.stack)
    )
