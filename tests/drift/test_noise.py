"""The table of known noise."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from stackbuild.drift.noise import noise_of, noise_table
from stackbuild.drift.normal_forms import FORMS, form_of
from stackbuild.layers.machine_unique import MACHINE_UNIQUE

CODE = "x = 1\n\ndef f(a):\n    return a + x\n"


def compiled(folder: Path, source: str, *, moment: int = 1_700_000_000, checked: bool = False) -> bytes:
    """Byte-code of a source, as Python itself writes it."""
    import os
    import py_compile

    path = folder / "m.py"
    path.write_text(source)
    os.utime(path, (moment, moment))
    mode = py_compile.PycInvalidationMode
    target = py_compile.compile(
        str(path),
        str(folder / "m.pyc"),
        dfile="/m.py",
        invalidation_mode=mode.CHECKED_HASH if checked else mode.TIMESTAMP,
    )
    return Path(str(target)).read_bytes()


@pytest.mark.parametrize(
    ("path", "change", "what", "same", "code"),
    [
        ("usr/lib/python3/__pycache__/a.cpython-311.pyc", "changed", ("content",), "code", "byte-code-stamp"),
        ("usr/lib/python3/__pycache__/a.cpython-311.pyc", "changed", ("content",), "", ""),
        ("usr/lib/python3/__pycache__/a.cpython-311.pyc", "changed", ("content", "mode"), "code", ""),
        ("usr/lib/python3/__pycache__/a.cpython-311.pyc", "added", (), "", ""),
        ("opt/x/a-1.dist-info/RECORD", "changed", ("content",), "record", "record-of-byte-code"),
        ("opt/x/a-1.dist-info/RECORD", "changed", ("content",), "", ""),
        ("etc/shadow", "changed", ("content",), "accounts", "password-day"),
        ("etc/shadow", "changed", ("content",), "", ""),
        ("etc/ld.so.cache", "changed", ("content",), "", "loader-cache"),
        ("etc/ld.so.conf", "changed", ("content",), "", ""),
        ("var/log/apt/history.log", "added", (), "", "log"),
        ("var/log", "added", (), "", ""),
        ("var/lib/apt/lists/x_Packages", "removed", (), "", "package-manager-cache"),
        ("var/lib/dpkg/status", "changed", ("content",), "", ""),
        ("var/lib/dpkg/status-old", "added", (), "", "back-up"),
        ("var/lib/rpm/rpmdb.sqlite", "changed", ("content",), "", "rpm-database"),
        ("var/lib/rpm/rpmdb.sqlite", "removed", (), "", ""),
        ("etc/machine-id", "changed", ("content",), "", "machine-identity"),
        ("tmp/x", "added", (), "", "running-system"),
        ("srv/tmp/x", "added", (), "", ""),
    ],
)
def test_what_is_noise(path: str, change: str, what: tuple[str, ...], same: str, code: str) -> None:
    assert noise_of(path, change, what, same) == code


def test_each_row_has_its_own_code_and_a_reason() -> None:
    codes = [row.code for row in noise_table()]
    assert len(set(codes)) == len(codes)
    assert all(row.why for row in noise_table())
    assert {row.same for row in noise_table()} - {""} == {form.name for form in FORMS}


@pytest.mark.parametrize(
    "path",
    [
        "var/log/dpkg.log",
        "run/x",
        "tmp/y",
        "etc/hosts",
        ".dockerenv",
        "var/cache/apt/pkgcache.bin",
        "var/cache/ldconfig/aux-cache",
        "var/lib/apt/lists/lock",
        "var/lib/dpkg/lock-frontend",
        "var/lib/dpkg/triggers/Lock",
        "var/lib/dpkg/status-old",
        "etc/.pwd.lock",
        "etc/passwd-",
        "etc/.updated",
        "etc/machine-id",
        "var/lib/systemd/random-seed",
    ],
)
def test_what_an_installation_drops_is_noise_in_others_images(path: str) -> None:
    assert any(rule.action in ("drop", "empty") and rule.pattern.fullmatch(path) for rule in MACHINE_UNIQUE)
    assert noise_of(path, "changed", ("content",), "")


def test_byte_code_is_the_same_whatever_its_stamp(tmp_path: Path) -> None:
    form = form_of("a/__pycache__/m.cpython-311.pyc")
    assert form is not None
    first = compiled(tmp_path, CODE)
    later = compiled(tmp_path, CODE, moment=1_800_000_000)
    checked = compiled(tmp_path, CODE, checked=True)
    other = compiled(tmp_path, CODE.replace("x = 1", "x = 2"))
    assert first != later != checked
    assert form.write(first) == form.write(later) == form.write(checked)
    assert form.write(first) != form.write(other)
    assert first[:4] == importlib.util.MAGIC_NUMBER
    assert form.write(b"\1\2\r\n" + first[4:]) not in (
        form.write(first),
        None,
    )  # another Python's byte-code is another


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 40])
def test_what_is_no_byte_code_has_no_normal_form(data: bytes) -> None:
    form = form_of("m.pyc")
    assert form is not None
    assert form.write(data) is None


def test_the_day_of_a_password_does_not_count_and_the_password_does() -> None:
    form = form_of("etc/shadow")
    assert form is not None
    one, later = b"app:!:19700:0:99999:7:::\n", b"app:!:20500:0:99999:7:::\n"
    assert form.write(one) == form.write(later)
    assert form.write(one) != form.write(b"app::19700:0:99999:7:::\n")


def test_the_byte_code_in_a_record_does_not_count_and_all_else_does() -> None:
    form = form_of("opt/a-1.dist-info/RECORD")
    assert form is not None
    bare = form.write(b"a.py,sha256=abc,3\nb.py,sha256=def,3\n")
    assert form.write(b"b.py,sha256=def,3\n__pycache__/a.cpython-311.pyc,,\na.py,sha256=abc,3\n") == bare
    assert form.write(b"a.py,sha256=xyz,3\nb.py,sha256=def,3\n") != bare
    assert form.write(b"\xff") is None
