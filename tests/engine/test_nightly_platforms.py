"""Nights of stacks for several platforms: each is rebuilt where the engine can, and named where it cannot."""

from __future__ import annotations

import io
import platform
import shutil
import tarfile
from pathlib import Path

import pytest

from stackbuild.lock.file import write_lock
from stackbuild.lock.model import Lock, LockedWheel, OsLock, PlatformLock
from stackbuild.lock.path import lock_path
from stackbuild.nightly.history.history import History
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_INDEX
from stackbuild.resolution.bases.image_base import lock_image_base
from stackbuild.site_config import load_site_config
from stackbuild.spec.model import ImageBaseSpec, Platform
from stackbuild.spec.platforms import PLATFORM_OF_MACHINE, platform_in_a_name
from stackbuild.spec.requirements_input import lock_inputs_sha256
from tests.build.stacks import write_stack
from tests.engine.nights import PYTHON, NightProject, Nights, nights, one_night_project, verdicts
from tests.support.base_image import busybox_rootfs, image_configuration
from tests.support.debs import compress
from tests.support.layer_tars import digest

pytestmark = pytest.mark.engine
__all__ = ["nights", "one_night_project"]  # fixtures

OWN: Platform = PLATFORM_OF_MACHINE[platform.machine()]
OTHER: Platform = "linux/amd64" if OWN == "linux/arm64" else "linux/arm64"


def _foreign_rootfs() -> bytes:
    """A root file system whose only program is of another processor."""
    program = bytearray(Path(shutil.which("busybox") or "").read_bytes())
    # ELF's e_machine (System V ABI, figure 4-3): 183 is AArch64, 62 is x86-64.
    program[18:20] = (62 if OTHER == "linux/amd64" else 183).to_bytes(2, "little")
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name in ("bin/sleep", "usr/bin/python3.11"):
            member = tarfile.TarInfo(name)
            member.mode, member.size = 0o755, len(program)
            archive.addfile(member, io.BytesIO(program))
    return raw.getvalue()


def _push(project: NightProject, name: str) -> None:
    """Push a base for both platforms."""
    children = {}
    for of, rootfs in ((OWN, busybox_rootfs()), (OTHER, _foreign_rootfs())):
        config = image_configuration([digest(rootfs)], {"Env": ["PATH=/bin"]}, of.partition("/")[2])
        children[of] = project.registry.put_image(
            f"{project.prefix}/library/{name}", config, [compress(rootfs, level=1)]
        )
    project.registry.put_index(f"{project.prefix}/library/{name}", "1", children)


def _stack(project: NightProject, stem: str, *, wheel: LockedWheel | None = None) -> str:
    """A stack for both platforms; with a wheel the foreign one has Python."""
    name = f"multi-{stem}"
    _push(project, name)
    (project.stacks / "motd").write_text("hello\n")
    stack = write_stack(
        project.stacks,
        f"{project.prefix}-{stem}",
        base={"image": name, "tag": "1"},
        platforms=[OWN, OTHER],
        files=[{"from": "motd", "to": "/etc/motd"}],
        image={"cmd": ["true"]},
    )
    site = load_site_config(project.folder, {})
    platforms = {}
    with RegistryClient(site.registries) as client:
        for of in (OWN, OTHER):
            base = lock_image_base(ImageBaseSpec(image=name, tag="1"), of, client=client)
            python = PYTHON if wheel is not None and of == OTHER else None
            platforms[of] = PlatformLock(
                base=base,
                os=OsLock(id="debian", version_id="12", codename="bookworm", glibc="2.36"),
                python=python,
                wheels=(wheel,) if wheel is not None and python is not None else (),
                created="2026-11-01T00:00:00Z",
            )
    sha256 = lock_inputs_sha256(stack.spec, stack.folder)
    write_lock(lock_path(stack.path), Lock(stack=stack.spec.name, spec_sha256=sha256, platforms=platforms))
    return stack.spec.name


