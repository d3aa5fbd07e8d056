"""``stackbuild diff`` on images of a real engine: two builds of a stack, both builders, an imported image."""

from __future__ import annotations

import gzip
import json

import pytest

from stackbuild.cli.main import run
from stackbuild.drift.model import Drift
from tests.engine.publishing import Project
from tests.support.layer_tars import image_config, layer_tar

pytestmark = pytest.mark.engine


def diff(project: Project, *arguments: str) -> tuple[int, Drift]:
    target = project.folder / "drift.json"
    code = run(["diff", *arguments, "-q", "--format", "json", "-o", str(target)])
    return code, Drift.model_validate_json(target.read_bytes())


def kept(project: Project, name: str) -> str:
    """The stack's image under a name that the next build does not move."""
    ref = f"{project.name}-kept:{name}"
    project.engine.tag(f"{project.name}:latest", ref)
    return ref


def test_another_version_of_a_wheel_is_explained(project: Project) -> None:
    project.build("1")
    before = kept(project, "one")
    project.build("2")
    code, drift = diff(project, before, f"{project.name}:latest")
    assert code == 6
    assert drift.pins == ()
    (package,) = drift.packages
    assert (package.name, package.before, package.after, package.what) == ("leaf", "1", "2", ("version",))
    assert {file.owner for file in drift.files} == {"leaf 1", "leaf 2"}
    assert drift.first_layer is not None
    assert drift.first_layer.maker == "other wheels"
    assert drift.first_layer.inputs == ("leaf 1 → 2",)
    assert drift.complete
    code, drift = diff(project, f"{project.name}:latest", project.name)
    assert (code, drift.levels) == (0, ("pins", "packages"))
    code, drift = diff(project, before, f"stacks/{project.name}.lock")
    assert (code, [item.name for item in drift.packages]) == (6, ["leaf"])


def test_h01_two_clean_builds_by_the_engine_are_no_drift(project: Project, builder_stages: None) -> None:
    project.write("1")
    build = ["build", project.name, "--locked", "-q", "--builder", "dockerfile", "--no-cache"]
    assert run(build) == 0
    before = kept(project, "clean")
    assert run(build) == 0
    after = f"{project.name}:latest"
    one, other = project.engine.image(before), project.engine.image(after)
    assert one is not None
    assert other is not None
    assert one.diff_ids != other.diff_ids
    code, drift = diff(project, before, after)
    assert [file.path for file in drift.files if not file.noise] == []
    assert code == 0
    assert "nondeterministic-metadata" in {finding.code for finding in drift.findings}

    # The same by our own builder: other files, which the committed table of differences names, and equal packages.
    project.build("1")
    code, drift = diff(project, before, after)
    assert (drift.pins, drift.packages) == ((), ())
    assert code == 6
    assert {file.path for file in drift.files if not file.noise} >= {"/opt/venv/pyvenv.cfg"}
    assert all(file.path.startswith(("/opt/venv", "/etc", "/root")) for file in drift.files if not file.noise)


def test_an_imported_image_builds_to_the_same_packages(project: Project) -> None:
    project.build("1")
    drafted = project.stacks / "drafted.yaml"
    before = kept(project, "imported")
    assert run(["import", before, "--name", f"{project.name}-again", "-o", str(drafted), "-q"]) == 0
    again = drafted.rename(project.stacks / f"{project.name}-again.yaml")
    assert run(["lock", again.stem, "-q"]) == 0
    assert run(["build", again.stem, "--locked", "-q"]) == 0
    code, drift = diff(project, before, f"{again.stem}:latest")
    assert drift.packages == ()
    assert {pin.pin for pin in drift.pins} <= {"stack", "label org.opencontainers.image.title"} | {
        f"label org.opencontainers.image.{name}" for name in ("source", "description")
    }
    assert code == 6  # the stack's name is a pin


def test_images_in_a_registry_are_compared_without_pulling(project: Project) -> None:
    repository = f"{project.name}/compared"
    shared = layer_tar({"etc": None, "etc/os-release": "ID=debian\nVERSION_ID=12\n"})
    refs = []
    for tag, content in (("1", "one"), ("2", "two")):
        tars = [shared, layer_tar({"srv": None, "srv/f": content})]
        config = json.dumps(image_config(tars)).encode()
        made = project.registry.put_image(repository, config, [gzip.compress(tar, mtime=0) for tar in tars])
        project.registry.put_index(repository, tag, {"linux/amd64": made})
        refs.append(f"{project.registry.address}/{repository}:{tag}")
    code, drift = diff(project, *refs)
    assert code == 6
    assert [(file.path, file.what) for file in drift.files] == [("/srv/f", ("content",))]
    assert drift.first_layer is not None
    assert (drift.first_layer.number, drift.first_layer.maker) == (2, "step 1")
    assert all(project.engine.image(ref) is None for ref in refs)
    assert diff(project, refs[0], refs[0])[0] == 0
