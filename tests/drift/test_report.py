"""A drift as reports show it."""

from __future__ import annotations

import json
from pathlib import Path

from stackbuild.drift.findings import layer_text
from stackbuild.drift.model import Drift, FileChange, LayerChange, PackageChange, Side
from stackbuild.nightly.comparing import told
from stackbuild.nightly.page.changes import change_line
from stackbuild.reports.drift_console import render_drift
from stackbuild.reports.drift_markdown import render_drift_markdown
from stackbuild.reports.drift_summary import NOBODY, outcome, owned_files
from stackbuild.reports.json_report import render_json
from tests.drift.images import OS, of_layers
from tests.support.report_schemas import committed_schema, report_schema


def side(name: str) -> Side:
    return Side(name=name, kind="image", platform="linux/amd64")


def file(path: str, owner: str = "", **more: object) -> FileChange:
    values = {"change": "changed", "what": ("content",), **more}
    return FileChange(path=path, owner=owner, **values)


def many(count: int) -> Drift:
    files = tuple(file(f"/srv/{number:06}", f"p{number % 200} 1") for number in range(count))
    packages = tuple(
        PackageChange(kind="deb", name=f"p{number}", change="removed", before="1", breaking=True, why="x")
        for number in range(500)
    )
    levels = ("pins", "packages", "files")
    return Drift(before=side("a"), after=side("b"), levels=levels, files=files, packages=packages)


def test_the_committed_schema_is_current() -> None:
    assert committed_schema("drift.schema.json") == report_schema(Drift)


def test_json_is_complete_and_reads_back(tmp_path: Path) -> None:
    drift = of_layers(tmp_path, [OS, {"a": "1"}], [OS, {"a": "2"}])
    text = render_json(drift)
    assert Drift.model_validate_json(text) == drift
    assert json.loads(text)["first-layer"]["number"] == 2
    assert len(json.loads(render_json(many(10_000)))["files"]) == 10_000


def test_thousands_of_files_are_a_page_for_a_person() -> None:
    drift = many(10_000)
    shown = render_drift(drift, colour=False)
    assert shown.count("\n") < 200
    assert "  p0 1: 50 changed\n" in shown
    assert "    and 47 more\n" in shown
    assert "and those of 180 more packages; -v shows them" in shown
    assert "and 460 more; -v shows them" in shown
    assert "DRIFT  500 packages, 10,000 files differ; 500 may break users" in shown
    assert render_drift(drift, colour=False, verbose=True).count("\n") > 10_000
    assert len(render_drift_markdown(drift)) < 65_536
    assert "and 400 more" in render_drift_markdown(drift)


def test_files_are_told_by_their_package() -> None:
    groups = owned_files(
        [
            file("/a"),
            file("/b", "numpy 2", change="added", what=()),
            file("/c", "numpy 1", change="removed", what=()),
            file("/d", "numpy 2"),
            file("/e", "six 1", change="removed", what=()),
            file("/f", "six 1", change="removed", what=()),
            file("/g", "log 1", noise="log"),
        ]
    )
    assert [(group.owner, group.counts) for group in groups] == [
        ("numpy 1 → 2", "1 changed, 1 added, 1 removed"),
        ("six 1", "2 removed"),
        (NOBODY, "1 changed"),
    ]
    assert groups[0].examples[0].path == "/d"  # what changed is shown before what came with the package


def test_noise_alone_is_no_difference() -> None:
    drift = Drift(
        before=side("a"), after=side("b"), levels=("files",), files=(file("/var/log/x", noise="log"),)
    )
    assert outcome(drift) == "no difference of content"
    assert "SAME" in render_drift(drift, colour=False)


def test_images_whose_difference_cannot_be_told_are_never_the_same() -> None:
    drift = Drift(
        before=side("a"), after=side("b"), levels=("pins",), undetailed=True, unknown=("It is gone.",)
    )
    assert drift.differs
    layer = LayerChange(number=7, maker="", before="sha256:1", after="sha256:2", inputs_known=False)
    assert change_line(drift.model_copy(update={"first_layer": layer})) == "from layer 7; details unknown"
    assert ("first layer", "7: which inputs differ is not known") in drift.model_copy(
        update={"first_layer": layer}
    ).headline
    assert layer_text(layer) == "layer 7 from the bottom"
    line = told(drift.model_copy(update={"first_layer": layer}))
    assert line == "layer 7 is the first that is not the same; what differs is not known"
    for text in (render_drift(drift, colour=False), render_drift_markdown(drift)):
        assert "DRIFT" in text
        assert "the digests differ; details unknown" in text
        assert "no difference" not in text


def test_a_change_that_may_be_is_not_headed_as_drift() -> None:
    drift = Drift(before=side("a"), after=side("b"), levels=("files",), files=(file("/srv/x"),), wanted=True)
    assert json.loads(render_json(drift))["verdict"] == "change"
    assert render_drift_markdown(drift).startswith("### ℹ️ CHANGE: ")
    assert "CHANGE 1 file differs" in render_drift(drift, colour=False)


def test_json_states_the_verdict(tmp_path: Path) -> None:
    for after, verdict in (({"a": "1"}, "same"), ({"a": "2"}, "drift")):
        (tmp_path / verdict).mkdir()
        drift = of_layers(tmp_path / verdict, [OS, {"a": "1"}], [OS, after])
        assert json.loads(render_json(drift))["verdict"] == verdict
