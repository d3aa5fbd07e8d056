from __future__ import annotations

import copy
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stackbuild.build.interface import BuiltImage
from stackbuild.build.interim import InterimImages
from stackbuild.build.stack import BuildOptions, build_stack
from stackbuild.engine import ownership
from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import BuildError
from stackbuild.lock.model import Lock, PythonLock
from stackbuild.progress import SilentObserver
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.store.store import Store
from tests.build.stacks import image_lock, locked_wheel, write_stack
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.engine

PYTHON = PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311")


class Notes(SilentObserver):
    def __init__(self, on_waiting: Callable[[], None] = lambda: None) -> None:
        self.notes: list[str] = []
        self._on_waiting = on_waiting

    def note(self, message: str) -> None:
        self.notes.append(message)
        if "waiting" in message:
            self._on_waiting()


class Bench:
    """Builds stacks of one test, and removes their images."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.store = Store(folder / "store")
        self.site = SiteConfig.model_validate({"indexes": {"default": {"folder": folder / "wheels"}}})
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.name = f"test-{uuid.uuid4().hex[:10]}"

    def build(
        self,
        stack: LoadedSpec,
        lock: Lock,
        *,
        fresh: bool = False,
        observer: SilentObserver | None = None,
        **environ: str,
    ) -> BuiltImage:
        return build_stack(
            stack,
            lock,
            engine=self.engine,
            store=self.store,
            site=self.site,
            options=BuildOptions(fresh=fresh),
            environ=environ,
            observer=observer or SilentObserver(),
        )

    def other_user(self) -> Bench:
        """Another user of the same engine, with a store of their own."""
        other = copy.copy(self)
        other.store = Store(self.folder / "another-store")
        return other

    def empty_store(self) -> None:
        shutil.rmtree(self.store.root)
        self.store = Store(self.store.root)

    def files(self, image: str) -> dict[str, bytes]:
        with (
            io.BufferedReader(ChunkReader(self.engine.export(image))) as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            found = {}
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                found[member.name] = content.read() if content else b""
            return found

    def clean(self) -> None:
        for image in self.engine._api.images(name=self.name):
            for ref in image["RepoTags"]:
                self.engine.remove_image(ref)


@pytest.fixture
def bench(engine: Engine, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(engine, tmp_path)
    yield made
    made.clean()


def info(engine: Engine, ref: str) -> ImageInfo:
    found = engine.image(ref)
    assert found is not None
    return found


def test_the_platforms_that_a_build_does_not_make_are_named(bench: Bench, busybox_image: str) -> None:
    stack = write_stack(bench.folder, bench.name, platforms=["linux/amd64", "linux/arm64"])
    lock = image_lock(stack, info(bench.engine, busybox_image))
    both = lock.model_copy(
        update={"platforms": dict.fromkeys(stack.spec.platforms, lock.platforms["linux/amd64"])}
    )
    notes = Notes()
    bench.build(stack, both, observer=notes)
    assert notes.notes == [
        f"this builds {bench.name} for linux/amd64; for linux/arm64 build it on a machine of that platform"
    ]
    alone, notes = write_stack(bench.folder, bench.name), Notes()
    bench.build(alone, image_lock(alone, info(bench.engine, busybox_image)), observer=notes)
    assert notes.notes == []


def test_files_and_user_and_configuration(bench: Bench, busybox_image: str) -> None:
    (bench.folder / "app").mkdir()
    (bench.folder / "app" / "run.sh").write_text("echo it runs as $(id -u) in $(pwd)\n")
    stack = write_stack(
        bench.folder,
        bench.name,
        files=[{"from": "app/", "to": "/srv/app", "owner": "app"}],
        image={
            "env": {"MODE": "test"},
            "workdir": "/srv/app",
            "cmd": ["sh", "run.sh"],
            "user": {"name": "app", "uid": 1234},
            "expose": ["8080"],
            "labels": {"team": "platform"},
        },
    )
    built = bench.build(stack, image_lock(stack, info(bench.engine, busybox_image)))
    image = info(bench.engine, f"{bench.name}:latest")
    assert built.tags[-1] == f"{bench.name}:latest"
    assert image.id == built.image_id
    assert image.diff_ids == built.diff_ids
    assert "MODE=test" in image.config["Env"]
    assert image.config["ExposedPorts"] == {"8080/tcp": {}}
    assert image.labels["team"] == "platform"
    assert image.labels["org.opencontainers.image.title"] == bench.name
    with bench.engine.container(image.id, [], entrypoint=None) as container:
        container.start()
        assert container.wait(300) == 0
        assert container.logs() == b"it runs as 1234 in /srv/app\n"


def python_stack(bench: Bench, base: str, leaf: str = "1", *, big: bool = False) -> tuple[LoadedSpec, Lock]:
    """numpy-like 'lib' in the framework group, and 'leaf' among the others."""
    lib = make_wheel(
        bench.wheels,
        "lib",
        "1.0",
        files={"lib/__init__.py": "VALUE = 41\n", **({"lib/big.bin": os.urandom(60_000_000)} if big else {})},
        entry_points={"lib-tool": "lib:main"},
    )
    other = make_wheel(bench.wheels, "leaf", leaf, files={"leaf.py": f"VERSION = {leaf!r}\n"})
    stack = write_stack(
        bench.folder,
        bench.name,
        python="3.11",
        packages=["lib==1.0", f"leaf=={leaf}"],
        image={"cmd": ["python"]},
    )
    wheels = [
        locked_wheel(lib, "lib", "1.0", "framework", requested=True),
        locked_wheel(other, "leaf", leaf, requested=True),
    ]
    return stack, image_lock(stack, info(bench.engine, base), wheels=wheels, python=PYTHON)


def run_python(engine: Engine, image: str, code: str) -> str:
    with engine.container(image, ["python", "-c", code], entrypoint=None) as container:
        container.start()
        assert container.wait(300) == 0, container.logs().decode()
        return container.logs().decode().strip()


def test_wheels_with_byte_code_and_a_leaf_change(bench: Bench, debian_python_image: str) -> None:
    stack, lock = python_stack(bench, debian_python_image)
    first = bench.build(stack, lock)
    assert first.made == ("venv", "framework", "frameworks-bytecode", "other", "other-bytecode")
    code = "import lib, leaf, sys; print(lib.VALUE, leaf.VERSION, sys.prefix, lib.__cached__)"
    assert run_python(bench.engine, first.image_id, code) == (
        "41 1 /opt/venv /opt/venv/lib/python3.11/site-packages/lib/__pycache__/__init__.cpython-311.pyc"
    )
    assert "opt/venv/lib/python3.11/site-packages/lib/__pycache__/__init__.cpython-311.pyc" in bench.files(
        first.image_id
    )

    again = bench.build(stack, lock)
    assert again.unchanged
    assert again.config_digest == first.config_digest

    stack, lock = python_stack(bench, debian_python_image, leaf="2")
    second = bench.build(stack, lock)
    assert second.made == ("other", "other-bytecode")
    assert set(second.reused) == {"venv", "framework", "frameworks-bytecode"}
    assert second.diff_ids[:-2] == first.diff_ids[:-2]
    assert run_python(bench.engine, second.image_id, "import leaf; print(leaf.VERSION)") == "2"
    assert info(bench.engine, first.tags[0]).id == first.image_id, "the old image keeps its own name"


def test_a_lost_tag_is_put_back(bench: Bench, busybox_image: str) -> None:
    stack = write_stack(bench.folder, bench.name, image={"env": {"A": "1"}})
    lock = image_lock(stack, info(bench.engine, busybox_image))
    first = bench.build(stack, lock)
    bench.engine.remove_image(first.tags[1])
    second = bench.build(stack, lock)
    assert not second.unchanged
    assert second.image_id == first.image_id
    assert info(bench.engine, first.tags[1]).id == first.image_id


def test_two_builds_from_nothing_are_one_image(bench: Bench, debian_python_image: str) -> None:
    """Case H01, as the assemble builder answers it: not the content alone is the same, the digest is."""
    stack, lock = python_stack(bench, debian_python_image)
    first = bench.build(stack, lock)
    bench.clean()
    bench.empty_store()
    second = bench.build(stack, lock, fresh=True)
    assert not second.reused
    assert (second.config_digest, second.diff_ids) == (first.config_digest, first.diff_ids)


def test_fresh_makes_every_layer_anew(bench: Bench, debian_python_image: str) -> None:
    stack, lock = python_stack(bench, debian_python_image)
    first = bench.build(stack, lock)
    second = bench.build(stack, lock, fresh=True)
    assert second.made == first.made
    assert second.config_digest == first.config_digest


@pytest.mark.parametrize("earlier_is_gone", [False, True])
def test_an_interrupt_once_the_names_have_moved_moves_them_back(
    earlier_is_gone: bool, bench: Bench, busybox_image: str
) -> None:
    stack = write_stack(bench.folder, bench.name)
    lock = image_lock(stack, info(bench.engine, busybox_image))
    first = bench.build(stack, lock)
    if not earlier_is_gone:  # as another user of the engine may remove it meanwhile
        bench.engine.tag(first.image_id, f"{bench.name}:kept")

    class Interrupted(SilentObserver):
        def stage(self, name: str, detail: str = "") -> None:
            if name == "load":  # what the engine finishes for a client that has gone
                bench.other_user().build(stack, lock, fresh=True, SOURCE_DATE_EPOCH="1700000000")
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.build(stack, lock, observer=Interrupted(), fresh=True, SOURCE_DATE_EPOCH="1700000000")
    for ref in first.tags:
        now = info_or_none(bench.engine, ref)
        assert (now.id if now else None) == (None if earlier_is_gone else first.image_id)


def test_source_date_epoch_is_the_images_created(bench: Bench, busybox_image: str) -> None:
    stack = write_stack(bench.folder, bench.name)
    lock = image_lock(stack, info(bench.engine, busybox_image))
    assert info(bench.engine, bench.build(stack, lock).image_id).created.startswith("2026-11-01T00:00:00")
    dated = bench.build(stack, lock, SOURCE_DATE_EPOCH="1700000000")
    assert info(bench.engine, dated.image_id).created.startswith("2023-11-14T22:13:20")


def leftovers(engine: Engine, pid: int) -> list[str]:
    """What a process left in the engine: containers, volumes and interim images."""
    api, label = engine._api, {"label": ownership.LABEL}
    found = [*api.containers(all=True, filters=label), *api.images(filters=label)]
    found += api.volumes(filters=label)["Volumes"] or []
    return [str(item) for item in found if item["Labels"][ownership.LABEL].startswith(f"{pid} ")]


def test_a_build_leaves_nothing_but_its_image(bench: Bench, debian_python_image: str) -> None:
    stack, lock = python_stack(bench, debian_python_image, big=True)
    built = bench.build(stack, lock)
    assert leftovers(bench.engine, os.getpid()) == []
    assert list((bench.store.root / "tmp").iterdir()) == []
    assert "opt/venv/lib/python3.11/site-packages/lib/big.bin" in bench.files(built.image_id)


def test_a_wheel_conflict_fails_and_keeps_no_layer(bench: Bench, debian_python_image: str) -> None:
    stack, lock = python_stack(bench, debian_python_image)
    clash = make_wheel(bench.wheels, "clash", "1", files={"lib/__init__.py": "VALUE = 0\n"})
    wheels = (*lock.platforms["linux/amd64"].wheels, locked_wheel(clash, "clash", "1"))
    platform = lock.platforms["linux/amd64"].model_copy(update={"wheels": wheels})
    lock = lock.model_copy(update={"platforms": {"linux/amd64": platform}})
    with pytest.raises(BuildError) as caught:
        bench.build(stack, lock)
    assert caught.value.code == "file-conflict"
    assert "clash 1" in str(caught.value)
    assert "lib 1.0" in str(caught.value)
    assert info_or_none(bench.engine, f"{bench.name}:latest") is None
    assert list((bench.store.root / "tmp").iterdir()) == []


def info_or_none(engine: Engine, ref: str) -> ImageInfo | None:
    return engine.image(ref)


def test_a_second_build_of_a_stack_waits(bench: Bench, busybox_image: str) -> None:
    stack = write_stack(bench.folder, bench.name)
    lock = image_lock(stack, info(bench.engine, busybox_image))
    with ExitStack() as held:
        held.enter_context(bench.store.lock(f"build-{bench.name}", observer=SilentObserver()))
        notes = Notes(on_waiting=held.close)
        built = bench.build(stack, lock, observer=notes)
    assert built.image_id
    assert any("waiting" in note for note in notes.notes)


def test_an_interrupt_while_interim_images_are_removed_leaves_none(
    engine: Engine, busybox_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, names = engine.remove_image, list[str]()

    def interrupted(ref: str) -> None:
        if not names:
            names.append(ref)
            os.kill(os.getpid(), signal.SIGINT)
        remove(ref)

    base = info(engine, busybox_image)
    monkeypatch.setattr(engine, "remove_image", interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        InterimImages(engine, {}, base.architecture) as interim,
    ):
        interim.image([(diff_id, None) for diff_id in base.diff_ids])
    (name,) = names
    assert name.startswith("stackbuild-interim:")
    assert engine.image(name) is None


@pytest.mark.parametrize("stage", ["framework", "bytecode", "load"])
def test_ctrl_c_leaves_nothing(stage: str, bench: Bench, debian_python_image: str) -> None:
    stack, lock = python_stack(bench, debian_python_image, big=stage == "load")
    (bench.folder / "lock.json").write_text(lock.model_dump_json(by_alias=True))
    script = textwrap.dedent(
        f"""
        import os, signal, sys
        from pathlib import Path
        from stackbuild.build.stack import BuildOptions, build_stack
        from stackbuild.engine.docker_engine import Engine
        from stackbuild.lock.model import Lock
        from stackbuild.progress import SilentObserver
        from stackbuild.site_config import SiteConfig
        from stackbuild.spec.load import load_spec
        from stackbuild.store.store import Store
        folder = Path({str(bench.folder)!r})
        class Stopper(SilentObserver):
            def stage(self, name, detail=""):
                stage = {stage!r}
                if (stage == name == "load") or (stage in detail.replace("byte-code", "bytecode")):
                    import threading
                    if stage == "load":  # the last one may take less than any delay
                        os.kill(os.getpid(), signal.SIGINT)
                    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with Engine.connect() as engine:
            build_stack(load_spec(folder / "{bench.name}.yaml"),
                Lock.model_validate_json((folder / "lock.json").read_text()), engine=engine,
                store=Store(folder / "store"),
                site=SiteConfig.model_validate({{"indexes": {{"default": {{"folder": folder / "wheels"}}}}}}),
                options=BuildOptions(), environ={{}}, observer=Stopper())
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as process:
        _, told = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in told, told
    assert leftovers(bench.engine, process.pid) == []
    assert info_or_none(bench.engine, f"{bench.name}:latest") is None
    assert list((bench.store.root / "tmp").iterdir()) == []
    built = bench.build(stack, lock)
    assert built.image_id, "the next build is not hindered"
