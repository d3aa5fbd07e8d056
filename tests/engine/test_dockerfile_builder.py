from __future__ import annotations

import fnmatch
import hashlib
import io
import json
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stackbuild.build.interface import BuiltImage
from stackbuild.build.locking import lock_stack
from stackbuild.build.stack import BuilderName, BuildOptions, build_stack
from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import StackbuildError
from stackbuild.lock.model import Lock, PythonLock
from stackbuild.progress import SilentObserver
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.store.store import Store
from tests.build.stacks import image_lock, locked_wheel, write_stack
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.engine

PYTHON = PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311")
DIFFERENCES = json.loads((Path(__file__).parent / "builder_differences.json").read_text())


@pytest.fixture
def stack_name(engine: Engine, builder_stages: None) -> Iterator[str]:
    """A stack's name; images of that name are removed at the end."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    yield name
    for image in engine._api.images(name=name):
        for ref in image["RepoTags"]:
            engine.remove_image(ref)


def service(folder: Path, name: str, engine: Engine, base: str) -> tuple[LoadedSpec, Lock]:
    """A stack with a bit of everything that both builders make."""
    wheels = folder / "wheels"
    torch = make_wheel(
        wheels, "torch", "2.0+cpu", files={"torch/__init__.py": "A = 1\n", "torch/lib.so": b"\x7fELF"}
    )
    other = make_wheel(
        wheels,
        "other-thing",
        "1.0",
        files={"other_thing.py": "def main():\n    print('other')\n"},
        entry_points={"other-thing": "other_thing:main"},
    )
    needed = make_wheel(wheels, "needed", "1.0")
    (folder / "app").mkdir()
    (folder / "app" / "serve.py").write_text("print('serving')\n")
    (folder / "app" / "start.sh").write_text("#!/bin/sh\n")
    (folder / "app" / "start.sh").chmod(0o755)
    (folder / "one[*].ini").write_text("[x]\n")
    stack = write_stack(
        folder,
        name,
        python="3.11",
        packages=["other-thing==1.0"],
        files=[
            {"from": "app/", "to": "/srv/app", "owner": "app"},
            {"from": "one[*].ini", "to": "/etc/our app/one.ini", "mode": "0600"},
        ],
        image={
            "env": {"GREETING": 'say "hi" for $5 \\ each'},
            "workdir": "/srv/app",
            "cmd": ["python", "serve.py"],
            "volumes": ["/cache"],
            "expose": ["8080"],
            "user": {"name": "app", "uid": 1234},
            "healthcheck": {"test": ["true"], "interval": "1m30s", "retries": 2},
            "labels": {"team": "a $team"},
            "stop-signal": "SIGINT",
        },
    )
    image = engine.image(base)
    assert image is not None
    locked = [
        locked_wheel(torch, "torch", "2.0+cpu", "torch", index="pytorch-cpu", requested=True),
        locked_wheel(other, "other-thing", "1.0", requested=True),
        locked_wheel(needed, "needed", "1.0"),
    ]
    return stack, image_lock(stack, image, wheels=locked, python=PYTHON)


def build(engine: Engine, folder: Path, stack: LoadedSpec, lock: Lock, builder: BuilderName) -> BuiltImage:
    folder_index = {"folder": folder / "wheels"}
    return build_stack(
        stack,
        lock,
        engine=engine,
        store=Store(folder / "store"),
        site=SiteConfig.model_validate({"indexes": {"default": folder_index, "pytorch-cpu": folder_index}}),
        options=BuildOptions(builder),
        environ={},
        observer=SilentObserver(),
    )


def tree(engine: Engine, image: str) -> dict[str, tuple[Any, ...]]:
    """Path → kind, mode, owner, link and content of everything in an image."""
    found = {}
    with (
        io.BufferedReader(ChunkReader(engine.export(image))) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            sha256 = hashlib.sha256(content.read()).hexdigest() if content else ""
            found[member.name] = (member.type, member.mode, member.uid, member.gid, member.linkname, sha256)
    return found


def unexplained(
    assembled: dict[str, tuple[Any, ...]], built: dict[str, tuple[Any, ...]], *parts: str
) -> dict[str, Any]:
    """The differences that the committed table does not have; a row that explains nothing counts as one."""
    found: dict[str, Any] = {}
    used = set()
    table = [row for row in DIFFERENCES if row["with"] in parts]
    for path in sorted(assembled.keys() | built.keys()):
        ours, theirs = assembled.get(path), built.get(path)
        if ours == theirs:
            continue
        where = "both" if ours and theirs else "assemble" if ours else "dockerfile"
        rows = [
            row["path"]
            for row in table
            if row["in"] in (where, "any") and fnmatch.fnmatchcase(path, row["path"])
        ]
        used.update(rows)
        if not rows:
            found[path] = (ours, theirs)
    found |= {row["path"]: "unused" for row in table if row["path"] not in used}
    return found


def test_both_builders_make_the_same_image(
    engine: Engine, stack_name: str, tmp_path: Path, debian_python_image: str
) -> None:
    stack, lock = service(tmp_path, stack_name, engine, debian_python_image)
    assembled = build(engine, tmp_path, stack, lock, "assemble")
    engine.tag(assembled.image_id, f"{stack_name}:assembled")
    built = build(engine, tmp_path, stack, lock, "dockerfile")
    engine.tag(built.image_id, f"{stack_name}:built")

    ours, theirs = tree(engine, assembled.image_id), tree(engine, built.image_id)
    assert unexplained(ours, theirs, "wheels", "user") == {}
    assert "srv/app/serve.py" in ours

    one, other = engine.image(assembled.image_id), engine.image(built.image_id)
    assert one is not None
    assert other is not None
    for key in (
        "Cmd",
        "Entrypoint",
        "WorkingDir",
        "User",
        "ExposedPorts",
        "Volumes",
        "StopSignal",
        "Healthcheck",
    ):
        assert (one.config.get(key) or None) == (other.config.get(key) or None), key
    assert sorted(one.config["Env"]) == sorted(other.config["Env"])
    pins = "io.stackbuild.pins"
    assert {k: v for k, v in one.labels.items() if k != pins} == {
        k: v for k, v in other.labels.items() if k != pins
    }
    assert built.tags == assembled.tags


@pytest.mark.slow
def test_both_builders_install_the_same_debs(engine: Engine, stack_name: str, tmp_path: Path) -> None:
    stack = write_stack(
        tmp_path,
        stack_name,
        base={"bootstrap": "debian", "suite": "bookworm"},
        apt=["libgomp1", "iputils-ping"],
    )
    store, site = Store(tmp_path / "store"), SiteConfig()
    lock = lock_stack(stack, site=site, store=store, engine=engine, observer=SilentObserver())
    assembled = build(engine, tmp_path, stack, lock, "assemble")
    engine.tag(assembled.image_id, f"{stack_name}:assembled")
    built = build(engine, tmp_path, stack, lock, "dockerfile")
    ours, theirs = tree(engine, assembled.image_id), tree(engine, built.image_id)
    assert unexplained(ours, theirs, "debs") == {}
    assert "usr/lib/x86_64-linux-gnu/libgomp.so.1" in ours


def test_a_failed_step_names_itself_and_leaves_nothing(
    engine: Engine, stack_name: str, tmp_path: Path, debian_python_image: str
) -> None:
    stack, lock = service(tmp_path, stack_name, engine, debian_python_image)
    platform = lock.platforms["linux/amd64"]
    # The wheel is there under its name, but pip reads another version inside.
    wrong = [
        wheel.model_copy(update={"version": "3.0+cpu"}) if wheel.name == "torch" else wheel
        for wheel in platform.wheels
    ]
    lock = lock.model_copy(
        update={"platforms": {"linux/amd64": platform.model_copy(update={"wheels": tuple(wrong)})}}
    )
    before = {image["Id"] for image in engine._api.images(all=True, filters={"dangling": True})}
    with pytest.raises(StackbuildError) as caught:
        build(engine, tmp_path, stack, lock, "dockerfile")
    assert caught.value.code == "wheel-not-found"
    assert "RUN set -e; set --" in caught.value.where
    assert "torch==3.0+cpu" in caught.value.detail
    assert engine.image(f"{stack_name}:latest") is None
    made_here = {image["Id"] for image in engine._api.images(all=True, filters={"dangling": True})} - before
    for image_id in made_here:
        found = engine.image(image_id)
        assert found is None or "stackbuild" not in json.dumps(found.history)
