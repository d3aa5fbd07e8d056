from __future__ import annotations

import stat
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackbuild.errors import BuildError, StackbuildError
from stackbuild.layers.wheels import WheelFile
from tests.layers.wheel_files import locked, make, rewritten
from tests.support.wheels import HostileKind, make_hostile_wheel, make_wheel

Entries = list[tuple[zipfile.ZipInfo, bytes]]


def refusal(wheel: Path, **changes: object) -> BuildError:
    with pytest.raises(BuildError) as caught:
        make(locked(wheel, **changes))
    assert wheel.name in str(caught.value)
    assert caught.value.do
    return caught.value


def message(wheel: WheelFile) -> str:
    """The refusal, or the name of a wheel that was made."""
    try:
        make(wheel)
    except StackbuildError as error:
        return str(error)
    return wheel.wheel.file


def drop(entries: Entries, suffix: str) -> None:
    entries[:] = [entry for entry in entries if not entry[0].filename.endswith(suffix)]


@pytest.mark.parametrize(
    ("kind", "code", "names"),
    [
        ("parent-path", "path-escape", "../../../../../etc/profile.d/evil.sh"),
        ("absolute-path", "path-escape", "/etc/profile.d/evil.sh"),
        ("symlink", "wheel-refused", "demo/link is a symbolic link"),
        ("whiteout", "whiteout-refused", ".wh.module.py"),
        ("data-escape", "path-escape", "demo-1.0.data/scripts/../../../etc/evil"),
        ("bad-record", "wheel-record-mismatch", "demo/__init__.py"),
    ],
)
def test_a_hostile_wheel_is_refused_by_name_and_entry(
    tmp_path: Path, kind: HostileKind, code: str, names: str
) -> None:
    error = refusal(make_hostile_wheel(tmp_path, "demo", "1.0", kind))
    assert error.code == code
    assert names in str(error)


def test_an_entry_twice_is_refused(tmp_path: Path) -> None:
    def edit(entries: Entries) -> None:
        entries.append((zipfile.ZipInfo("demo/__init__.py"), b"evil"))

    with pytest.warns(UserWarning, match="Duplicate name"):
        wheel = rewritten(make_wheel(tmp_path, "demo", "1.0"), edit)
    assert "two entries named demo/__init__.py" in str(refusal(wheel))


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR])
def test_entries_that_are_no_files_are_refused(tmp_path: Path, kind: int) -> None:
    def edit(entries: Entries) -> None:
        info = zipfile.ZipInfo("demo/pipe")
        info.external_attr = (kind | 0o644) << 16
        entries.append((info, b""))

    assert "demo/pipe" in str(refusal(rewritten(make_wheel(tmp_path, "demo", "1.0"), edit)))


@pytest.mark.parametrize("name", ["WHEEL", "METADATA", "RECORD"])
def test_a_wheel_without_its_metadata_is_refused(tmp_path: Path, name: str) -> None:
    wheel = rewritten(make_wheel(tmp_path, "demo", "1.0"), lambda entries: drop(entries, f"/{name}"))
    assert f"has no demo-1.0.dist-info/{name}" in str(refusal(wheel))


def test_a_file_that_record_does_not_list_is_refused(tmp_path: Path) -> None:
    def edit(entries: Entries) -> None:
        entries.append((zipfile.ZipInfo("demo/extra.py"), b""))

    error = refusal(rewritten(make_wheel(tmp_path, "demo", "1.0"), edit, keep_record=True))
    assert error.code == "wheel-record-mismatch"
    assert "demo/extra.py is not in the wheel's RECORD" in str(error)


def test_a_file_that_record_lists_but_is_not_there_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", files={"demo/a.py": "", "demo/b.py": ""})
    error = refusal(rewritten(wheel, lambda entries: drop(entries, "b.py"), keep_record=True))
    assert "lists demo/b.py" in str(error)


def test_an_entry_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", files={"demo/bomb": b"\0" * 100_000})
    declare_size(wheel, "demo/bomb", 10)
    assert "demo/bomb" in str(refusal(wheel))


def test_an_entry_that_unpacks_to_less_than_it_says_is_refused(tmp_path: Path) -> None:
    def edit(entries: Entries) -> None:
        for number, (info, data) in enumerate(entries):
            if info.filename.endswith("RECORD"):
                entries[number] = (info, data.replace(b",1000\n", b",2000\n"))

    wheel = make_wheel(tmp_path, "demo", "1.0", files={"demo/short": b"\0" * 1000})
    rewritten(wheel, edit, keep_record=True)
    declare_size(wheel, "demo/short", 2000)
    assert "demo/short" in str(refusal(wheel))


def test_a_wheel_that_would_unpack_like_a_bomb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", files={"demo/bomb": b"\0" * 1000})
    declare_size(wheel, "demo/bomb", 3 << 30)
    assert refusal(wheel).code == "wheel-bomb"


