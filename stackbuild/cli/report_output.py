"""Writes a verification's report in the format that was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackbuild.findings import Finding
    from stackbuild.spec.load import LoadedSpec
    from stackbuild.verification.model import VerificationReport


def write_verification(
    report: VerificationReport,
    format_: str,
    output: Path | None,
    *,
    spec_path: Path | None,
    strict: bool,
    verbose: bool,
) -> None:
    """Write a report to stdout or a file.

    Args:
        report: The report.
        format_: One of ``REPORT_FORMATS``.
        output: The file; None for stdout.
        spec_path: The stack's spec, whose lines annotations are about; None for an image.
        strict: Whether a WARN counts as a failure.
        verbose: In a table, also what passed.
    """
    import shutil
    import sys

    from stackbuild.cli.output import plain, write_result

    if format_ == "json":
        from stackbuild.reports.json_report import render_json

        write_result(render_json(report), output)
    elif format_ == "github":
        from stackbuild.reports.github import lines

        write_result(lines(spec_annotations(report.findings, _loaded(spec_path))), output)
    elif format_ == "table":
        from stackbuild.reports.console import render_console
        from stackbuild.reports.verification import stack_rows

        colour = output is None and not plain(sys.stdout)
        text = render_console(
            report,
            colour=colour,
            width=shutil.get_terminal_size().columns,
            verbose=verbose,
            stack=stack_rows(report) if verbose else (),
        )
        write_result(text, output)
    else:
        from stackbuild.reports.formats import render_document
        from stackbuild.reports.verification import document_of_verification

        write_result(render_document(document_of_verification(report), format_, strict=strict), output)


def spec_annotations(findings: Iterable[Finding], loaded: LoadedSpec | None, about: str = "") -> list[str]:
    """Every finding at the line of the spec that it is about; of no file where there is no spec.

    Args:
        findings: The findings.
        loaded: The spec.
        about: The host they were judged on; empty for the stack itself.
    """
    from stackbuild.compat.spec_key import spec_key
    from stackbuild.reports.github import annotation

    told = []
    for finding in findings:
        if loaded is None:
            told.append(annotation(finding, about=about))
            continue
        _, line, column = loaded.where(*spec_key(finding)).rsplit(":", 2)
        file = from_here(str(loaded.path))
        told.append(annotation(finding, file=file, line=int(line), column=int(column), about=about))
    return told


def from_here(path: str) -> str:
    """A path relative to the current folder where it lies below it: annotations want paths of the checkout."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if path and Path(path).is_relative_to(here) else path


def _loaded(spec_path: Path | None) -> LoadedSpec | None:
    from stackbuild.spec.load import load_spec

    return load_spec(spec_path) if spec_path is not None else None
