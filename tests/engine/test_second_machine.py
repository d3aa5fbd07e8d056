"""A second machine: another engine, an empty store, the same registry. It fetches no wheel and no deb."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stackbuild.cli.main import run
from stackbuild.engine.docker_engine import Engine
from tests.engine.publishing import Project
from tests.support.debs import AptRepository, make_deb
from tests.support.engine_program import installed_engine, newer_engine
from tests.support.index_server import IndexServer
from tests.support.loopback import LoopbackServer
from tests.support.registry import Registry
from tests.support.second_engine import running_daemon

pytestmark = pytest.mark.engine


@dataclass(frozen=True)
class Published:
    """A stack that the first machine built and published; its inputs came from servers that keep what was asked.

    Attributes:
        project: The stack.
        deb: The package on top of its base.
        row: What its build said.
        index: Served its wheels.
        apt: Served its debs.
    """

    project: Project
    deb: Path
    row: dict[str, Any]
    index: IndexServer
    apt: LoopbackServer

    def asked(self) -> list[str]:
        """Paths that any machine asked the two servers for."""
        return [request.path for request in (*self.index.server.requests, *self.apt.requests)]


@pytest.fixture(scope="module")
def published(
    engine: Engine, registry: Registry, debian_python_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Published]:
    folder = tmp_path_factory.mktemp("first-machine")
    deb = make_deb(folder / "debs", "ours", "1.0", files={"/usr/share/ours/data": "ours\n"})
    repository = AptRepository(folder / "apt")
    repository.add(deb)
    (folder / "wheels").mkdir()
    with (
        IndexServer({"default": folder / "wheels"}) as index,
        repository.server() as apt,
        pytest.MonkeyPatch.context() as patch,
        ExitStack() as at_the_end,
    ):
        project = Project(
            engine,
            registry,
            folder,
            debian_python_image,
            index=index.url("default"),
            repositories={"debian": apt.url},
        )
        at_the_end.callback(project.clean)
        project.write("1", debs=[deb])
        _work_in(project, project.environment(), patch)
        assert run(["build", project.name, "--locked", "-q", "--format", "json", "-o", "built.json"]) == 0
        (row,) = json.loads((folder / "built.json").read_text())["stacks"]
        assert run(["publish", project.name, project.repository, "-q"]) == 0
        made = Published(project, deb, row, index, apt)
        assert sorted(Path(path).suffix for path in made.asked() if _is_file(path)) == [".deb", ".whl"]
        yield made


def _is_file(path: str) -> bool:
    return "/files/" in path or "/pool/" in path


def _work_in(project: Project, environment: dict[str, str], patch: pytest.MonkeyPatch) -> None:
    patch.chdir(project.folder)
    cache = f"{project.registry.address}/team/{project.name}-layers"
    for name, value in {**environment, "STACKBUILD_LAYER_CACHE": cache}.items():
        patch.setenv(name, value)


@pytest.mark.parametrize("containerd_store", [False, True], ids=["graph-driver", "containerd-store"])
def test_it_builds_and_publishes_without_a_wheel_or_deb(
    published: Published,
    containerd_store: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    project = published.project
    for server in (published.index.server, published.apt):
        server.requests.clear()
    program = newer_engine() if containerd_store else installed_engine()
    settings = {"features": {"containerd-snapshotter": containerd_store}} if containerd_store else {}
    with running_daemon(program, settings=settings, reach=[project.registry.port]) as daemon:
        with Engine.connect(daemon.url) as second:
            assert second.info().containerd_store == containerd_store
        _work_in(project, {**project.environment(), "STACKBUILD_STORE": str(tmp_path / "empty")}, monkeypatch)
        monkeypatch.setenv("DOCKER_HOST", daemon.url)

        project.write("1", debs=[published.deb])
        row = _built(project, capfd)
        assert (row["made"], row["unchanged"]) == ([], False)
        assert sorted(row["reused"]) == sorted(published.row["made"])
        assert row["diff-ids"] == published.row["diff-ids"]
        assert row["config-digest"] == published.row["config-digest"]
        assert run(["publish", project.name, f"{project.repository}:there", "-q"]) == 0
        assert project.digest("there") == project.digest("latest"), "it was published: it is only tagged"
        assert published.asked() == []

        # Another image of the same layers is built, judged and described there, still without them.
        project.write("1", debs=[published.deb], environment={"ON": tmp_path.name})
        row = _built(project, capfd)
        assert row["made"] == []
        assert row["diff-ids"] == published.row["diff-ids"]
        assert row["config-digest"] != published.row["config-digest"]
        new = f"{project.repository}:new"
        assert run(["publish", project.name, new, "-q", "--format", "json"]) == 0, capfd.readouterr()
        report = json.loads(capfd.readouterr().out)
        assert (report["outcome"], report["complete"]) == ("published", True)
        assert report["platforms"][0]["config-digest"] == row["config-digest"]
        assert {entry["type"].rpartition("/")[2] for entry in report["platforms"][0]["attached"]} == {
            "vnd.cyclonedx+json",
            "vnd.stackbuild.scan.v1+json",
            "vnd.stackbuild.verification.v1+json",
        }
        assert published.asked() == []

        # From nothing it makes the very same image.
        row = _built(project, capfd, "--no-cache")
        assert row["reused"] == []
        assert row["diff-ids"] == published.row["diff-ids"]
        assert row["config-digest"] == report["platforms"][0]["config-digest"]
        assert any(_is_file(path) for path in published.asked())


def _built(project: Project, capfd: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    capfd.readouterr()
    code = run(["build", project.name, "--locked", "--format", "json", *options])
    shown = capfd.readouterr()
    assert code == 0, shown.err
    (row,) = json.loads(shown.out)["stacks"]
    assert isinstance(row, dict)
    return row
