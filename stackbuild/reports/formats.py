"""The formats of a report, by the names that ``--format`` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackbuild.reports.document import Document

REPORT_FORMATS = ("table", "json", "junit", "markdown", "github", "html")
SCAN_FORMATS = ("table", "json", "junit", "markdown", "html")
CHECK_FORMATS = ("table", "json", "junit", "markdown", "github")


def render_document(document: Document, format_: str, *, strict: bool = False) -> str:
    """A document in one of the formats that need no terminal and no spec: junit, markdown or html.

    Args:
        document: What to write.
        format_: The format's name.
        strict: Whether a WARN counts as a failure.
    """
    if format_ == "junit":
        from stackbuild.reports.junit import render_junit

        return render_junit(document, strict=strict)
    if format_ == "markdown":
        from stackbuild.reports.markdown import render_markdown

        return render_markdown(document)
    from stackbuild.reports.html_report import render_html

    return render_html(document)
