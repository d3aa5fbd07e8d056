"""rpm's headers: files, dependencies, modules, and headers made to break the reader."""

from __future__ import annotations

import io
import random
import sqlite3
import struct
import time
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from stackbuild.errors import ScanError
from stackbuild.sbom.system_graph import SystemGraph
from stackbuild.scan.readers import rpm as rpm_reader
from stackbuild.scan.readers import rpm_sqlite
from stackbuild.scan.readers.rpm import RpmReader
from stackbuild.scan.readers.rpm_header import RpmPackage, rpm_package
from stackbuild.scan.scan import Scan, scan_of
from tests.support.layer_tars import Content, image_files
from tests.support.rpm_databases import rpm, rpm_database, rpm_header

LINES = Path(__file__).parent / "fixtures/rpm/lines"
# Of one set of packages; see lines.spec.
DATABASES = {
    "rpmdb.sqlite": "var/lib/rpm/rpmdb.sqlite",
    "Packages": "var/lib/rpm/Packages",
    "Packages.db": "usr/lib/sysimage/rpm/Packages.db",
}


def scanned(*layers: dict[str, Content]) -> Scan:
    return scan_of(image_files(*layers))


def headers() -> list[bytes]:
    """The headers of the real packages."""
    with (LINES / "rpmdb.sqlite").open("rb") as stream:
        return [*rpm_reader._headers("var/lib/rpm/rpmdb.sqlite", stream)]


@pytest.mark.parametrize("name", DATABASES)
def test_files_dependencies_and_modules_are_read_from_every_kind_of_database(name: str):
    scan = scanned({DATABASES[name]: (LINES / name).read_bytes()})
    packages = {item.name: item for item in scan.packages}
    assert {item.name: item.version for item in scan.packages} == {
        "lines": "1.0-1",
        "lines-doc": "1.4-1",
        "lines-old-shell": "4.9-1",
        "lines-plain": "1-1",
        "lines-shell": "5.1~rc1-1",
        "lines-tools": "2:1.4-1",
    }
    # As rpm -ql, -q --requires and -q --provides print them, without what rpm itself provides.
    assert packages["lines"].files == {
        "usr/lib64": ["liblines.so.1", "liblines.so.1.0"],
        "usr/share/doc": ["lines"],
    }
    assert packages["lines-plain"].files == {}
    assert packages["lines-tools"].depends.split("\n") == [
        "(absent or (shared with shared(marked)))",
        "(lines-doc if lines)",
        "(nothing if absent else lines-plain)",
        "/usr/bin/shell",
        "liblines.so.1()(64bit)",
        "liblines.so.1(LINES_1.0)(64bit)",
        "rtld(GNU_HASH)",
        "shell >= 5",
    ]
    assert packages["lines-tools"].provides.split("\n") == [
        "lines-tools = 2:1.4-1",
        "lines-tools(x86-64) = 2:1.4-1",
    ]
    assert packages["lines-doc"].depends == "lines-tools = 2:1.4-1"
    assert {(item.module, item.source) for item in scan.packages} == {
        ("lines:1:20260101:abcdef12", "lines-1.0-1.src.rpm")
    }


def test_bytes_are_told_by_rpm_and_links_of_the_merged_usr_are_followed():
    database = rpm_database(
        rpm("a", "1", files=["/bin/sh", "/lib64/liba.so.1", "/usr/share/shared"]),
        rpm("b", "2", files=["/opt/vendor/tool", "/usr/share/shared", "/opt/gone"]),
    )
    scan = scanned(
        {
            "bin": "-> usr/bin",
            "lib64": "-> usr/lib64",
            "usr/bin": None,
            "usr/lib64": None,
            "usr/bin/sh": b"x" * 10,
            "usr/lib64/liba.so.1": b"x" * 20,
            "usr/lib64/loose": b"x" * 40,
            "usr/share/shared": b"x" * 80,
            "opt/vendor/tool": b"x" * 160,
            "var/lib/rpm/rpmdb.sqlite": database,
        }
    )
    # The loose file, the one that two list, and the database itself are the distribution's.
    assert scan.owners == {"the distribution": 40 + 80 + len(database), "b 2-1": 160, "a 1-1": 30}
    assert scan.rpm_files.owner("usr/share/shared") is None
    assert [scan.packages[number].name for number in scan.rpm_files.packages_of("bin/sh")] == ["a"]


