"""``stackbuild build`` and ``render`` as they are called."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stackbuild.cli.main import run
from stackbuild.engine import ownership
from stackbuild.engine.docker_engine import Engine
from stackbuild.lock.file import write_lock
from stackbuild.lock.model import PythonLock
from stackbuild.lock.path import lock_path
from stackbuild.progress import SilentObserver
from stackbuild.store.store import Store
from tests.build.stacks import image_lock, locked_wheel, write_stack
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.engine

PYTHON = PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311")


class Folder:
    """A project folder with stacks."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self.engine = engine
        self.path = path
        self.stacks = path / "stacks"
        self.stacks.mkdir()
        self.prefix = f"test-{uuid.uuid4().hex[:8]}"

    def name(self, stem: str) -> str:
        return f"{self.prefix}-{stem}"

    def add(self, stem: str, base: str, *, locked: bool = True, **parts: Any) -> str:
        name = self.name(stem)
        stack = write_stack(self.stacks, name, **parts)
        image = self.engine.image(base)
        assert image is not None
        if locked:
            write_lock(lock_path(stack.path), image_lock(stack, image))
        return name

    def clean(self) -> None:
        for image in self.engine._api.images():
            for ref in image["RepoTags"] or []:
                if ref.startswith(self.prefix):
                    self.engine.remove_image(ref)


@pytest.fixture
def folder(
    engine: Engine, tmp_path: Path, store_root: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Folder]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # for the processes that are started
    made = Folder(engine, tmp_path)
    yield made
    made.clean()


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["stacks"]
    return found


