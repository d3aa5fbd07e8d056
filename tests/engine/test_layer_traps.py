"""Layers on real images: what a careless tar would break still works."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine
from stackbuild.layers.files import files_maker, scan_files
from stackbuild.layers.interface import Maker
from stackbuild.layers.system import system_maker
from stackbuild.layers.tar_writer import LayerTarWriter
from stackbuild.layers.tree import FileTree
from stackbuild.layers.venv import VENV, VenvMaker
from stackbuild.layers.wheels import WheelsMaker
from stackbuild.spec.model import FileSpec, ImageSpec, UserSpec
from tests.layers.wheel_files import PYTHON, locked
from tests.support.base_image import busybox_rootfs, debian_rootfs, docker_archive
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.engine


@contextmanager
def running(engine: Engine, name: str, layers: list[Path | bytes]) -> Iterator[Container]:
    """A container of an image made of these layers, whose diff IDs are our tars' hashes."""
    archive, _ = docker_archive(layers, ref=name)
    engine.load([archive])
    image = engine.image(name)
    assert image is not None
    contents = [layer.read_bytes() if isinstance(layer, Path) else layer for layer in layers]
    assert list(image.diff_ids) == ["sha256:" + hashlib.sha256(content).hexdigest() for content in contents]
    with engine.container(name, ["sleep", "60"]) as container:
        container.start()
        yield container


def shell(container: Container, script: str, user: str | None = None) -> str:
    result = container.exec(["sh", "-c", script], user=user)
    assert result.exit_code == 0, result.output
    return result.output.decode().strip()


def made(makers: list[Callable[[FileTree], Maker | None]], tree: FileTree) -> list[Path | bytes]:
    """The tars of the makers, each over the tree that the ones before it left."""
    tars: list[Path | bytes] = []
    for factory in makers:
        maker = factory(tree)
        assert maker is not None
        sink = io.BytesIO()
        tree = tree.with_layer(maker.make(sink, tree))
        tars.append(sink.getvalue())
    return tars


def test_links_and_modes_of_the_base_survive_a_layer(
    engine: Engine, image_name: Callable[[str], str]
) -> None:
    base = busybox_rootfs()
    sink = io.BytesIO()
    writer = LayerTarWriter(sink, FileTree.from_tar(io.BytesIO(base)), mirror=True)
    writer.add_file("bin/hello", b"#!/bin/sh\necho hello\n", 21, 0o755)
    writer.add_whiteout("bin/whoami")
    writer.add_file("lib/data", b"x", 1, 0o644)
    writer.add_file("tmp/kept", b"x", 1, 0o644)
    writer.close()
    with running(engine, image_name("traps"), [base, sink.getvalue()]) as container:
        assert shell(container, "hello") == "hello"
        assert shell(container, "readlink /bin; readlink /lib") == "usr/bin\nusr/lib"
        assert shell(container, "stat -c %a /tmp /usr /usr/lib") == "1777\n755\n755"
        assert shell(container, "ls /usr/lib") == "data"
        assert shell(container, "test -e /bin/whoami || echo gone") == "gone"


def test_capabilities_survive_a_layer(engine: Engine, image_name: Callable[[str], str]) -> None:
    base = busybox_rootfs()
    capability = b"\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    name, value = "security.capability", capability.decode("utf-8", "surrogateescape")
    sink = io.BytesIO()
    writer = LayerTarWriter(sink, FileTree.from_tar(io.BytesIO(base)))
    writer.add_file("usr/bin/ping", b"x", 1, 0o755, xattrs=((name, value),))
    writer.close()
    with running(engine, image_name("capabilities"), [base, sink.getvalue()]) as container:
        copy = FileTree.from_tar(io.BytesIO(b"".join(container.get("/usr/bin/ping"))))
        entry = copy.get("ping")
        assert entry is not None
        assert dict(entry.xattrs) == {name: value}


def test_the_user_owns_its_places_on_a_base_that_has_uid_1000(
    engine: Engine, image_name: Callable[[str], str]
) -> None:
    base = busybox_rootfs()
    image = ImageSpec(user=UserSpec(name="app", uid=1001), workdir="/srv/app", volumes=("/cache", "/tmp"))
    tars = made(
        [lambda tree: system_maker(image, tree)],
        FileTree.from_tar(io.BytesIO(base)),
    )
    with running(engine, image_name("system"), [base, *tars]) as container:
        assert shell(container, "id -un; id -u; id -g; echo ~", "app") == "app\n1001\n1001\n/home/app"
        shell(container, "touch /srv/app/x /cache/x /tmp/x /home/app/x", "app")
        assert shell(container, "stat -c %a /tmp") == "1777"
        assert shell(container, "id -un", "1000") == "ubuntu"


def test_wheels_run_in_the_virtual_environment(
    engine: Engine, image_name: Callable[[str], str], tmp_path: Path
) -> None:
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={"demo.py": "import sys\ndef main():\n    print('demo', sys.prefix)\n"},
        entry_points={"demo": "demo:main"},
    )
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "serve.py").write_text("import demo; demo.main()\n")
    sources = scan_files([FileSpec(from_="app", to="/srv/app", owner="app")], tmp_path)
    image = ImageSpec(user=UserSpec(name="app", uid=1001))
    base = debian_rootfs()
    with base.open("rb") as stream:
        tree = FileTree.from_tar(stream)
    tars = made(
        [
            lambda tree: VenvMaker(PYTHON, tree.lineage(VENV)),
            lambda tree: WheelsMaker(
                "other", (locked(wheel),), PYTHON, "linux/amd64", "2.36", tree.lineage(f"{VENV}/lib")
            ),
            lambda tree: system_maker(image, tree),
            lambda tree: files_maker(sources, tree),
        ],
        tree,
    )
    script = (
        "import importlib.metadata as m; d = m.distribution('demo');"
        "print(d.version, d.read_text('INSTALLER').strip(), all(f.locate().exists() for f in d.files))"
    )
    with running(engine, image_name("wheels"), [base, *tars]) as container:
        assert shell(container, "/opt/venv/bin/demo", "app") == "demo /opt/venv"
        assert shell(container, f'/opt/venv/bin/python -c "{script}"', "app") == "1.0 stackbuild True"
        assert shell(container, "/opt/venv/bin/python3.11 /srv/app/serve.py", "app") == "demo /opt/venv"
        assert shell(container, "stat -c %U /srv/app/serve.py /home/app") == "app\napp"
        assert shell(container, "cut -d: -f1,3 /etc/shadow | grep app") == "app:19675"
