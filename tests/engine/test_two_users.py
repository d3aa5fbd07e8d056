"""Two users of one engine, each with a store of their own: no lock keeps their builds of one stack apart."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from stackbuild.build.interface import BuiltImage
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import NotJudgedError
from stackbuild.progress import SilentObserver
from tests.build.stacks import image_lock, write_stack
from tests.engine.test_assemble import Bench, info
from tests.engine.test_assemble import bench as bench

pytestmark = pytest.mark.engine


def test_each_gets_its_own_image_and_the_last_is_the_latest(bench: Bench, busybox_image: str) -> None:
    ours = write_stack(bench.folder, bench.name, image={"env": {"A": "ours"}})
    (bench.folder / "theirs").mkdir()
    theirs = write_stack(bench.folder / "theirs", bench.name, image={"env": {"A": "theirs"}})
    base = info(bench.engine, busybox_image)
    other = bench.other_user()

    class Meanwhile(SilentObserver):
        built: BuiltImage | None = None

        def stage(self, name: str, detail: str = "") -> None:
            if name == "load":
                self.built = other.build(theirs, image_lock(theirs, base))

    meanwhile = Meanwhile()
    mine = bench.build(ours, image_lock(ours, base), observer=meanwhile)
    assert meanwhile.built is not None
    for built in (mine, meanwhile.built):
        assert info(bench.engine, built.tags[0]).id == built.image_id == built.config_digest
    assert info(bench.engine, f"{bench.name}:latest").id == mine.image_id
    # Each sees that the other's is the latest now, and names its own.
    again = other.build(theirs, image_lock(theirs, base))
    assert not again.unchanged
    assert info(bench.engine, f"{bench.name}:latest").id == again.image_id == meanwhile.built.image_id


def test_an_image_of_another_date_under_our_name_is_not_taken_for_ours(
    bench: Bench, busybox_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = write_stack(bench.folder, bench.name)
    lock = image_lock(stack, info(bench.engine, busybox_image))
    other, load = bench.other_user(), Engine.load

    def beaten(engine: Engine, archive: Iterable[bytes]) -> None:
        monkeypatch.setattr(Engine, "load", load)
        load(engine, archive)
        other.build(stack, lock, SOURCE_DATE_EPOCH="1700000000")

    monkeypatch.setattr(Engine, "load", beaten)
    with pytest.raises(NotJudgedError) as taken:
        bench.build(stack, lock)
    assert taken.value.code == "name-taken"
    assert bench.build(stack, lock).config_digest == info(bench.engine, f"{bench.name}:latest").id


def test_an_interrupt_leaves_what_the_other_has_named(bench: Bench, busybox_image: str) -> None:
    ours = write_stack(bench.folder, bench.name, image={"env": {"A": "ours"}})
    (bench.folder / "theirs").mkdir()
    theirs = write_stack(bench.folder / "theirs", bench.name, image={"env": {"A": "theirs"}})
    base = info(bench.engine, busybox_image)
    bench.build(ours, image_lock(ours, base))

    class Interrupted(SilentObserver):
        built: BuiltImage | None = None

        def stage(self, name: str, detail: str = "") -> None:
            if name == "load":
                self.built = bench.other_user().build(theirs, image_lock(theirs, base))
                raise KeyboardInterrupt

    interrupted = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        bench.build(ours, image_lock(ours, base), observer=interrupted, fresh=True)
    assert interrupted.built is not None
    assert info(bench.engine, f"{bench.name}:latest").id == interrupted.built.image_id