def test_huge_metadata_is_not_read(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0")
    declare_size(wheel, "demo-1.0.dist-info/WHEEL", 900 << 20)
    assert "WHEEL says that it is 943718400 bytes long" in str(refusal(wheel))


def test_an_encrypted_entry_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0")
    patch_directory(wheel, "demo/__init__.py", 8, struct.pack("<H", 1))
    assert "demo/__init__.py is encrypted" in str(refusal(wheel))


def test_an_entry_that_begins_before_the_file_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0")
    data = bytearray(wheel.read_bytes())
    end = data.index(b"PK\x05\x06")  # the directory's declared place, from which offsets are corrected
    data[end + 16 : end + 20] = struct.pack("<I", len(data))
    wheel.write_bytes(data)
    assert "begins before the file does" in str(refusal(wheel))


def test_an_unusual_compression_is_refused(tmp_path: Path) -> None:
    def edit(entries: Entries) -> None:
        for info, _ in entries:
            if info.filename == "demo/__init__.py":
                info.compress_type = zipfile.ZIP_BZIP2

    wheel = rewritten(make_wheel(tmp_path, "demo", "1.0"), edit)
    assert "demo/__init__.py is compressed with method 12" in str(refusal(wheel))


def test_weak_hashes_in_record_are_refused_and_strong_ones_checked(tmp_path: Path) -> None:
    def with_hash(declared: bytes) -> Any:
        def edit(entries: Entries) -> None:
            for number, (info, data) in enumerate(entries):
                if info.filename.endswith("RECORD"):
                    rows = data.split(b"\n")
                    rows[0] = b"demo/__init__.py," + declared + b",22"
                    entries[number] = (info, b"\n".join(rows))

        return edit

    for declared in (b"md5=AAAA", b"sha512=AAAA"):
        wheel = rewritten(make_wheel(tmp_path, "demo", "1.0"), with_hash(declared), keep_record=True)
        assert refusal(wheel).code == "wheel-record-mismatch"


def test_an_entry_point_that_is_a_path_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", entry_points={"../../etc/evil": "demo:main"})
    assert "../../etc/evil" in str(refusal(wheel))


def test_a_damaged_entry_point_is_an_error(tmp_path: Path) -> None:
    refusal(make_wheel(tmp_path, "demo", "1.0", entry_points={"demo": "not an object"}))


def test_a_wheel_of_another_name_or_version_than_locked_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0")
    assert "the lock says that it is other 1.0" in str(refusal(wheel, name="other"))
    assert "the lock says that it is demo 2.0" in str(refusal(wheel, version="2.0"))


def test_a_wheel_with_another_distributions_metadata_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0").rename(tmp_path / "other-1.0-py3-none-any.whl")
    assert "demo-1.0.dist-info belongs to another distribution" in str(refusal(wheel))


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    wheel.write_bytes(b"<html>not found</html>")
    assert refusal(wheel).code == "wheel-refused"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)
@given(
    edits=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.none() | st.integers(0, 3000),
)
def test_a_mutated_wheel_raises_nothing_but_our_errors(
    tmp_path: Path, edits: list[tuple[int, int]], cut: int | None
) -> None:
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={"demo/__init__.py": "a" * 300, "demo-1.0.data/scripts/x": "#!python\n"},
        entry_points={"demo": "demo:main"},
    )
    data = bytearray(wheel.read_bytes())
    for position, value in edits:
        data[position % len(data)] = value
    mutated = tmp_path / "mutated"
    mutated.write_bytes(bytes(data[:cut]))
    file = locked(wheel)
    object.__setattr__(file, "path", mutated)
    assert wheel.name in message(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=100)
@given(
    name=st.sampled_from(["WHEEL", "RECORD", "entry_points.txt"]),
    text=st.text(max_size=40)
    | st.sampled_from(["[console_scripts]\na=b", "Wheel-Version: 2.0", "a,b", "a,b,c"]),
)
def test_metadata_of_any_text_raises_nothing_but_our_errors(tmp_path: Path, name: str, text: str) -> None:
    def edit(entries: Entries) -> None:
        for number, (info, _) in enumerate(entries):
            if info.filename.endswith(f"/{name}"):
                entries[number] = (info, text.encode())

    wheel = make_wheel(tmp_path, "demo", "1.0", entry_points={"demo": "demo:main"})
    rewritten(wheel, edit, keep_record=name == "RECORD")
    assert wheel.name in message(locked(wheel))


def declare_size(wheel: Path, name: str, size: int) -> None:
    """Write another unpacked size into the archive's directory."""
    patch_directory(wheel, name, 24, struct.pack("<I", size))


def patch_directory(wheel: Path, name: str, offset: int, value: bytes) -> None:
    """Overwrite bytes of an entry in the central directory (APPNOTE 4.3.12)."""
    data = bytearray(wheel.read_bytes())
    start = data.index(b"PK\x01\x02")
    while data[start + 46 : start + 46 + len(name)] != name.encode():
        start = data.index(b"PK\x01\x02", start + 1)
    data[start + offset : start + offset + len(value)] = value
    wheel.write_bytes(data)
