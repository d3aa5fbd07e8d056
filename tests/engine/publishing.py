"""A project with one stack, built, and a registry that has its base: what the tests of publishing start from."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from stackbuild.cli.main import run
from stackbuild.cli.progress import PlainObserver
from stackbuild.engine.docker_engine import Engine
from stackbuild.lock.file import write_lock
from stackbuild.lock.model import PythonLock
from stackbuild.lock.path import lock_path
from stackbuild.registry.client import RegistryClient
from tests.build.stacks import image_lock, locked_wheel, write_stack
from tests.support.base_image import debian_rootfs, image_configuration
from tests.support.bookworm_debs import lock_deb
from tests.support.cache import cached
from tests.support.debs import compress
from tests.support.registry import Registry
from tests.support.wheels import make_wheel

PYTHON = PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311")
ROOT = Path(__file__).parents[2]


class Project:
    """A folder with a stack on a base that the registry has.

    Args:
        engine: Has the base, and builds.
        registry: Gets the base, and what is published.
        folder: An empty folder.
        base: The base's name in the engine.
        index: URL of the index that serves ``wheels``; None to take them from that folder.
        repositories: Apt repositories by name, as the site file has them.
    """

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        folder: Path,
        base: str,
        *,
        index: str | None = None,
        repositories: Mapping[str, str] | None = None,
    ) -> None:
        self.engine = engine
        self.registry = registry
        self.folder = folder
        self.name = f"test-publish-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        self.repository = f"{registry.address}/team/{self.name}"
        self.wheels = folder / "wheels"
        self.stacks = folder / "stacks"
        for made in (self.wheels, self.stacks):
            made.mkdir(exist_ok=True)
        self._base = base
        info = engine.image(base)
        assert info is not None
        self._base_info = info
        diff_id = info.diff_ids[0]

        def compressed(path: Path) -> None:
            path.write_bytes(compress(debian_rootfs().read_bytes(), level=1))

        blob = cached(f"gzip/{diff_id.split(':')[1]}.tar.gz", compressed)
        config = image_configuration([diff_id], {"Env": list(info.config["Env"])})
        self.base_digest, size = registry.put_image(f"{self.name}/library/base", config, [blob.read_bytes()])
        self.base_index = registry.put_index(
            f"{self.name}/library/base", "1", {"linux/amd64": (self.base_digest, size)}
        )
        self.base_blob = "sha256:" + hashlib.sha256(blob.read_bytes()).hexdigest()
        site = {
            "indexes": {"default": index or str(self.wheels)},
            "registries": {"docker.io": f"{registry.address}/{self.name}"},
            "repositories": dict(repositories or {}),
        }
        (folder / "stackbuild.toml").write_text(
            "".join(
                f"[{table}]\n" + "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in rows.items())
                for table, rows in site.items()
            )
        )

    def environment(self, store: str = "store") -> dict[str, str]:
        """What the command needs to know of this project."""
        return {
            "STACKBUILD_STORE": str(self.folder / store),
            "STACKBUILD_CONFIG": str(self.folder / "stackbuild.toml"),
        }

    def write(
        self,
        leaf: str = "1",
        requires: Sequence[str] = (),
        *,
        debs: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        cuda: str = "",
    ) -> None:
        """Write spec, lock and wheels.

        Args:
            leaf: Version of its one wheel; another is another image.
            requires: What the wheel requires, which is not in the image.
            debs: Packages on top of the base, of the apt repository ``debian``.
            environment: The image's; another is another image of the same layers.
            cuda: What the base says in CUDA_VERSION.
        """
        files = {"leaf.py": f"VERSION = {leaf!r}\n"}
        wheel = make_wheel(self.wheels, "leaf", leaf, files=files, requires=requires)
        stack = write_stack(
            self.stacks,
            self.name,
            base={"image": "base", "tag": "1"},
            python="3.11",
            packages=[f"leaf=={leaf}"],
            apt=[path.name.partition("_")[0] for path in debs],
            image={"cmd": ["python"], "env": dict(environment or {})},
        )
        lock = image_lock(
            stack,
            self._base_info,
            wheels=[locked_wheel(wheel, "leaf", leaf, requested=True)],
            python=PYTHON,
            config={"Env": [*self._base_info.config["Env"], f"CUDA_VERSION={cuda}"]} if cuda else None,
        )
        platform = lock.platforms["linux/amd64"]
        base = platform.base.model_copy(
            update={
                "image": "library/base",
                "index_digest": self.base_index,
                "platform_digest": self.base_digest,
            }
        )
        changed = lock.model_copy(
            update={
                "platforms": {
                    "linux/amd64": platform.model_copy(
                        update={"base": base, "debs": tuple(lock_deb(path)[0] for path in debs)}
                    )
                }
            }
        )
        write_lock(lock_path(stack.path), changed)

    def build(self, leaf: str = "1", requires: Sequence[str] = (), **more: Any) -> None:
        """Build the stack's image; arguments are those of ``write``."""
        self.write(leaf, requires, **more)
        assert run(["build", self.name, "--locked", "-q"]) == 0

    def digest(self, tag: str) -> str | None:
        """What a tag of the repository names."""
        with RegistryClient() as client:
            found = client.document(self.repository, tag)
        return None if found is None else f"sha256:{hashlib.sha256(found[0]).hexdigest()}"

    def tags(self) -> set[str]:
        """All tags of the repository."""
        with RegistryClient() as client:
            return set(client.tags(self.repository))

    def at(self, step: str, act: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
        """Have the command in this process ``act`` when a step begins for the first time."""
        done: list[str] = []
        told = PlainObserver.stage

        def stage(observer: PlainObserver, name: str, detail: str = "") -> None:
            told(observer, name, detail)
            if name == step and not done:
                done.append(step)
                act()

        patch.setattr(PlainObserver, "stage", stage)

    def killed_at(self, step: str, *arguments: str) -> None:
        """Run the command in a process of its own, and kill that when the step begins."""
        program = (
            "import os, signal, sys\n"
            "from stackbuild.cli import progress\n"
            "from stackbuild.cli.main import run\n"
            "step, told = sys.argv[1], progress.PlainObserver.stage\n"
            "def stage(self, name, detail=''):\n"
            "    told(self, name, detail)\n"
            "    if name == step:\n"
            "        os.kill(os.getpid(), signal.SIGKILL)\n"
            "progress.PlainObserver.stage = stage\n"
            "sys.exit(run(sys.argv[2:]))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, step, *arguments],
            cwd=self.folder,
            env={**os.environ, **self.environment(), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == -9, f"not killed at {step}: {done.stdout}{done.stderr}"

    def clean(self) -> None:
        """Remove the images."""
        for image in self.engine._api.images():
            for ref in (image["RepoTags"] or []) + (image["RepoDigests"] or []):
                if self.name in ref:
                    self.engine.remove_image(ref)


@pytest.fixture(scope="module")
def one_publish_project(
    engine: Engine, registry: Registry, debian_python_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    """One project for a whole file of tests."""
    made = Project(engine, registry, tmp_path_factory.mktemp("publish"), debian_python_image)
    yield made
    made.clean()


@pytest.fixture
def project(one_publish_project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The file's project, with commands run in it."""
    for name, value in one_publish_project.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(one_publish_project.folder)
    return one_publish_project
