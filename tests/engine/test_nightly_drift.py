"""A rebuild that is not what it was, a new lock, a gate that fails: told apart, explained, remembered."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stackbuild.cli.main import run
from stackbuild.layers.tar_writer import LayerTarWriter
from stackbuild.nightly.report import headline_of
from tests.engine.nights import Nights, nights, one_night_project, verdicts
from tests.support.wheels import make_hostile_wheel

pytestmark = pytest.mark.engine
__all__ = ["nights", "one_night_project"]  # fixtures


@contextmanager
def another_stackbuild() -> Iterator[None]:
    """An earlier version, whose layers had other modes: the same lock gives another image."""
    with pytest.MonkeyPatch.context() as patch:
        add_file = LayerTarWriter.add_file

        def added(
            self: LayerTarWriter, path: str, data: Any, size: int, mode: int, *more: Any, **named: Any
        ) -> str:
            return add_file(
                self, path, data, size, 0o600 if path.endswith("app.txt") else mode, *more, **named
            )

        patch.setattr(LayerTarWriter, "add_file", added)
        yield


def with_files(nights: Nights, stem: str, text: str = "one\n") -> str:
    """A stack of one file on busybox."""
    (nights.project.stacks / f"{stem}.txt").write_text(text)
    return nights.project.write(stem, files=[{"from": f"{stem}.txt", "to": "/srv/app.txt"}])


def test_a_rebuild_that_differs_is_explained_until_it_is_accepted(nights: Nights) -> None:
    name = with_files(nights, "differs")
    with another_stackbuild():
        code, first = nights.of(name)
    assert (code, first.outcome) == (0, "unchanged")
    code, night = nights.of(name)
    assert (code, night.outcome) == (6, "drift")
    assert verdicts(night)["rebuild-reproduces"] == "FAIL"
    assert night.drift is not None
    assert night.drift.first_layer is not None
    assert night.drift.first_layer.number == 2
    assert "files" in night.drift.first_layer.maker
    assert [(file.path, file.change, file.what) for file in night.drift.files] == [
        ("/srv/app.txt", "changed", ("mode",))
    ]
    assert "drift.md" in night.reports
    assert nights.project.names() >= {f"{name}:nightly", f"{name}:nightly-drift"}
    shown = nights.table(name)  # it stays drift until a person has looked
    assert shown.splitlines()[2].startswith("drift ")
    assert "layer 2 (" in shown
    assert f"stackbuild nightly {name} --accept" in shown
    code, night = nights.of(name, "--accept")
    assert (code, night.outcome) == (0, "unchanged")
    assert night.change is not None
    assert f"{name}:nightly-drift" not in nights.project.names()
    code, night = nights.of(name)
    assert (code, night.outcome, night.change) == (0, "unchanged", None)
    assert nights.project.left_behind() == []


def test_an_image_that_people_use_is_the_reference_of_the_first_night(nights: Nights) -> None:
    name = with_files(nights, "built")
    with another_stackbuild():
        assert run(["build", name, "--locked", "-q"]) == 0
    before = {ref: _id(nights, ref) for ref in nights.project.names() if ref.startswith(f"{name}:")}
    assert len(before) == 2
    code, night = nights.of(name)
    assert (code, night.outcome) == (6, "drift")
    assert night.compared_with.startswith(f"the engine's {name}:")
    assert {ref: _id(nights, ref) for ref in before} == before


def test_an_earlier_image_that_is_gone_is_compared_on_record(nights: Nights) -> None:
    name = with_files(nights, "gone")
    code, first = nights.of(name)
    assert code == 0
    with sqlite3.connect(nights.history) as database:  # what the night before had is another image
        digest = f"sha256:{'0' * 64}"
        database.execute("UPDATE images SET config_digest = ?", (digest,))
    nights.project.engine.remove_image(f"{name}:nightly")
    # A registry that is down takes from the explanation, not from the drift.
    code, night = nights.of(name, "--published", "127.0.0.1:9/team")
    assert (code, night.outcome) == (6, "drift")
    assert night.drift is not None
    assert night.drift.levels == ("pins",)
    assert night.drift.before.digest == digest
    assert "has the earlier image" in night.drift.unknown[0]
    assert night.diff_ids == first.diff_ids
    # Nobody can say what differs; that it differs is certain.
    assert night.drift.verdict == "drift"
    (written,) = [path.read_text() for path in nights.history.parent.rglob("drift.md")]
    assert written.startswith("### ⚠️ DRIFT: ")
    assert "details unknown" in written
    assert "no difference" not in written


def test_an_earlier_image_under_another_name_is_compared_by_its_files(nights: Nights) -> None:
    name = with_files(nights, "renamed")
    engine = nights.project.engine
    with another_stackbuild():
        assert nights.of(name)[0] == 0
    other = f"{nights.project.prefix}-kept:1"
    engine.tag(f"{name}:nightly", other)
    engine.remove_image(f"{name}:nightly")
    try:
        code, night = nights.of(name)
    finally:
        engine.remove_image(other)
    assert (code, night.outcome) == (6, "drift")
    assert night.drift is not None
    assert [file.path for file in night.drift.files] == ["/srv/app.txt"]
    assert not night.drift.undetailed


def test_a_published_image_is_what_a_fresh_machine_compares_with(nights: Nights) -> None:
    project = nights.project
    name = with_files(nights, "shared")
    team = f"{project.registry.address}/{project.prefix}"
    with another_stackbuild():
        assert run(["build", name, "--locked", "-q"]) == 0
    assert run(["publish", name, f"{team}/{name}", "-q"]) == 0
    for ref in project.names():
        project.engine.remove_image(ref)
    code, night = nights.of(name, "--published", team)
    assert (code, night.outcome) == (6, "drift")
    assert night.compared_with.startswith(f"the published {team}/{name}:")
    assert night.drift is not None
    assert [(file.path, file.what) for file in night.drift.files] == [("/srv/app.txt", ("mode",))]
    code, night = nights.of(name)
    assert (code, night.compared_with) == (0, ""), "without it, it is the first night"


def test_a_new_lock_and_new_files_are_changes_not_drift(nights: Nights) -> None:
    project = nights.project
    name = project.write("locks", wheels=[project.wheel("leaf", "1.0")], packages=["leaf"])
    assert nights.of(name)[0] == 0
    project.write("locks", wheels=[project.wheel("leaf", "2.0")], packages=["leaf"])
    code, night = nights.of(name)
    assert (code, night.outcome, night.drift) == (0, "unchanged", None)
    assert night.change is not None
    assert [(one.name, one.before, one.after) for one in night.change.packages] == [("leaf", "1.0", "2.0")]
    assert headline_of(night) == "no drift: as its new inputs make it: leaf 1.0 → 2.0"
    (written,) = [path.read_text() for path in nights.history.parent.rglob(f"{name}/change.md")]
    head = written.splitlines()[0]
    assert head.startswith("### ℹ️ CHANGE: the night of 20")
    assert f" → {name} of tonight, 20" in head
    assert "DRIFT" not in written

    name = with_files(nights, "files")
    assert nights.of(name)[0] == 0
    with_files(nights, "files", "two\n")
    code, night = nights.of(name)
    assert (code, night.outcome, night.drift) == (0, "unchanged", None)
    assert night.change is not None
    assert [(file.path, file.what) for file in night.change.files] == [("/srv/app.txt", ("content",))]
    assert "change.md" in night.reports
    assert headline_of(night) == "no drift: as its new inputs make it: /srv/app.txt changed"


def test_of_a_new_lock_and_a_new_file_in_one_night_both_are_told(nights: Nights) -> None:
    project = nights.project
    (project.stacks / "both.txt").write_text("one\n")
    files = [{"from": "both.txt", "to": "/srv/app.txt"}]
    name = project.write("both", wheels=[project.wheel("leaf", "1.0")], packages=["leaf"], files=files)
    assert nights.of(name)[0] == 0
    (project.stacks / "both.txt").write_text("two\n")
    project.write("both", wheels=[project.wheel("leaf", "2.0")], packages=["leaf"], files=files)
    code, night = nights.of(name)
    assert (code, night.outcome) == (0, "unchanged")
    assert headline_of(night) == "no drift: as its new inputs make it: leaf 1.0 → 2.0, /srv/app.txt changed"


def test_a_gate_that_fails_and_a_build_that_does(nights: Nights) -> None:
    project = nights.project
    failing = project.write("failing", wheels=[project.wheel("root", "1.0", requires=["not-in-the-image"])])
    code, night = nights.of(failing)
    assert (code, night.outcome) == (1, "failed")
    assert verdicts(night)["rebuild-reproduces"] == "PASS"
    assert verdicts(night)["dependencies-consistent"] == "FAIL"

    make_hostile_wheel(project.wheels, "hostile", "1.0", "data-escape")
    broken = project.write("broken", wheels=[project.locked("hostile", "1.0")])
    code, night = nights.of(broken)
    assert (code, night.outcome) == (4, "build-failed")
    assert project.left_behind() == []


def test_a_stale_lock_stops_only_its_own_stack(nights: Nights) -> None:
    stale = with_files(nights, "stale")
    good = with_files(nights, "good")
    path = nights.project.stacks / f"{stale}.yaml"
    path.write_text(path.read_text().replace('"tag": "1"', '"tag": "2"'))
    broken = nights.project.stacks / f"{nights.project.prefix}-a.yaml"
    broken.write_text("schema: 1\nname: [\n")
    code, night = nights.run()
    assert code == 3
    outcomes = {stack.stack: stack.outcome for stack in night.stacks}
    assert outcomes == {broken.stem: "spec-or-lock", good: "unchanged", stale: "spec-or-lock"}
    assert "lock-stale" in verdicts(next(stack for stack in night.stacks if stack.stack == stale))


def _id(nights: Nights, ref: str) -> str:
    image = nights.project.engine.image(ref)
    assert image is not None
    return image.id
