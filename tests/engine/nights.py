"""A project whose registry, index and apt repository are the tests' own: what the tests of nights start from."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from stackbuild.cli.main import run
from stackbuild.engine.docker_engine import Engine
from stackbuild.lock.file import write_lock
from stackbuild.lock.model import LockedWheel, PythonLock
from stackbuild.lock.path import lock_path
from stackbuild.nightly.model import Night, StackNight
from tests.build.stacks import image_lock, locked_wheel, write_stack
from tests.support.base_image import busybox_rootfs, debian_rootfs, image_configuration
from tests.support.bookworm_debs import lock_deb
from tests.support.cache import cached
from tests.support.debs import AptRepository, SigningKey, compress
from tests.support.index_server import IndexServer
from tests.support.layer_tars import digest
from tests.support.loopback import LoopbackServer
from tests.support.registry import Registry, RegistryFront
from tests.support.wheels import make_wheel

PYTHON = PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311")
ROOT = Path(__file__).parents[2]


class NightProject:
    """A folder with stacks on bases that the registry has.

    Args:
        engine: Has the bases, and builds.
        registry: Gets the bases.
        folder: An empty folder.
        busybox: Name of an image without Python.
        python: Name of an image with Python.
        running: Ends the servers.
    """

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        folder: Path,
        *,
        busybox: str,
        python: str,
        running: ExitStack,
    ) -> None:
        self.engine = engine
        self.registry = registry
        self.folder = folder
        self.prefix = f"test-night-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        self.wheels = folder / "wheels"
        self.stacks = folder / "stacks"
        for made in (self.wheels, self.stacks):
            made.mkdir()
        self.front = running.enter_context(RegistryFront(registry))
        self.index = running.enter_context(IndexServer({"default": self.wheels}))
        self._running = running
        rootfs = {"busybox": (busybox, busybox_rootfs()), "python": (python, debian_rootfs().read_bytes())}
        self.bases = {name: (image, self.push(name, content)) for name, (image, content) in rootfs.items()}
        (folder / "stackbuild.toml").write_text(
            f"[indexes]\ndefault = {json.dumps(self.index.url('default'))}\n"
            f'[registries]\n"docker.io" = {json.dumps(f"{self.front.address}/{self.prefix}")}\n'
        )

    @cached_property
    def apt(self) -> AptRepository:
        """The apt repository; nothing is in it."""
        home = self.folder / "gnupg"
        made = AptRepository(self.folder / "apt", key=SigningKey.make(home))
        # Each signature may start an agent anew.
        end = ["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"]
        self._running.callback(lambda: subprocess.run(end, check=True))
        made.write()
        return made

    @cached_property
    def repository(self) -> LoopbackServer:
        """Serves the apt repository."""
        return self._running.enter_context(self.apt.server())

    def push(self, name: str, *layers: bytes, env: Mapping[str, str] = {}) -> tuple[str, str]:
        """Push an image under ``NAME:1``; returns the digests of its index and manifest."""
        blobs = []
        for layer in layers:

            def compressed(path: Path, layer: bytes = layer) -> None:
                path.write_bytes(compress(layer, level=1))

            blobs.append(cached(f"gzip/{digest(layer).split(':')[1]}.tar.gz", compressed).read_bytes())
        listed = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        listed += [f"{key}={value}" for key, value in env.items()]
        # As the engine's reference images have it, so that a base need not be pulled.
        config = image_configuration([digest(layer) for layer in layers], {"Env": listed})
        repository = f"{self.prefix}/library/{name}"
        manifest = self.registry.put_image(repository, config, blobs)
        return self.registry.put_index(repository, "1", {"linux/amd64": manifest}), manifest[0]

    def move_tag(self, name: str, **env: str) -> None:
        """Let the base's tag name another image; the earlier one stays reachable by its digests."""
        content = busybox_rootfs() if name == "busybox" else debian_rootfs().read_bytes()
        self.push(name, content, env=env)

    def put_back(self, name: str) -> None:
        """Let the base's tag name what is locked."""
        self.move_tag(name)

    def delete_tag(self, name: str) -> None:
        """Remove the base's index, and with it its tag."""
        index, _ = self.bases[name][1]
        status, _, body = self.registry.request(
            "DELETE", f"/v2/{self.prefix}/library/{name}/manifests/{index}"
        )
        assert status == 202, body

    def wheel(self, name: str, version: str, **more: Any) -> LockedWheel:
        """Put a wheel on the index, and return its row of a lock."""
        files = {f"{name}.py": f"VERSION = {version!r}\n"}
        make_wheel(self.wheels, name, version, **{"files": files, **more})
        return self.locked(name, version)

    def locked(self, name: str, version: str) -> LockedWheel:
        """The row of a lock for a wheel that is on the index."""
        path = self.wheels / f"{name}-{version}-py3-none-any.whl"
        return locked_wheel(path, name, version, requested=True)

    def write(
        self,
        stem: str,
        *,
        wheels: Sequence[LockedWheel] | None = None,
        debs: Sequence[Path] = (),
        **spec: Any,
    ) -> str:
        """Write a stack and its lock, and return its name.

        Args:
            stem: End of its name.
            wheels: Makes it a stack with Python.
            debs: Packages of the apt repository.
            spec: Further keys of the spec.
        """
        base = "busybox" if wheels is None else "python"
        image, (index, manifest) = self.bases[base]
        info = self.engine.image(image)
        assert info is not None
        spec = {"base": {"image": base, "tag": "1"}, **spec}
        if wheels is not None:
            spec |= {"python": "3.11", "image": {"cmd": ["python"]}}
            spec.setdefault("packages", [f"{wheel.name}>={wheel.version}" for wheel in wheels])
        else:
            spec.setdefault("image", {"cmd": ["true"]})
        if debs:
            key = hashlib.sha256((self.folder / "apt/key.asc").read_bytes()).hexdigest()
            source = {"uri": self.repository.url, "suite": "stable", "key-sha256": key}
            spec |= {"apt-sources": [source], "apt": [path.name.partition("_")[0] for path in debs]}
        stack = write_stack(self.stacks, f"{self.prefix}-{stem}", **spec)
        lock = image_lock(stack, info, wheels=wheels or (), python=PYTHON if wheels is not None else None)
        platform = lock.platforms["linux/amd64"]
        said = json.loads(image_configuration(list(info.diff_ids), {"Env": info.config["Env"]}))
        found = platform.base.model_copy(
            update={
                "image": f"library/{base}",
                "index_digest": index,
                "platform_digest": manifest,
                "config": {key: said[key] for key in said if key not in ("rootfs", "history")},
                "created": said["created"],
            }
        )
        repository = self.repository.url.rpartition("/")[2]
        locked = [lock_deb(path)[0].model_copy(update={"repository": repository}) for path in debs]
        platform = platform.model_copy(update={"base": found, "debs": tuple(locked)})
        write_lock(lock_path(stack.path), lock.model_copy(update={"platforms": {"linux/amd64": platform}}))
        return stack.spec.name

    def environment(self) -> dict[str, str]:
        """What the command needs to know of this project."""
        return {
            "STACKBUILD_STORE": str(self.folder / "store"),
            "STACKBUILD_CONFIG": str(self.folder / "stackbuild.toml"),
        }

    def killed_at(self, step: str, number: int, signal_: signal.Signals, *arguments: str) -> int:
        """Run a night in a process of its own, send it a signal when a step begins for the n-th time.

        Returns:
            Its exit code.
        """
        program = (
            "import os, signal, sys\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "from stackbuild.cli import progress\n"
            "from stackbuild.cli.main import main\n"
            "step, left, number, told = sys.argv[1], [int(sys.argv[2])], int(sys.argv[3]), progress.PlainObserver.stage\n"
            "def stage(self, name, detail=''):\n"
            "    told(self, name, detail)\n"
            "    left[0] -= name == step\n"
            "    if name == step and left[0] == 0:\n"
            "        os.kill(os.getpid(), number)\n"
            "progress.PlainObserver.stage = stage\n"
            "main(sys.argv[4:])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, step, str(number), str(int(signal_)), "nightly", *arguments],
            cwd=self.folder,
            env={**os.environ, **self.environment(), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
        )
        return done.returncode

    def left_behind(self) -> list[str]:
        """What no night may leave: empty stores, names of unfinished images."""
        left = [path.name for path in (self.folder / "store/rebuilds").glob("rebuild-*")]
        return left + [ref for ref in self.names() if ref.endswith(":nightly-new")]

    def names(self) -> set[str]:
        """The engine's names of the project's images."""
        images = self.engine._api.images()
        return {ref for image in images for ref in image["RepoTags"] or [] if ref.startswith(self.prefix)}

    def clean(self) -> None:
        """Remove the images."""
        for image in self.engine._api.images():
            for ref in (image["RepoTags"] or []) + (image["RepoDigests"] or []):
                if self.prefix in ref:
                    self.engine.remove_image(ref)


class Nights:
    """Runs nights of one project, in this process.

    Args:
        project: The project.
        history: The file of the nights.
        capture: Gives what was printed.
    """

    def __init__(self, project: NightProject, history: Path, capture: Callable[[], str]) -> None:
        self.project = project
        self.history = history
        self._capture = capture

    @property
    def options(self) -> list[str]:
        """What every night of a test gets."""
        return [
            "--history",
            str(self.history),
            "--retry-pause",
            "0",
            "--reports",
            str(self.history.parent / "reports"),
        ]

    def run(self, *arguments: str) -> tuple[int, Night]:
        """Run a night; returns its exit code and what it found."""
        self._capture()
        code = run(["nightly", *arguments, *self.options, "--format", "json", "-q"])
        return code, Night.model_validate_json(self._capture())

    def of(self, stack: str, *arguments: str) -> tuple[int, StackNight]:
        """Run a night of one stack."""
        code, night = self.run(stack, *arguments)
        (found,) = night.stacks
        return code, found

    def table(self, *arguments: str) -> str:
        """Run a night, and return what a person sees."""
        self._capture()
        run(["nightly", *arguments, *self.options, "-q"])
        return self._capture()


@pytest.fixture(scope="module")
def one_night_project(
    engine: Engine,
    registry: Registry,
    busybox_image: str,
    debian_python_image: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NightProject]:
    """One project for a whole file of tests."""
    with ExitStack() as running:
        made = NightProject(
            engine,
            registry,
            tmp_path_factory.mktemp("night"),
            busybox=busybox_image,
            python=debian_python_image,
            running=running,
        )
        yield made
        made.clean()


@pytest.fixture
def nights(
    one_night_project: NightProject,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Nights]:
    """Nights of the file's project with a history of the test's own, and stacks too."""
    for name, value in one_night_project.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(one_night_project.folder)
    yield Nights(one_night_project, tmp_path / "history.sqlite", lambda: capfd.readouterr().out)
    for path in one_night_project.stacks.iterdir():
        path.unlink()
    for server in (one_night_project.index.server, one_night_project.front.server):
        server.behave()


def verdicts(stack: StackNight) -> dict[str, str]:
    """Code → gravest verdict."""
    return {code: str(verdict) for code, verdict in stack.verdicts.items()}