def test_what_a_package_names_and_does_not_bring_is_not_its_own_content():
    scan = scanned(
        {
            "usr/bin/ld": "-> ld.bfd",
            "usr/bin/ld.bfd": b"x" * 5,
            "var/cache/a": b"x" * 10,
            "var/lib/rpm/rpmdb.sqlite": rpm_database(
                rpm("a", files=["/usr/bin/ld.bfd"], ghosts=["/usr/bin/ld", "/var/cache/a"])
            ),
        }
    )
    assert scan.rpm_files.owner("usr/bin/ld.bfd") == 0
    assert scan.rpm_files.owner("var/cache/a") is None
    assert scan.owners["a 1-1"] == 5
    assert scan.rpm_files.packages_of("usr/bin/ld") == [0]


def test_a_file_that_two_architectures_of_one_package_bring_is_that_packages():
    both = [rpm("a", architecture=name, files=["/usr/share/doc/a"]) for name in ("i686", "x86_64")]
    scan = scanned({"var/lib/rpm/rpmdb.sqlite": rpm_database(*both), "usr/share/doc/a": "text"})
    owner = scan.rpm_files.owner("usr/share/doc/a")
    assert owner is not None
    assert scan.packages[owner].name == "a"


def test_a_package_comes_from_the_first_layer_whose_database_has_it():
    path = "var/lib/rpm/rpmdb.sqlite"
    scan = scanned(
        {path: rpm_database(rpm("kept"), rpm("upgraded", "1"), rpm("back"))},
        {path: rpm_database(rpm("kept"), rpm("upgraded", "2"))},
        {"etc/other": "x"},
        {path: rpm_database(rpm("kept"), rpm("upgraded", "2"), rpm("added"), rpm("back"))},
    )
    assert {item.name: item.layer for item in scan.packages} == {
        "added": 3, "back": 3, "kept": 0, "upgraded": 1,
    }  # fmt: skip


def test_paths_of_packages_from_before_rpm_4_are_read():
    found = rpm_package(
        rpm_header({1000: "old", 1001: "1", 1002: "1", 1027: ["/usr/bin/old", "/etc/old.conf"]})
    )
    assert found is not None
    assert found.files == {"usr/bin": ["old"], "etc": ["old.conf"]}


@pytest.mark.parametrize(
    "tags",
    [
        {1117: ["a", "b"], 1118: ["/"], 1116: [0]},
        {1117: ["a"], 1118: ["/"], 1116: [1]},
        {1117: ["a"], 1118: ["/"], 1116: [0xFFFFFFFF]},
        {1117: ["a"], 1116: [0]},
        {1117: ["a"], 1118: ["/"]},
        {1117: 3, 1118: ["/"], 1116: [0]},
        {1117: ["a"], 1118: ["/"], 1116: [0], 1037: [0, 0]},
        {1049: ["a", "b"], 1048: [0], 1050: ["", ""]},
        {1049: ["a"], 1048: [0]},
        {1047: ["a"], 1112: ["0"], 1113: [""]},
    ],
)
def test_of_a_package_with_a_damaged_list_nothing_is_guessed(tags: dict[int, object]):
    header = rpm_header({1000: "a", 1001: "1", 1002: "1", **tags})  # type: ignore[dict-item]
    assert rpm_package(header) == RpmPackage("a", "1-1", files=None)


def test_headers_cut_at_every_length_and_with_every_count_that_lies_are_survived():
    for header in headers():
        whole = rpm_package(header)
        assert whole is not None
        count, size = struct.unpack_from(">II", header)
        for length in range(len(header)):
            # Its own size tells that it is cut; with a size that agrees, lists that break off are not guessed.
            assert rpm_package(header[:length]) is None
            shorter = length - 8 - 16 * count
            if shorter >= 0:
                found = rpm_package(struct.pack(">II", count, shorter) + header[8:length])
                assert found is None or found.files is None or found.rows <= whole.rows
        for entry in range(count):
            for at in (4, 8, 12):
                for value in (0, 1, size - 1, size, 0x7FFFFFFF, 0xFFFFFFFF):
                    place = 8 + 16 * entry + at
                    lying = header[:place] + struct.pack(">I", value) + header[place + 4 :]
                    assert isinstance(rpm_package(lying), RpmPackage | None)


def test_headers_overwritten_at_random_are_survived():
    draw = random.Random(4)
    real = headers()
    for _ in range(3000):
        data = bytearray(draw.choice(real))
        for _ in range(draw.randint(1, 8)):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0xFF, draw.randrange(256)))
        assert isinstance(rpm_package(bytes(data)), RpmPackage | None)


def test_a_hundred_thousand_files_are_read_in_the_time_and_memory_of_their_text():
    paths = [f"/usr/share/folder{number % 300}/file{number}" for number in range(100_000)]
    header = rpm("many", files=paths)
    begun = time.process_time()
    found = rpm_package(header)
    assert time.process_time() - begun < 5, "a fiftieth of it when nothing else runs"
    tracemalloc.start()
    rpm_package(header)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None
    assert found.rows == 100_000
    assert peak < 20 * len(header)