def test_a_platform_that_needs_no_program_run_is_rebuilt_on_any_engine(nights: Nights) -> None:
    project = nights.project
    name = _stack(project, "plain")
    code, night = nights.run(name)
    own, other = night.stacks
    assert (code, own.platform, other.platform) == (0, OWN, OTHER), night.findings
    assert night.labels == (f"{name} ({OWN})", f"{name} ({OTHER})")
    assert (own.outcome, other.outcome) == ("unchanged", "unchanged")
    assert verdicts(own)["rebuild-reproduces"] == verdicts(other)["rebuild-reproduces"] == "PASS"
    assert own.image == f"{name}:nightly"
    assert other.image == f"{name}:nightly-{platform_in_a_name(OTHER)}"
    assert own.config_digest != other.config_digest
    found = project.engine.image(other.image)
    assert found is not None
    assert (f"{found.os}/{found.architecture}", found.diff_ids) == (OTHER, other.diff_ids)
    assert verdicts(other)["platform-not-verified"] == "SKIP"
    assert "platform-not-verified" not in verdicts(own)
    assert not other.complete
    assert "scan.json" in other.reports
    assert set(own.reports.values()).isdisjoint(other.reports.values())

    code, night = nights.run(name)
    assert code == 0
    told = [
        finding.summary
        for stack in night.stacks
        for finding in stack.findings
        if finding.code == "rebuild-reproduces"
    ]
    assert len(told) == 2
    assert all("the same as the night of" in text for text in told)
    with History(nights.history) as history:
        assert {series.platform for series in history.series()} == {OWN, OTHER}
    assert project.left_behind() == []


def test_a_platform_whose_programs_the_engine_cannot_run_is_named_everywhere(
    nights: Nights, tmp_path: Path
) -> None:
    project = nights.project
    wheel = project.wheel("burl", "1.0")
    name = _stack(project, "python", wheel=wheel)
    page = tmp_path / "page"
    before = len(project.index.requested("/files/"))
    code, night = nights.run(name, "--page", str(page))
    own, other = night.stacks
    assert (code, own.outcome, other.outcome) == (0, "unchanged", "unchanged"), night.findings
    assert verdicts(own)["rebuild-reproduces"] == "PASS"
    (finding,) = [finding for finding in other.findings if finding.code == "rebuild-reproduces"]
    assert finding.verdict == "SKIP"
    assert f"not rebuilt: this engine runs {OWN}" in finding.summary
    assert f"programs of {OTHER}" in finding.summary
    assert "machine of that architecture" in finding.next_step
    assert (other.diff_ids, other.complete) == ((), False)
    assert len(project.index.requested("/files/")) == before, "nothing is fetched for it in vain"
    assert verdicts(other)["inputs-served"] == "PASS"

    assert not night.complete
    table = nights.table(name)
    assert f"{name} ({OTHER})" in table
    assert finding.summary in table
    assert "not complete: rebuild-reproduces not judged" in table
    assert finding.summary in (page / "nightly.xml").read_text()
    (of_other,) = page.glob(f"stacks/{name}--{platform_in_a_name(OTHER)}.html")
    assert finding.summary in of_other.read_text()
    assert f"{name} ({OTHER})" in (page / "index.html").read_text()
    assert project.left_behind() == []


def test_what_one_platform_lacks_is_told_of_that_one(nights: Nights) -> None:
    project = nights.project
    wheel = project.wheel("gall", "1.0")
    name = _stack(project, "lacks", wheel=wheel)
    (project.wheels / wheel.file).unlink()
    code, night = nights.run(name)
    own, other = night.stacks
    assert (code, own.outcome, other.outcome) == (3, "unchanged", "spec-or-lock")
    assert verdicts(own)["rebuild-reproduces"] == "PASS"
    assert verdicts(other)["broken-upstream"] == "FAIL"
    assert "broken-upstream" not in verdicts(own)


def test_a_base_whose_tag_is_deleted_is_pulled_by_its_digest(nights: Nights) -> None:
    project = nights.project
    name = _stack(project, "deleted")
    repository = f"{project.prefix}/library/multi-deleted"
    status, headers, _ = project.registry.request(
        "GET", f"/v2/{repository}/manifests/1", headers={"Accept": OCI_INDEX}
    )
    assert status == 200
    index = headers["docker-content-digest"]
    assert project.registry.request("DELETE", f"/v2/{repository}/manifests/{index}")[0] == 202
    code, night = nights.run(name)
    assert code == 3
    for stack in night.stacks:
        assert stack.outcome == "spec-or-lock"
        assert verdicts(stack)["tag-removed"] == "FAIL"
        assert verdicts(stack)["rebuild-reproduces"] == "PASS", stack.findings
