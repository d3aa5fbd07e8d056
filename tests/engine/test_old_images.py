"""``stackbuild store images``: what earlier builds left in the engine."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.engine.docker_engine import Engine
from stackbuild.lock.file import write_lock
from stackbuild.lock.path import lock_path
from tests.build.stacks import image_lock, write_stack

pytestmark = pytest.mark.engine


class Builds:
    """Builds versions of one stack in a folder."""

    def __init__(self, engine: Engine, folder: Path, base: str) -> None:
        self.engine = engine
        self.stacks = folder / "stacks"
        self.stacks.mkdir()
        self.name = f"test-{uuid.uuid4().hex[:10]}"
        found = engine.image(base)
        assert found is not None
        self.base = found

    def build(self, version: str) -> str:
        """Build a version; returns its versioned name."""
        stack = write_stack(self.stacks, self.name, image={"env": {"V": version}})
        write_lock(lock_path(stack.path), image_lock(stack, self.base))
        assert run(["build", self.name, "-q", "--format", "json", "-o", "built.json"]) == 0
        (row,) = json.loads(Path("built.json").read_text())["stacks"]
        return str(row["tags"][0])

    def there(self) -> set[str]:
        """All names of the stack in the engine."""
        return set(self.engine.tags_of(self.name))


@pytest.fixture
def builds(
    engine: Engine, tmp_path: Path, store_root: Path, busybox_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Builds]:
    monkeypatch.chdir(tmp_path)
    made = Builds(engine, tmp_path, busybox_image)
    yield made
    for name in made.there():
        engine.remove_image(name)


def test_old_versions_are_shown_and_removed_only_when_asked(
    builds: Builds, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second, third = (builds.build(version) for version in "123")
    assert len({first, second, third}) == 3
    latest, ours = f"{builds.name}:latest", f"{builds.name}:ours"
    engine.tag(first, ours)
    everything = {first, second, third, latest, ours}
    capfd.readouterr()

    assert run(["store", "images"]) == 0
    shown = capfd.readouterr().out
    assert first in shown
    assert second in shown
    assert third not in shown
    assert ours not in shown
    assert builds.there() == everything, "nothing is removed by looking"

    with engine.container(second, ["true"]):
        assert run(["store", "images", builds.name, "--remove", "--format", "json"]) == 0
        rows = json.loads(capfd.readouterr().out)["images"]
        assert {row["image"]: row["removed"] for row in rows} == {first: True, second: False}
        assert builds.there() == everything - {first}, "what a container uses stays, and a name given by hand"
    assert run(["store", "images", "--remove"]) == 0
    assert "removed 1 of 1" in capfd.readouterr().out
    assert builds.there() == {third, latest, ours}
    assert run(["store", "images"]) == 0
    assert "no image of an earlier version" in capfd.readouterr().out


def test_what_latest_names_is_never_old(builds: Builds, capfd: pytest.CaptureFixture[str]) -> None:
    first = builds.build("1")
    stack = write_stack(builds.stacks, builds.name, image={"env": {"V": "2"}})  # written, not built yet
    write_lock(lock_path(stack.path), image_lock(stack, builds.base))
    assert run(["store", "images", "--remove"]) == 0
    assert builds.there() == {first, f"{builds.name}:latest"}
