"""A lock that contradicts itself is refused with the entry that does, by every command that reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stackbuild.cli.main import run
from stackbuild.errors import LockError
from stackbuild.lock.file import read_lock, write_lock
from stackbuild.lock.path import lock_path
from stackbuild.spec.requirements_input import lock_inputs_sha256
from tests.build.stacks import write_stack
from tests.lock.examples import bootstrap_base, deb, image_base, lock, platform_lock, wheel

# What is edited in the platform's part of the lock's file → what is said of it.
Edit = Callable[[dict[str, Any]], None]
EDITS: dict[str, tuple[Edit, str]] = {
    "wheel version": (
        lambda part: part["wheels"][0].update(version="1.1"),
        "wheels.numpy.version: it is 1.1, and the file is numpy-1.0-py3-none-any.whl",
    ),
    "wheel name": (
        lambda part: part["wheels"][0].update(name="nompy"),
        "wheels.nompy.name: the file numpy-1.0-py3-none-any.whl is of numpy",
    ),
    "wheel file of another version": (
        lambda part: part["wheels"][0].update(file="numpy-1.2-py3-none-any.whl"),
        "wheels.numpy.version: it is 1.0, and the file is numpy-1.2-py3-none-any.whl",
    ),
    "wheel file that is none": (
        lambda part: part["wheels"][0].update(file="numpy.whl"),
        "wheels.numpy.file: numpy.whl is not the name of a wheel",
    ),
    "wheel twice": (
        lambda part: part["wheels"].append(part["wheels"][0]),
        "wheels: numpy is there 2 times",
    ),
    "wheel requires what is not there": (
        lambda part: part["wheels"][0].update(requires=["scipy"]),
        "wheels.numpy.requires: there is no wheel scipy",
    ),
    "wheel url of an index": (
        lambda part: part["wheels"][0].update(url="https://example.org/numpy-1.0-py3-none-any.whl"),
        "wheels.numpy.url: a wheel has one where its index is 'url'",
    ),
    "wheel index url without one": (
        lambda part: part["wheels"][0].update(index="url"),
        "wheels.numpy.url: a wheel has one where its index is 'url'",
    ),
    "wheel hash": (lambda part: part["wheels"][0].update(sha256="e" * 63), "platforms.linux/amd64.wheels.0.sha256: "),
    "wheel size": (lambda part: part["wheels"][0].update(size=-1), "platforms.linux/amd64.wheels.0.size: "),
    "wheel group": (lambda part: part["wheels"][0].update(group="mine"), "platforms.linux/amd64.wheels.0.group: "),
    "deb twice": (
        lambda part: part["debs"].append(part["debs"][0]),
        "debs: libgomp1 for amd64 is there 2 times",
    ),
    "deb path that leaves its repository": (
        lambda part: part["debs"][0].update(path="../pool/x.deb"),
        "debs.libgomp1.path: ../pool/x.deb is no path of a package below its repository",
    ),
    "deb path that is none": (
        lambda part: part["debs"][0].update(path="pool/x.rpm"),
        "debs.libgomp1.path: pool/x.rpm is no path of a package below its repository",
    ),
    "deb hash": (lambda part: part["debs"][0].update(sha256="no"), "platforms.linux/amd64.debs.0.sha256: "),
    "base digest": (
        lambda part: part["base"].update({"platform-digest": "sha256:b"}),
        "platforms.linux/amd64.base.image.platform-digest: ",
    ),
    "base configuration": (
        lambda part: part["base"]["config"].update(architecture="arm64"),
        "base.config: the configuration is of an image for linux/arm64",
    ),
    "base moment": (
        lambda part: part["base"].update(created="yesterday"),
        "base.created: 'yesterday' is no moment as RFC 3339 writes it",
    ),
    "moment": (
        lambda part: part.update(created="2026-01-02T03:04:05"),
        "created: '2026-01-02T03:04:05' is no moment as RFC 3339 writes it",
    ),
    "python version": (
        lambda part: part["python"].update(version="3.11.2"),
        "python.tag: cp312 is not the tag of Python 3.11.2",
    ),
    "python executable": (
        lambda part: part["python"].update(executable="/usr/bin/python3.11"),
        "python.executable: /usr/bin/python3.11 is not Python 3.12.3",
    ),
    "python tag": (
        lambda part: part["python"].update(tag="cp313"),
        "python.tag: cp313 is not the tag of Python 3.12.3",
    ),
}  # fmt: skip


def _edited(path: Path, edit: Edit) -> None:
    document = json.loads(path.read_text())
    edit(document["platforms"]["linux/amd64"])
    path.write_text(json.dumps(document, indent=2))


@pytest.mark.parametrize("case", EDITS)
def test_each_field_that_is_edited_by_hand_is_named(case: str, tmp_path: Path) -> None:
    edit, told = EDITS[case]
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    _edited(path, edit)
    with pytest.raises(LockError) as caught:
        read_lock(path)
    assert caught.value.code == "lock-invalid"
    assert "edited by hand?" in caught.value.what
    assert told in f"{caught.value.what}\n{caught.value.detail}"
    assert "git checkout -- " in caught.value.do
    assert "stackbuild lock example" in caught.value.do


def test_several_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    for case in ("wheel version", "python tag", "moment"):
        _edited(path, EDITS[case][0])
    with pytest.raises(LockError) as caught:
        read_lock(path)
    told = f"{caught.value.what}\n{caught.value.detail}"
    assert all(EDITS[case][1] in told for case in ("wheel version", "python tag", "moment"))


def test_the_spellings_that_names_and_versions_have_are_no_contradiction(tmp_path: Path) -> None:
    wheels = (
        wheel("numpy"),
        wheel("torch", "2.13.0+cpu"),
        wheel("ruamel-yaml").model_copy(update={"file": "ruamel.yaml-1.0-1-py3-none-any.whl"}),
        wheel("pyzstd", "1.0").model_copy(update={"file": "PyZstd-1.0.0-py3-none-any.whl"}),
        wheel("extra").model_copy(update={"index": "url", "url": "https://example.org/x.whl"}),
    )
    debs = (
        deb("tool", "1:2.0-1"),
        deb("tool", "1:2.0-1").model_copy(update={"architecture": "i386"}),
        deb("vendor").model_copy(update={"path": "./vendor_current.deb"}),
    )
    path = tmp_path / "example.lock"
    moment = "2026-01-02T03:04:05.123+02:00"
    for base in (image_base(), bootstrap_base(deb("apt"))):
        part = platform_lock(base=base, wheels=wheels, debs=debs, created=moment)
        write_lock(path, lock(platforms={"linux/amd64": part}))
        assert len(read_lock(path).platforms["linux/amd64"].wheels) == 5


@pytest.mark.parametrize(
    "command",
    [("check",), ("lock", "--check"), ("lock", "--export", "pylock"), ("render",), ("nightly",), ("sbom",)],
)
def test_every_command_ends_with_3_and_says_which_entry(
    command: tuple[str, ...],
    tmp_path: Path,
    store_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    assert not store_root.exists()
    (tmp_path / "stacks").mkdir()
    base = image_base()
    stack = write_stack(tmp_path / "stacks", "example", base={"image": base.image, "tag": base.tag})
    path = lock_path(stack.path)
    write_lock(path, lock(spec_sha256=lock_inputs_sha256(stack.spec, stack.folder)))
    _edited(path, EDITS["wheel version"][0])
    assert run([*command, "example", "-q"]) == 3
    shown = capsys.readouterr()
    told = f"{shown.out}{shown.err}"
    assert EDITS["wheel version"][1] in told
    assert "git checkout -- " in told
    assert "lock-invalid" in told
