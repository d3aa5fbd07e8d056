from __future__ import annotations

import base64
import csv
import hashlib
import json
import posixpath
from pathlib import Path

import pytest

from stackbuild.errors import BuildError
from stackbuild.layers.venv import VENV
from stackbuild.layers.wheels import check_tags, wheels_makers
from stackbuild.lock.model import BootstrapBaseLock, OsLock, PlatformLock
from tests.layers.tars import members
from tests.layers.wheel_files import PYTHON, SITE, contents, locked, make, maker, venv_tree
from tests.support.wheels import make_wheel


def rows_of(record: bytes) -> dict[str, tuple[str, str]]:
    return {path: (digest, size) for path, digest, size in csv.reader(record.decode().splitlines())}


def test_a_wheel_is_installed_as_an_installer_would(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        "Demo",
        "1.0",
        files={
            "demo/__init__.py": "x = 1\n",
            "demo/tool": "binary",
            "Demo-1.0.data/scripts/run-demo": "#!python\nprint(1)\n",
            "Demo-1.0.data/scripts/run.sh": "#!/bin/sh\n",
            "Demo-1.0.data/data/share/demo/readme": "hello",
            "Demo-1.0.data/headers/demo.h": "int demo;",
            "Demo-1.0.data/platlib/demo/_native.so": "elf",
        },
        executables=["demo/tool"],
        entry_points={"demo": "demo:main"},
    )
    tar, _ = make(locked(wheel))
    found = members(tar)
    files = {name: data for name, (member, data) in found.items() if member.isreg()}
    assert files[f"{SITE}/demo/__init__.py"] == b"x = 1\n"
    assert files[f"{VENV}/bin/run-demo"] == b"#!/opt/venv/bin/python\nprint(1)\n"
    assert files[f"{VENV}/bin/run.sh"] == b"#!/bin/sh\n"
    assert files[f"{VENV}/share/demo/readme"] == b"hello"
    assert files[f"{VENV}/include/site/python3.11/Demo/demo.h"] == b"int demo;"
    assert files[f"{SITE}/demo/_native.so"] == b"elf"
    script = files[f"{VENV}/bin/demo"].decode()
    assert script.startswith("#!/opt/venv/bin/python\n")
    assert "from demo import main" in script
    modes = {name: member.mode for name, (member, _) in found.items()}
    assert modes[f"{SITE}/demo/tool"] == 0o755
    assert modes[f"{SITE}/demo/__init__.py"] == 0o644
    assert modes[f"{VENV}/bin/demo"] == modes[f"{VENV}/bin/run-demo"] == 0o755
    assert list(found) == sorted(found, key=lambda name: name.split("/"))
    assert files[f"{SITE}/Demo-1.0.dist-info/INSTALLER"] == b"stackbuild\n"


def test_record_lists_every_file_with_its_hash_and_nothing_else(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={"demo/a.py": "a", "demo-1.0.data/scripts/s": "#!python\n"},
        entry_points={"e": "demo.a:main"},
    )
    files = contents(locked(wheel, requested=True))
    record_path = f"{SITE}/demo-1.0.dist-info/RECORD"
    rows = rows_of(files[record_path])
    listed = {posixpath.normpath(f"{SITE}/{path}") for path in rows}
    assert listed == set(files)
    for path, (declared, size) in rows.items():
        full = posixpath.normpath(f"{SITE}/{path}")
        if full == record_path:
            assert (declared, size) == ("", "")
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[full]).digest()).decode().rstrip("=")
        assert (declared, size) == (f"sha256={digest}", str(len(files[full])))
    assert f"{SITE}/demo-1.0.dist-info/REQUESTED" in files


def test_a_wheel_named_by_url_says_so_without_credentials(tmp_path: Path) -> None:
    wheel = locked(make_wheel(tmp_path, "demo", "1.0"), url="https://me:secret@example.org/demo.whl?x=1")
    value = json.loads(contents(wheel)[f"{SITE}/demo-1.0.dist-info/direct_url.json"])
    assert value["url"] == "https://example.org/demo.whl?x=1"
    assert value["archive_info"]["hashes"] == {"sha256": wheel.wheel.sha256}
    assert f"{SITE}/demo-1.0.dist-info/REQUESTED" not in contents(wheel)


def test_what_a_wheel_says_of_its_own_installation_is_replaced(tmp_path: Path) -> None:
    info = "demo-1.0.dist-info"
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={"demo.py": "", f"{info}/INSTALLER": "pip\n", f"{info}/direct_url.json": "{}"},
    )
    files = contents(locked(wheel))
    assert files[f"{SITE}/{info}/INSTALLER"] == b"stackbuild\n"
    assert f"{SITE}/{info}/direct_url.json" not in files


def test_byte_code_in_a_wheel_is_left_out(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path, "demo", "1.0", files={"demo.py": "", "__pycache__/demo.cpython-311.pyc": "old"}
    )
    files = contents(locked(wheel))
    assert not [path for path in files if "__pycache__" in path]
    assert b"__pycache__" not in files[f"{SITE}/demo-1.0.dist-info/RECORD"]


def test_the_same_wheels_give_the_same_bytes_whatever_their_files_are_called(tmp_path: Path) -> None:
    wheel = locked(make_wheel(tmp_path, "demo", "1.0"))
    other = tmp_path / "blob"
    other.write_bytes(wheel.path.read_bytes())
    moved = locked(wheel.path)
    object.__setattr__(moved, "path", other)
    assert make(wheel)[0] == make(moved)[0]
    assert maker(wheel).key() == maker(moved).key()