def test_files_in_one_folder_of_a_very_long_name_do_not_multiply_it():
    """A million bytes of header must not become gigabytes of paths."""
    folder = "/" + "d/" * 2000
    header = rpm_header(
        {1000: "a", 1001: "1", 1002: "1", 1117: ["f"] * 100_000, 1118: [folder], 1116: [0] * 100_000}
    )
    tracemalloc.start()
    scan = scanned({"var/lib/rpm/rpmdb.sqlite": rpm_database(header), "a": "b"})
    assert scan.owners
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 << 20


@pytest.mark.parametrize("name", DATABASES)
def test_damaged_databases_are_survived(name: str):
    """Cut, and overwritten where they are not empty; what is left of them has a graph all the same."""
    draw = random.Random(36)
    whole = (LINES / name).read_bytes()
    written = [at for at in range(0, len(whole), 64) if any(whole[at : at + 64])]
    for turn in range(60):
        data = bytearray(whole[: draw.randrange(len(whole))] if turn % 5 == 0 else whole)
        for _ in range(draw.randint(1, 30)):
            at = draw.choice(written) + draw.randrange(64)
            if at < len(data):
                data[at] = draw.choice((0, 1, 8, 0x7F, 0xFF, draw.randrange(256)))
        scan = scanned({DATABASES[name]: bytes(data), "usr/bin/shell": "x"})
        graph = SystemGraph(scan)
        assert all(
            number < len(scan.packages) for each in range(len(scan.packages)) for number in graph.needs(each)
        )
        assert scan.owners


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE VIEW Packages AS WITH RECURSIVE n(hnum) AS (SELECT 1 UNION ALL SELECT hnum + 1 FROM n) "
        "SELECT hnum, x'00' AS blob FROM n WHERE hnum < 0",
        "CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob AS (zeroblob(1000000000)))",
        "CREATE TABLE Packages (hnum INTEGER PRIMARY KEY)",
        "CREATE TABLE other (hnum INTEGER PRIMARY KEY, blob BLOB)",
    ],
)
def test_a_database_whose_schema_is_a_program_is_not_run(tmp_path: Path, schema: str):
    path = tmp_path / "rpmdb.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute(schema)
        database.commit()
    assert RpmReader().read("var/lib/rpm/rpmdb.sqlite", io.BytesIO(path.read_bytes())) is None


def test_a_database_that_takes_too_long_to_read_is_damaged(monkeypatch: pytest.MonkeyPatch):
    data = (LINES / "rpmdb.sqlite").read_bytes()
    monkeypatch.setattr(rpm_sqlite, "_MOST_INSTRUCTIONS", 100)
    monkeypatch.setattr(rpm_sqlite, "_COUNTED", 10)
    assert RpmReader().read("var/lib/rpm/rpmdb.sqlite", io.BytesIO(data)) is None


def test_a_database_whose_messages_are_not_utf_8_is_damaged(tmp_path: Path):
    path = tmp_path / "rpmdb.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob TEXT CHECK (blob <> 'abc'))")
        database.execute("INSERT INTO Packages VALUES (1, 'text')")
        database.commit()
    whole = path.read_bytes()
    for old, new in ((b"text", b"te\xff\xff"), (b"CREATE TABLE Packages", b"CREATE TABXE \xffackages")):
        found = RpmReader().read("var/lib/rpm/rpmdb.sqlite", io.BytesIO(whole.replace(old, new)))
        assert found in (None, [])


def test_a_berkeley_database_whose_values_lie_over_each_other_is_damaged():
    """Two thousand entries of one page that all are the page itself."""
    data = bytearray((LINES / "Packages").read_bytes())
    data[4096:8192] = bytes(4096)
    entries = 2000
    data[4096 + 16 : 4096 + 26] = struct.pack("<IHHxB", 0, entries, 0, 13)
    data[4096 + 26 : 4096 + 26 + 2 * entries] = struct.pack("<HH", 4096, 4095 - 4000) * (entries // 2)
    data[4096 + 95] = 1
    assert RpmReader().read("var/lib/rpm/Packages", io.BytesIO(bytes(data))) is None


def test_a_database_with_more_files_than_any_real_one_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rpm_reader, "MOST_ROWS", 50)
    database = rpm_database(
        *(rpm(f"p{number}", files=[f"/a{number}", f"/b{number}"]) for number in range(30))
    )
    with pytest.raises(ScanError) as caught:
        scanned({"var/lib/rpm/rpmdb.sqlite": database})
    assert caught.value.code == "layer-too-large"


def test_only_the_databases_places_are_read():
    reader = RpmReader()
    assert reader.wants("usr/lib/sysimage/rpm/rpmdb.sqlite")
    assert not reader.wants("var/lib/rpm/copy/rpmdb.sqlite")
