"""A drift as one HTML page that needs nothing else: tables of pins, packages and files by their owners."""

from __future__ import annotations

from stackbuild import __version__
from stackbuild.drift.findings import layer_text
from stackbuild.drift.model import Drift, DriftVerdict
from stackbuild.findings import Finding, Verdict
from stackbuild.reports.drift_summary import VERDICT_WORDS, file_text, outcome, owned_files
from stackbuild.reports.page_template import page_part, page_template
from stackbuild.reports.safe_text import shortened

_PACKAGE = "stackbuild.reports"
_MOST_ROWS = 1_000
_EXAMPLES = 5
_LONGEST_CELL = 2_000
_CLASSES: dict[DriftVerdict, str] = {"same": "pass", "change": "skip", "drift": "warn"}


def render_drift_html(drift: Drift) -> str:
    """The drift as a page: verdict, both sides with their digests, what moved, what could not be compared.

    Args:
        drift: What to show; of each table the first 1,000 rows, JSON has all.
    """
    files = owned_files(drift.files, examples=_EXAMPLES)
    tables = (("pins", len(drift.pins)), ("packages", len(drift.packages)), ("owners of files", len(files)))
    return page_template(_PACKAGE, "drift.html.jinja").render(
        drift=drift,
        style=page_part(_PACKAGE, "report.css"),
        word=VERDICT_WORDS[drift.verdict],
        css_class=_CLASSES[drift.verdict],
        outcome=outcome(drift),
        layer=layer_text(drift.first_layer) if drift.first_layer is not None and drift.differs else "",
        pins=drift.pins[:_MOST_ROWS],
        packages=drift.packages[:_MOST_ROWS],
        files=files[:_MOST_ROWS],
        left_out=[f"{count - _MOST_ROWS:,} more {name}" for name, count in tables if count > _MOST_ROWS],
        unjudged=[finding for finding in drift.findings if _is_unjudged(finding)],
        file_text=file_text,
        cell=lambda text: shortened(text, _LONGEST_CELL),
        version=__version__,
    )


def _is_unjudged(finding: Finding) -> bool:
    return finding.verdict in (Verdict.ERROR, Verdict.FAIL)