def test_a_key_follows_what_decides_the_bytes(tmp_path: Path) -> None:
    wheel = locked(make_wheel(tmp_path, "demo", "1.0"))
    key = maker(wheel).key()
    assert maker(locked(wheel.path, requested=True)).key() != key
    assert maker(locked(wheel.path, sha256="0" * 64)).key() != key
    assert maker(wheel, tree=venv_tree().with_layer({"opt": None})).key() != key


def test_two_wheels_may_share_a_file_of_the_same_bytes(tmp_path: Path) -> None:
    one = make_wheel(tmp_path, "one", "1.0", files={"shared/__init__.py": "", "shared/one.py": "1"})
    two = make_wheel(tmp_path, "two", "1.0", files={"shared/__init__.py": "", "shared/two.py": "2"})
    files = contents(locked(one), locked(two))
    assert {f"{SITE}/shared/one.py", f"{SITE}/shared/two.py"} <= set(files)
    for name in ("one", "two"):
        assert b"shared/__init__.py" in files[f"{SITE}/{name}-1.0.dist-info/RECORD"]


def test_two_wheels_with_one_path_and_other_bytes_are_both_named(tmp_path: Path) -> None:
    one = make_wheel(tmp_path, "onnxruntime", "1.0", files={"ort/lib.so": "cpu"})
    two = make_wheel(tmp_path, "onnxruntime-gpu", "1.1", files={"ort/lib.so": "gpu"})
    expected = r"onnxruntime 1\.0 and onnxruntime-gpu 1\.1 both write /opt/venv/.*/ort/lib\.so"
    with pytest.raises(BuildError, match=expected) as caught:
        make(locked(one), locked(two))
    assert caught.value.code == "file-conflict"
    _, below = make(locked(one))
    with pytest.raises(BuildError, match=expected):  # also when they are in different layers
        make(locked(two), tree=venv_tree().with_layer(below))
    _, above = make(locked(two))
    with pytest.raises(BuildError, match=expected):  # and when the second layer was made elsewhere
        venv_tree().with_layer(below).with_layer(above)


@pytest.mark.parametrize("target", ["bin/python", "lib64", "pyvenv.cfg"])
def test_a_wheel_may_not_replace_the_virtual_environment(tmp_path: Path, target: str) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", files={f"demo-1.0.data/data/{target}": "evil"})
    with pytest.raises(BuildError) as caught:
        make(locked(wheel))
    assert f"/opt/venv/{target}" in str(caught.value)
    assert wheel.name in str(caught.value) or "demo 1.0" in str(caught.value)


def test_lib64_of_a_wheels_data_lands_in_lib(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", files={"demo-1.0.data/data/lib64/libdemo.so": "elf"})
    assert contents(locked(wheel))[f"{VENV}/lib/libdemo.so"] == b"elf"


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("py3-none-any", True),
        ("cp311-cp311-manylinux_2_28_x86_64", True),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp38-abi3-manylinux2014_x86_64", True),
        ("py3-none-manylinux1_x86_64", True),
        ("cp311-cp311-linux_x86_64", True),
        ("cp311-cp311-manylinux_2_39_x86_64", False),
        ("cp312-cp312-manylinux_2_28_x86_64", False),
        ("cp311-cp311-manylinux_2_28_aarch64", False),
        ("cp311-cp311-win_amd64", False),
        ("cp311-cp311-musllinux_1_2_x86_64", False),
    ],
)
def test_only_wheels_for_the_images_python_and_glibc_are_taken(tag: str, fits: bool) -> None:
    file = f"demo-1.0-{tag}.whl"
    if fits:
        check_tags(file, PYTHON, "linux/amd64", "2.36")
        return
    with pytest.raises(BuildError) as caught:
        check_tags(file, PYTHON, "linux/amd64", "2.36")
    assert caught.value.code == "wheel-wrong-platform"
    assert file in str(caught.value)


def test_arm_wheels_fit_an_arm_image() -> None:
    check_tags("demo-1.0-cp311-cp311-manylinux_2_28_aarch64.whl", PYTHON, "linux/arm64", "2.36")


def test_groups_come_in_layer_order_and_empty_ones_make_no_layer(tmp_path: Path) -> None:
    wheels = [
        locked(make_wheel(tmp_path, name, "1.0"), group=group).wheel
        for name, group in (("b", "other"), ("a", "other"), ("torch", "torch"))
    ]
    lock = PlatformLock(
        base=BootstrapBaseLock(
            distribution="debian", suite="bookworm", debs=(), diff_id="sha256:" + "0" * 64, created="x"
        ),
        os=OsLock(id="debian", version_id="12", glibc="2.36"),
        python=PYTHON,
        wheels=tuple(wheels),
        created="x",
    )
    paths = {wheel.sha256: tmp_path / wheel.file for wheel in wheels}
    makers = wheels_makers(lock, "linux/amd64", paths, venv_tree())
    assert [each.group for each in makers] == ["torch", "other"]
    assert [each.wheel.name for each in makers[1].wheels] == ["a", "b"]
    assert makers[1].created_by == "stackbuild: other wheels: a 1.0, b 1.0"
    assert wheels_makers(lock.model_copy(update={"python": None}), "linux/amd64", paths, venv_tree()) == ()
