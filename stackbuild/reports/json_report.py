"""A report as JSON, for machines; the schemas of all reports are committed beside this file."""

from __future__ import annotations

from stackbuild.reports.interface import Report


def render_json(report: Report) -> str:
    """The whole report as JSON, two spaces a level, in the model's order."""
    return report.model_dump_json(by_alias=True, indent=2) + "\n"
