"""A lock that somebody edited by hand, where only the world can tell: the night says which entry, and exit 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stackbuild.lock.model import PlatformLock
from stackbuild.nightly.outcome import outcome_of_inputs
from stackbuild.resolution.wheels.locking import WheelsResult
from tests.nightly.inputs.scene import IMAGE, TAG, Scene, scene, told

BASE = f"{IMAGE}:{TAG}"
OTHER = "sha256:" + "9" * 64

# What is edited → verdict, code and subject of the finding, and what it says.
Edit = Callable[[PlatformLock], PlatformLock]


def _base(**fields: Any) -> Edit:
    return lambda lock: lock.model_copy(update={"base": lock.base.model_copy(update=fields)})


def _wheel(**fields: Any) -> Edit:
    return lambda lock: lock.model_copy(update={"wheels": (lock.wheels[0].model_copy(update=fields),)})


def _deb(**fields: Any) -> Edit:
    return lambda lock: lock.model_copy(update={"debs": (lock.debs[0].model_copy(update=fields),)})


def _env(lock: PlatformLock) -> PlatformLock:
    config = lock.base.model_dump()["config"]
    return _base(config={**config, "config": {**config["config"], "Env": ["MINE=1"]}})(lock)


EDITS: dict[str, tuple[Edit, str, str, str]] = {
    "platform digest": (_base(platform_digest=OTHER), "lock-invalid", BASE, "base.platform-digest: its index has sha256:"),
    "configuration digest": (
        _base(config_digest=OTHER), "lock-invalid", BASE, f"base.config-digest: the registry has no {OTHER}",
    ),
    "layers": (_base(diff_ids=(OTHER,)), "lock-invalid", BASE, "base.diff-ids: its configuration has other layers"),
    "environment": (_env, "lock-invalid", BASE, "base.config: its configuration has another config"),
    "image": (_base(image="nvidia/other"), "no-such-repository", "nvidia/other:", ""),
    "tag": (_base(tag="99"), "tag-removed", f"{IMAGE}:99", "has been removed"),
    "wheel hash": (_wheel(sha256="9" * 64), "artifact-changed", "leaf 1.0", f"locked sha256 {'9' * 64}"),
    "wheel file": (
        _wheel(file="leaf-1.0-py2-none-any.whl"), "broken-upstream", "leaf 1.0", "it has leaf-1.0-py3-none-any.whl",
    ),
    "wheel index": (_wheel(index="corp"), "broken-upstream", "leaf 1.0", "gone from the index corp"),
    "unknown index": (_wheel(index="gone"), "index-unknown", "index gone", "Nothing says where the index 'gone' is"),
    "deb hash": (_deb(sha256="9" * 64), "artifact-changed", "tool 1.0-1", f"locked sha256 {'9' * 64}"),
    "deb version": (
        _deb(version="1.0-9"), "lock-invalid", "tool 1.0-9",
        "The lock calls tool 1.0-9 for amd64 what the repository",
    ),
    "deb architecture": (
        _deb(architecture="all"), "lock-invalid", "tool 1.0-1", "for all what the repository",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    resolved: dict[str, WheelsResult] = {}
    with scene(tmp_path_factory.mktemp("edited"), resolved, indexes=("corp",)) as made:
        made.wheel("leaf", "1.0")
        made.deb("tool", "1.0-1")
        made.lock_now("leaf")
        yield made


@pytest.mark.parametrize("case", EDITS)
def test_what_is_edited_is_named(case: str, night: Scene, tmp_path: Path) -> None:
    assert tmp_path
    edit, code, subject, says = EDITS[case]
    locked = night.lock
    assert locked is not None
    part = locked.platforms["linux/amd64"]
    night.lock = locked.model_copy(update={"platforms": {"linux/amd64": edit(part)}})
    try:
        findings = night.check()
    finally:
        night.lock = locked
    (finding,) = [finding for finding in findings if finding.verdict != "PASS"]
    assert (finding.verdict, finding.code) == ("FAIL", code), told(findings)
    assert finding.subject.startswith(subject)
    assert says in finding.summary
    assert finding.next_step
    assert outcome_of_inputs(findings) == "spec-or-lock"


def test_unedited_it_is_served(night: Scene) -> None:
    assert told(night.check()) == []