def test_json_on_stdout_alone_and_nothing_to_do_the_second_time(
    folder: Folder, busybox_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = folder.add("one", busybox_image, image={"env": {"A": "1"}})
    assert run(["build", name, "--format", "json"]) == 0
    (first,) = rows(capsys)
    assert first["tags"][-1] == f"{name}:latest"
    assert not first["unchanged"]
    assert run(["build", name, "--format", "json"]) == 0
    (second,) = rows(capsys)
    assert second["unchanged"]
    assert second["config-digest"] == first["config-digest"]
    assert run(["build", name]) == 0
    captured = capsys.readouterr()
    assert "nothing changed" in captured.out
    assert captured.err == ""


def test_a_table_goes_to_a_file_whole(
    folder: Folder, busybox_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = folder.add("one", busybox_image)
    assert run(["build", name, "-q", "-o", "result.txt"]) == 0
    assert capsys.readouterr() == ("", "")
    assert f"{name}:latest" in (folder.path / "result.txt").read_text()


def test_a_wrong_gpu_selection_is_told_before_anything_is_built(
    folder: Folder, busybox_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = folder.add("one", busybox_image)
    assert run(["build", name, "--verify", "--gpus", "many"]) == 2
    assert "[bad-device-request]" in capsys.readouterr().err
    assert folder.engine.image(f"{name}:latest") is None


def test_two_processes_that_build_one_stack_make_one_image(
    folder: Folder, slow_stack: str, store_root: Path
) -> None:
    command = [sys.executable, "-m", "stackbuild.cli.main", "build", slow_stack]
    with Store(store_root).lock(f"build-{slow_stack}", observer=SilentObserver()):
        running = [
            subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in "12"
        ]
        for process in running:
            assert process.stderr is not None
            waiting = next(line for line in process.stderr if "is at it" in line)
            assert waiting.startswith(f"waiting for build-{slow_stack}: process {os.getpid()} ")
    told = [process.communicate(timeout=600) for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    assert len({out.splitlines()[-1] for out, _ in told}) == 1, "both name the same configuration"
    made = ["layer:" in err for _, err in told]
    assert sorted(made) == [False, True], "what the first has made is not made again"


def test_locked_refuses_what_needs_locking(
    folder: Folder, busybox_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = folder.add("unlocked", busybox_image, locked=False)
    assert run(["build", name, "--locked"]) == 3
    assert "[lock-missing]" in capsys.readouterr().err
    folder.add("unlocked", busybox_image)
    path = folder.stacks / f"{name}.yaml"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"apt": ["libgomp1"]}))
    assert run(["build", name, "--locked"]) == 3
    assert "[lock-stale]" in capsys.readouterr().err


def test_all_stacks_go_on_when_one_fails(
    folder: Folder, busybox_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = folder.add("a-good", busybox_image)
    bad = folder.add("b-bad", busybox_image, locked=False)
    last = folder.add("c-last", busybox_image)
    for jobs in ("1", "2"):
        assert run(["build", "--all", "--locked", "--jobs", jobs, "--format", "json"]) == 3
        found = {row["stack"]: row["exit-code"] for row in rows(capsys)}
        assert found == {good: 0, bad: 3, last: 0}


def test_no_stack_and_an_unknown_stack(
    folder: Folder, busybox_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = folder.add("one", busybox_image)
    assert run(["build"]) == 2
    assert name in capsys.readouterr().err
    assert run(["build", name[:-1]]) == 3
    assert f"Did you mean '{name}'" in capsys.readouterr().err


def test_no_engine_could_not_be_judged(
    folder: Folder, busybox_image: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = folder.add("one", busybox_image)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder.path}/no.sock")
    assert run(["build", name]) == 5
    assert "[engine-unreachable]" in capsys.readouterr().err


@pytest.fixture
def slow_stack(folder: Folder, debian_python_image: str, site_file: Any) -> str:
    """A stack whose layers take a while, with a wheel large enough to be loaded early."""
    wheels = folder.path / "wheels"
    wheel = make_wheel(
        wheels, "lib", "1.0", files={"lib/__init__.py": "A = 1\n", "lib/big.bin": os.urandom(60_000_000)}
    )
    site_file(indexes={"default": {"folder": str(wheels)}})
    name = folder.name("slow")
    stack = write_stack(folder.stacks, name, python="3.11", packages=["lib==1.0"])
    image = folder.engine.image(debian_python_image)
    assert image is not None
    locked = [locked_wheel(wheel, "lib", "1.0", "framework", requested=True)]
    write_lock(lock_path(stack.path), image_lock(stack, image, wheels=locked, python=PYTHON))
    return name


def left_by(engine: Engine, pid: int) -> list[str]:
    api, label = engine._api, {"label": ownership.LABEL}
    found = [*api.containers(all=True, filters=label), *api.images(filters=label)]
    return [str(item) for item in found if item["Labels"][ownership.LABEL].startswith(f"{pid} ")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("said", ["layer: stackbuild: framework", "layer: stackbuild: byte-code", "load:"])
def test_an_interrupt_in_each_stage_leaves_nothing(
    number: signal.Signals, said: str, folder: Folder, slow_stack: str, store_root: Path
) -> None:
    command = [sys.executable, "-m", "stackbuild.cli.main", "build", slow_stack]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(said):
                break
        time.sleep(0.05)
        process.send_signal(number)
        guard = threading.Timer(120, process.kill)
        guard.start()
        told = process.stderr.read()
        guard.cancel()
        code = process.wait()
    assert left_by(folder.engine, process.pid) == []
    assert list((store_root / "tmp").iterdir()) == []
    if said == "load:" and folder.engine.image(f"{slow_stack}:latest") is not None:
        # The interrupt met a build that was done: its image is whole, so the next build has nothing to do.
        assert code in (0, 130), told
        assert len(list((store_root / "records" / "built-image").iterdir())) == 1
        return
    assert code == 130, told
    assert "interrupted; nothing left behind" in told
    assert folder.engine.image(f"{slow_stack}:latest") is None


class CutEngine:
    """The engine behind a socket that is cut once some bytes have gone through: an engine that dies."""

    def __init__(self, path: Path, after: int) -> None:
        self.path = path
        self._left = after
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._dead = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self._listener.settimeout(0.1)
        while not self._dead.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as engine, selectors.DefaultSelector() as ready:
            engine.connect("/var/run/docker.sock")
            ready.register(client, selectors.EVENT_READ, engine)
            ready.register(engine, selectors.EVENT_READ, client)
            while not self._dead.is_set():
                for key, _ in ready.select(0.1):
                    data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not data:
                        return
                    self._left -= len(data)
                    if self._left <= 0:
                        self._dead.set()
                        return
                    key.data.sendall(data)

    def close(self) -> None:
        self._dead.set()
        self._thread.join()


def test_an_engine_that_dies_mid_build_could_not_be_judged(
    folder: Folder,
    slow_stack: str,
    store_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cut = CutEngine(folder.path / "engine.sock", after=30_000_000)
    with monkeypatch.context() as patched:
        patched.setenv("DOCKER_HOST", f"unix://{cut.path}")
        assert run(["build", slow_stack]) == 5
    cut.close()
    told = capsys.readouterr().err
    assert "[engine-died]" in told
    assert "remove" not in told, "what it was doing is told, not the clean-up that failed as well"
    assert list((store_root / "tmp").iterdir()) == []
    assert run(["build", slow_stack, "-q"]) == 0, "the engine is back: the build goes on where it was"
    # A later process sweeps what a dead engine kept; this one still lives, so its containers are not swept.
    for container in folder.engine._api.containers(all=True, filters={"label": ownership.LABEL}):
        if container["Labels"][ownership.LABEL] == ownership.owner_label():
            folder.engine._api.remove_container(container["Id"], force=True)


def test_render_writes_a_context_that_plain_docker_builds(
    folder: Folder,
    debian_python_image: str,
    builder_stages: None,
    site_file: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wheels = folder.path / "wheels"
    wheel = make_wheel(wheels, "lib", "1.0", files={"lib.py": "A = 41\n"})
    site_file(indexes={"default": {"folder": str(wheels)}})
    name = folder.name("rendered")
    stack = write_stack(folder.stacks, name, python="3.11", packages=["lib==1.0"])
    image = folder.engine.image(debian_python_image)
    assert image is not None
    lock = image_lock(stack, image, wheels=[locked_wheel(wheel, "lib", "1.0", requested=True)], python=PYTHON)
    write_lock(lock_path(stack.path), lock)
    assert run(["render", name]) == 0
    shown = capsys.readouterr().out
    assert run(["render", name, "-o", "context", "--wheels"]) == 0
    context = folder.path / "context"
    assert (context / "Dockerfile").read_text() == shown
    assert sorted(path.name for path in (context / "wheels").iterdir()) == ["README", wheel.name]
    assert (
        f"lib==1.0 \\\n    --hash=sha256:{lock.platforms['linux/amd64'].wheels[0].sha256}"
        in (context / "requirements.txt").read_text()
    )
    # The locked base is in no registry here: name the engine's.
    text = shown.replace(f"FROM test/base:1@sha256:{'1' * 64}", f"FROM {debian_python_image}")
    (context / "Dockerfile").write_text(text)
    docker = shutil.which("docker")
    assert docker, "the docker command is missing"
    done = subprocess.run(
        [docker, "build", "--quiet", "--tag", f"{name}:latest", str(context)],
        capture_output=True,
        text=True,
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
    )
    assert done.returncode == 0, done.stderr
    with folder.engine.container(f"{name}:latest", ["python", "-c", "import lib; print(lib.A)"]) as container:
        container.start()
        assert container.wait(300) == 0
        assert container.logs() == b"41\n"


def test_render_takes_no_folder_that_holds_other_files(
    folder: Folder, busybox_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = folder.add("one", busybox_image)
    (folder.path / "mine").mkdir()
    (folder.path / "mine" / "thesis.txt").write_text("years of work")
    assert run(["render", name, "-o", "mine"]) == 2
    assert "[context-folder-taken]" in capsys.readouterr().err
    assert (folder.path / "mine" / "thesis.txt").read_text() == "years of work"
    for nowhere in ("/proc/nowhere", "/dev/null/x", "mine/thesis.txt/x"):
        assert run(["render", name, "-o", nowhere]) == 2
        assert "[output-unwritable]" in capsys.readouterr().err
    assert run(["render", name, "-o", "new"]) == 0
    assert run(["render", name, "-o", "new"]) == 0, "an earlier context is replaced"
