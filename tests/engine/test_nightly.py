"""``stackbuild nightly`` against a real engine, registry, index and apt repository: rebuilds and what they equal."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from stackbuild.lock.path import lock_path
from stackbuild.nightly.history.history import History
from tests.engine.nights import Nights, nights, one_night_project, verdicts

pytestmark = pytest.mark.engine
__all__ = ["nights", "one_night_project"]  # fixtures


def test_an_unchanged_night_says_so(nights: Nights, tmp_path: Path) -> None:
    project = nights.project
    name = project.write("plain", wheels=[project.wheel("leaf", "1.0")])
    lock = lock_path(project.stacks / f"{name}.yaml").read_bytes()
    page = tmp_path / "page"
    code, first = nights.of(name, "--page", str(page))
    assert code == 0, first.findings
    assert (first.outcome, first.complete, first.compared_with) == ("unchanged", True, "")
    assert "nothing to compare with" in _told(first, "rebuild-reproduces")
    assert len(first.diff_ids) > 2
    assert first.size > 50_000_000
    assert {"inputs", "rebuild", "scan", "verify", "newer", "total"} <= set(first.seconds)
    assert first.pins["stack"] == name

    # A newer leaf is on the index now: told, with the judge's answer, and no drift.
    project.wheel("leaf", "1.1")
    code, second = nights.of(name, "--page", str(page))
    assert code == 0, second.findings
    assert second.outcome == "unchanged"
    assert (second.config_digest, second.diff_ids) == (first.config_digest, first.diff_ids)
    assert second.compared_with.startswith("the night of ")
    assert "the same as the night of" in _told(second, "rebuild-reproduces")
    assert [(one.name, one.locked, one.newer, str(one.verdict)) for one in second.newer] == [
        ("leaf", "1.0", "1.1", "PASS")
    ]

    assert lock_path(project.stacks / f"{name}.yaml").read_bytes() == lock, "a night writes no lock"
    assert project.names() == {f"{name}:nightly"}, "no tag that people use is moved or made"
    assert project.left_behind() == []
    with History(nights.history) as history:
        assert len(history.nights()) == 2
    assert name in (page / "index.html").read_text()
    suite = ElementTree.parse(page / "nightly.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    for document in ("report.json", "report.html", "scan.json", "sbom.json"):
        assert (page / second.reports[document]).is_file(), "links are relative to the page"
    assert json.loads((page / second.reports["sbom.json"]).read_text())["bomFormat"] == "CycloneDX"

    # A quick night builds nothing and judges the image that is there.
    code, quick = nights.of(name, "--no-rebuild")
    assert code == 0, quick.findings
    assert (quick.outcome, quick.complete, quick.image) == ("unchanged", False, f"{name}:nightly")
    assert verdicts(quick)["rebuild-reproduces"] == "SKIP"
    assert "rebuild" not in quick.seconds
    project.clean()
    code, quick = nights.of(name, "--no-rebuild")
    assert (code, quick.tries) == (5, 1)
    assert verdicts(quick)["image-missing"] == "ERROR"


def _told(stack: object, code: str) -> str:
    (summary,) = [finding.summary for finding in stack.findings if finding.code == code]  # type: ignore[attr-defined]
    return str(summary)
