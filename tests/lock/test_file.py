"""Reading and writing locks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stackbuild.errors import ExitCode, LockError
from stackbuild.lock.file import lock_bytes, read_lock, staleness, write_lock
from stackbuild.lock.model import BaseLock, Lock
from stackbuild.lock.path import lock_path
from stackbuild.spec.model import StackSpec
from stackbuild.spec.requirements_input import lock_inputs_sha256
from tests.lock.examples import bootstrap_base, deb, digest, image_base, lock, platform_lock, wheel


def _spec(**changes: object) -> StackSpec:
    values: dict[str, object] = {
        "schema": 1,
        "name": "example",
        "base": {"bootstrap": "debian", "suite": "bookworm"},
        "python": "3.11",
        "packages": ("numpy",),
    }
    return StackSpec.model_validate(values | changes)


def _current_lock(spec: StackSpec, spec_dir: Path) -> Lock:
    platforms = {"linux/amd64": platform_lock(base=bootstrap_base(deb("apt")))}
    return lock(spec_sha256=lock_inputs_sha256(spec, spec_dir), platforms=platforms)


def test_a_lock_reads_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    assert write_lock(path, lock())
    assert read_lock(path) == lock()


def test_bytes_do_not_depend_on_the_order_in_which_things_were_found() -> None:
    one = platform_lock(
        base=bootstrap_base(deb("a"), deb("b")), debs=(deb("x"), deb("y")), wheels=(wheel("p"), wheel("q"))
    )
    two = platform_lock(
        base=bootstrap_base(deb("b"), deb("a")), debs=(deb("y"), deb("x")), wheels=(wheel("q"), wheel("p"))
    )
    assert lock_bytes(lock(platforms={"linux/amd64": one})) == lock_bytes(
        lock(platforms={"linux/amd64": two})
    )


def test_order_that_matters_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    base = json.loads(path.read_text())["platforms"]["linux/amd64"]["base"]
    assert [entry[-1] for entry in base["diff-ids"]] == ["1", "0"]
    assert base["config"]["config"]["Env"] == ["B=1", "A=2"]
    assert list(base["config"]) == ["architecture", "config", "os"]


def test_writing_the_same_lock_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    before = path.stat()
    assert not write_lock(path, lock())
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


def test_a_failed_write_keeps_the_old_lock_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LockError, match="No space left on device") as caught:
        write_lock(path, lock(stack="other"))
    assert caught.value.code == "lock-unwritable"
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["example.lock"]


def test_file_is_readable_by_others_and_ends_with_a_newline(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.read_bytes().endswith(b"}\n")


def test_lock_lies_beside_its_spec() -> None:
    assert lock_path(Path("stacks/torch-cpu.yaml")) == Path("stacks/torch-cpu.lock")


def _error(path: Path) -> LockError:
    with pytest.raises(LockError) as caught:
        read_lock(path)
    assert caught.value.exit_code is ExitCode.SPEC_OR_LOCK
    return caught.value


def test_a_missing_lock_says_how_to_get_one(tmp_path: Path) -> None:
    error = _error(tmp_path / "torch-cpu.lock")
    assert error.code == "lock-missing"
    assert error.do == "Run `stackbuild lock torch-cpu`."


def test_merge_conflict_has_its_own_sentence(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    lines = path.read_text().splitlines()
    lines[3:4] = ["<<<<<<< HEAD", lines[3], "=======", lines[3], ">>>>>>> theirs"]
    path.write_text("\n".join(lines))
    error = _error(path)
    assert error.code == "lock-merge-conflict"
    assert "line 4" in error.what
    assert "stackbuild lock example" in error.do


def test_half_a_lock_says_where_it_breaks(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    path.write_bytes(path.read_bytes()[:200])
    error = _error(path)
    assert error.code == "lock-invalid"
    assert "at line" in error.what


def test_a_key_that_a_merge_left_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    path.write_text(path.read_text().replace('"stack": "example",', '"stack": "example",\n  "stack": "b",'))
    error = _error(path)
    assert error.code == "lock-invalid"
    assert "'stack' appears twice" in error.what


def test_foreign_json_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    path.write_text('{"packages": []}')
    error = _error(path)
    assert "not a lock of stackbuild" in error.what
    assert "`from:`" in error.do


def test_newer_schema_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 7'))
    error = _error(path)
    assert error.code == "lock-schema-unknown"
    assert "schema 7" in error.what


def test_hand_edited_lock_names_the_field(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    path.write_text(path.read_text().replace('"sha256": "' + "d" * 64, '"sha256": "' + "d" * 63))
    error = _error(path)
    assert error.code == "lock-invalid"
    assert f"git checkout -- {error.where}" in error.do
    assert "platforms.linux/amd64.debs.0.sha256" in error.detail


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x80"])
def test_bytes_that_are_no_text(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "example.lock"
    path.write_bytes(content)
    assert _error(path).code == "lock-unreadable"


def test_a_folder_in_the_locks_place(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    path.mkdir()
    assert _error(path).code == "lock-unreadable"


def test_a_lock_is_current_until_a_deciding_part_of_the_spec_changes(tmp_path: Path) -> None:
    current = _current_lock(_spec(), tmp_path)
    assert staleness(current, _spec(), tmp_path) == ""
    assert staleness(current, _spec(summary="Another summary"), tmp_path) == ""
    assert "has changed since" in staleness(current, _spec(packages=("numpy", "scipy")), tmp_path)


def test_a_new_platform_makes_the_lock_stale(tmp_path: Path) -> None:
    spec = _spec(platforms=("linux/amd64", "linux/arm64"))
    assert "linux/arm64" in staleness(_current_lock(spec, tmp_path), spec, tmp_path)


def test_another_stacks_lock_is_stale(tmp_path: Path) -> None:
    current = _current_lock(_spec(), tmp_path)
    assert "'example'" in staleness(current, _spec(name="renamed"), tmp_path)


@pytest.mark.parametrize(
    ("base", "asked", "why"),
    [
        (image_base(), {"bootstrap": "debian", "suite": "bookworm"}, "nvidia/cuda:13.0.3-base-ubuntu24.04, and"),
        (bootstrap_base(), {"bootstrap": "debian", "suite": "trixie"}, "debian bookworm, and the spec's is debian trixie"),
        (bootstrap_base(), {"image": "nvidia/cuda", "tag": "1"}, "debian bookworm, and the spec's is nvidia/cuda:1"),
        (image_base(), {"image": "nvidia/cuda", "tag": "1"}, "and the spec's is nvidia/cuda:1"),
        (image_base(), {"image": "other/cuda", "tag": image_base().tag}, "and the spec's is other/cuda:13"),
        (
            image_base(),
            {"image": "nvidia/cuda", "tag": image_base().tag, "digest": digest("9")},
            f"{digest('a')}, and the spec's is {digest('9')}",
        ),
        (image_base(), {"image": "docker.io/nvidia/cuda", "tag": image_base().tag, "digest": digest("a")}, ""),
    ],
)  # fmt: skip
def test_a_lock_of_another_base_than_the_specs_is_stale(
    base: BaseLock, asked: dict[str, str], why: str, tmp_path: Path
) -> None:
    spec = _spec(base=asked)
    current = lock(
        spec_sha256=lock_inputs_sha256(spec, tmp_path), platforms={"linux/amd64": platform_lock(base=base)}
    )
    told = staleness(current, spec, tmp_path)
    assert why in told
    assert bool(told) is bool(why)


def test_a_pipe_in_the_place_of_a_lock_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.lock")
    with pytest.raises(LockError, match="it is no file") as caught:
        read_lock(tmp_path / "a.lock")
    assert caught.value.code == "lock-unreadable"


def test_a_wheel_that_is_no_plain_file_name_is_an_invalid_lock(tmp_path: Path) -> None:
    path = tmp_path / "example.lock"
    write_lock(path, lock())
    (file, *_) = (found.file for found in lock().platforms["linux/amd64"].wheels)
    path.write_text(path.read_text().replace(f'"{file}"', '"../../x-1-py3-none-any.whl"'))
    assert _error(path).code == "lock-invalid"
