"""An index that is down costs a night one wait, however many wheels and stacks ask it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import NotJudgedError
from stackbuild.facts.tables import Facts
from stackbuild.lock.file import write_lock
from stackbuild.lock.path import lock_path
from stackbuild.nightly.ground import Ground, NightOptions
from stackbuild.nightly.history.history import History
from stackbuild.nightly.model import Night
from stackbuild.nightly.night import run_night
from stackbuild.progress import SilentObserver
from stackbuild.resolution.wheels.locking import WheelsResult
from stackbuild.site_config import load_site_config
from stackbuild.spec.requirements_input import lock_inputs_sha256
from stackbuild.store.outages import Outages
from stackbuild.store.store import Store
from tests.nightly.inputs.scene import TODAY, Scene, scene
from tests.support.loopback import Misbehaviour

WHEELS = ("a", "b", "c")


def no_engine() -> Engine:
    raise NotJudgedError("No Docker engine answers.", code="engine-unreachable")


def locked(made: Scene) -> Path:
    """Two stacks of the same wheels, with their locks; returns the first's path."""
    for name in WHEELS:
        made.wheel(name, "1.0")
    made.lock_now(*WHEELS)
    assert made.stack is not None
    assert made.lock is not None
    sha256 = lock_inputs_sha256(made.stack.spec, made.stack.folder)
    first = made.stack.path
    second = first.with_name("u.yaml")
    spec = YAML(typ="safe").load(first)
    YAML(typ="safe").dump({**spec, "name": "u"}, second)
    for path, name in ((first, spec["name"]), (second, "u")):
        write_lock(lock_path(path), made.lock.model_copy(update={"stack": name, "spec_sha256": sha256}))
    return first


def night_of(made: Scene, first: Path, retries: int, more: str = "") -> Night:
    file = made.root / "stackbuild.toml"
    indexes = f'[indexes]\ndefault = "{made.indexes.url("default").replace("://", "://user:secret@")}"\n'
    file.write_text(f'{indexes}[registries]\n"docker.io" = "{made.registry.server.url}"\n{more}')
    ground = Ground(
        site=load_site_config(made.root, {}),
        store=Store(made.root / "store"),
        connect=no_engine,
        environ={},
        observer=SilentObserver(),
        facts=Facts(),
        today=TODAY,
        keep=lambda _stack, _documents: {},
        outages=Outages(apart=0),
    )
    with History(made.root / "history.sqlite") as history:
        return run_night(
            [first, first.with_name("u.yaml")],
            id_="x",
            started=datetime(2026, 11, 30, tzinfo=UTC),
            ground=ground,
            options=NightOptions(retries=retries, pause=0),
            history=history,
        )


@pytest.mark.parametrize("retries", [0, 2])
def test_an_index_that_is_down_is_left_alone_till_the_end(
    retries: int, tmp_path: Path, resolved: dict[str, WheelsResult]
) -> None:
    with scene(tmp_path, resolved) as made:
        first = locked(made)
        made.indexes.misbehave("/default/", Misbehaviour(status=500))
        before = len(made.indexes.requested("/default/"))
        night = night_of(made, first, retries)
        asked = len(made.indexes.requested("/default/")) - before
    # Inputs and newer versions of two stacks of three wheels: three requests each time that it is begun.
    assert asked == 3 * (1 + retries)
    found = [finding for finding in night.findings if finding.code == "index-unreachable"]
    assert [finding.subject for finding in found] == ["index default", "wheels for linux/amd64"] * 2
    url = made.indexes.url("default")
    assert all(f"({url})" in finding.summary for finding in found)
    assert all(f"{tmp_path / 'stackbuild.toml'} says where it is" in finding.next_step for finding in found)
    assert "secret" not in night.model_dump_json()


def test_a_repository_that_is_down_is_named_with_what_maps_it(
    tmp_path: Path, resolved: dict[str, WheelsResult]
) -> None:
    with scene(tmp_path, resolved) as made:
        made.deb("tool", "1.0-1")
        first = locked(made)
        assert made.lock is not None
        (deb,) = made.lock.platforms["linux/amd64"].debs
        night = night_of(made, first, 0, f'[repositories]\n"{deb.repository}" = "http://127.0.0.1:1/d"\n')
    found = [finding for finding in night.findings if finding.code == "repository-unreachable"]
    assert len(found) == 4
    assert all("(http://127.0.0.1:1/d stable)" in finding.summary for finding in found)
    assert all(f"{tmp_path / 'stackbuild.toml'} says where it is" in finding.next_step for finding in found)
