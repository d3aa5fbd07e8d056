"""Which rpm needs which, and whose their files are, in the SBOM."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from stackbuild.sbom.rpm_conditions import parse_condition
from stackbuild.sbom.rpm_graph import RpmGraph
from stackbuild.sbom.rpm_versions import Relation, rpm_version_key
from stackbuild.scan.contents.packages import SystemPackage
from stackbuild.scan.contents.rpm_files import RpmFiles
from tests.sbom.test_scanned import component, needs, properties, written
from tests.scan.test_rpm import DATABASES, LINES
from tests.support.elf import make_elf
from tests.support.layer_tars import Content, image_files
from tests.support.rpm_databases import rpm, rpm_database

OS: dict[str, Content] = {"etc/os-release": 'ID="rhel"\nVERSION_ID="9.4"\n'}


def of_database(*headers: bytes, **files: Content) -> dict[str, Any]:
    return written({**OS, "var/lib/rpm/rpmdb.sqlite": rpm_database(*headers), **files})


@pytest.mark.parametrize("name", DATABASES)
def test_real_packages_need_each_other_as_rpm_resolves_it(name: str) -> None:
    """rpm -Va --nofiles on the same database misses only not-there, and rtld(GNU_HASH), which glibc provides."""
    found = written({**OS, DATABASES[name]: (LINES / name).read_bytes()})
    assert needs(found, "lines") == set()
    # By a library's symbol version, a file, a version, and three conditions.
    assert needs(found, "lines-tools") == {
        "lines",
        "lines-shell",
        "lines-doc",
        "lines-old-shell",
        "lines-plain",
    }
    assert needs(found, "lines-doc") == {"lines-tools"}, "a circle"
    tools = component(found, "lines-tools")
    assert tools["purl"] == "pkg:rpm/rhel/lines-tools@1.4-1?arch=x86_64&distro=rhel-9.4&epoch=2"
    assert properties(tools) == {
        "module": "lines:1:20260101:abcdef12",
        "source-package": "lines-1.0-1.src.rpm",
    }
    said = " ".join(entry["value"] for entry in found["metadata"]["properties"])
    assert "rpm" not in said


def test_libraries_are_their_packages_and_what_nobody_owns_is_listed() -> None:
    library = "usr/lib64/libcudart.so.12.4.127"
    found = written(
        {
            **OS,
            "lib64": "-> usr/lib64",
            "usr/lib64": None,
            "usr/lib64/libc.so.6": make_elf(soname="libc.so.6"),
            library: make_elf(soname="libcudart.so.12", needed=["libc.so.6"]),
            "var/lib/rpm/rpmdb.sqlite": rpm_database(
                rpm("glibc", "2.34", files=["/lib64/libc.so.6"]),
                rpm("cuda-cudart-12-4", "12.4.127", files=[f"/{library}", "/usr/lib64/libcudart.so.12"]),
            ),
        },
        {"usr/local/lib/libmine.so.1": make_elf(soname="libmine.so.1", needed=["libcudart.so.12"])},
    )
    (cudart,) = component(found, "cuda-cudart-12-4")["components"]
    assert (cudart["name"], cudart["version"]) == ("libcudart.so.12.4.127", "12.4.127")
    assert needs(found, "libcudart.so.12.4.127") == {"glibc"}
    assert component(found, "libmine.so.1") in found["components"]


def test_the_layer_of_an_rpm_is_the_one_that_installed_it() -> None:
    path = "var/lib/rpm/rpmdb.sqlite"
    first, both = rpm_database(rpm("a")), rpm_database(rpm("a"), rpm("b"))
    found = written({**OS, path: first}, {path: both})
    layers = properties(found["metadata"]["component"])["layers"].split()
    for name, layer in (("a", layers[0]), ("b", layers[1])):
        (place,) = component(found, name)["evidence"]["occurrences"]
        assert place == {"location": f"/{path}", "additionalContext": f"layer {layer}"}


def test_modules_that_an_rpm_brings_are_no_modules_of_nobodys() -> None:
    site = "usr/lib/python3.9/site-packages"
    found = written(
        {
            **OS,
            site: None,
            f"{site}/dnf/__init__.py": "",
            f"{site}/six.py": "",
            f"{site}/mine.py": "",
            "var/lib/rpm/rpmdb.sqlite": rpm_database(
                rpm("python3-dnf", files=[f"/{site}/dnf/__init__.py", f"/{site}/six.py"])
            ),
        }
    )
    said = [entry["value"] for entry in found["metadata"]["properties"]]
    assert f"Modules in /{site} without metadata, not listed as components: mine.py." in said


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        ("libx.so.1(X_2)(64bit)", {"x"}),
        ("libx.so.1(X_3)(64bit)", set()),
        ("/usr/share/x", {"x"}),
        ("/usr/bin/alternative", {"y"}),
        ("virtual", {"x"}),
        ("virtual >= 2", {"y"}),
        ("virtual = 3", set()),
        ("x = 1-1", {"x"}),
        ("x >= 1:0", set()),
        ("config(app) = 1-1", set()),
        ("rpmlib(CompressedFileNames) <= 3.0.4-1", set()),
        ("(x and y)", {"x", "y"}),
        ("(x and absent)", {"x"}),
        ("(absent or y or x)", {"y"}),
        ("(absent or other)", set()),
        ("(x if y)", {"x"}),
        ("(x if absent)", set()),
        ("(x if absent else y)", {"y"}),
        ("(x unless y)", set()),
        ("(x unless y else y)", {"y"}),
        ("(x unless absent)", {"x"}),
        ("(virtual with virtual >= 2)", {"y"}),
        ("(virtual without virtual < 2)", {"y"}),
        ("(virtual with x)", {"x"}),
        ("(x with y)", set()),
        ("((x or absent) and (y if (x and y)))", {"x", "y"}),
        ("(libx.so.1(X_2)(64bit) if virtual >= 2)", {"x"}),
        ("(x and y or z)", set()),
        ("(x and", set()),
        ("()", set()),
        ("(x else y)", set()),
        ("(" * 5000 + "x", set()),
    ],
)
def test_requirements(requires: str, expected: set[str]) -> None:
    """RPM documentation, "Dependencies" and "Boolean dependencies"."""
    found = of_database(
        rpm("app", requires=[requires], provides=["config(app) = 1-1"]),
        rpm("x", provides=["libx.so.1(X_2)(64bit)", "virtual = 1"], files=["/usr/share/x"]),
        rpm("y", provides=["virtual = 2"], ghosts=["/usr/bin/alternative"]),
    )
    assert needs(found, "app") == expected


def test_conditions_that_cannot_be_read_and_damaged_entries_are_told() -> None:
    broken = rpm("broken", requires=["(a and"])
    whole = rpm("damaged", files=["/a"])
    damaged = whole[:-8] + b"\0\0\0\x09" + whole[-4:]  # its one file lies in a tenth folder
    found = of_database(broken, damaged)
    said = [entry["value"] for entry in found["metadata"]["properties"]]
    assert "1 condition of rpms could not be read, and what they lead to is left out." in said
    assert "Files and dependencies of 1 rpm are not known: their entries in the database are damaged." in said


def test_of_several_that_provide_it_the_package_itself_then_its_architecture_counts() -> None:
    found = of_database(
        rpm("app", requires=["libz", "own"], provides=["own"]),
        rpm("text", requires=["libz"], architecture="noarch"),
        *(rpm("zlib", provides=["libz"], architecture=name) for name in ("aarch64", "i686", "x86_64")),
        rpm("another", provides=["own"]),
    )
    refs = {entry["ref"]: entry.get("dependsOn", []) for entry in found["dependencies"]}
    for name in ("app", "text"):
        (ref,) = refs[component(found, name)["bom-ref"]]
        assert ref == "pkg:rpm/rhel/zlib@1-1?arch=x86_64&distro=rhel-9.4"


def test_many_packages_that_provide_and_need_one_name_take_no_time() -> None:
    """Five thousand requirements of five thousand providers each, none of which is new enough."""
    packages = [
        SystemPackage(
            *("rpm", f"p{number}", "1-1", "x86_64", "", 0, "", 0),
            depends=f"v >= {number + 2}\n(v with v = {number + 2})\n/usr/bin/v",
            provides="v = 1",
            files={"usr/bin": ["v"]},
        )
        for number in range(5_000)
    ]
    begun = time.process_time()
    graph = RpmGraph(packages, RpmFiles(packages, image_files({"a": "b"})))
    assert graph.needs(0) == {0}
    assert graph.needs(4_999) == {0}
    for number in range(5_000):
        graph.needs(number)
    assert time.process_time() - begun < 30, "a tenth of it when nothing else runs"


# As "rpm --eval '%{lua:print(rpm.vercmp(…))}'" of rpm 4.18 orders them.
IN_ORDER = (
    *("~~", "~", "", "^", "a", "fc4", "xyz", "xyz.10", "1.0~rc1~git1", "1.0~rc1", "1.0", "1.0^20160101"),
    *("1.0a~", "1.0a", "1.0aa", "1.0.1", "1.9", "1.10", "2.0.1a", "5.5p1", "5.5p10", "6.0.rc1", "10xyz", "20101121"),
)  # fmt: skip


def test_versions_are_ordered_as_rpm_orders_them() -> None:
    for older, newer in itertools.pairwise(IN_ORDER):
        assert rpm_version_key(older) < rpm_version_key(newer), (older, newer)
    for one, other in (("1.0", "01.0"), ("1.0", "1_0."), ("2a", "2.a")):
        assert rpm_version_key(one) == rpm_version_key(other)


@pytest.mark.parametrize(
    ("provided", "asked", "overlaps"),
    [
        ("a = 1.0-2", "a", True),
        ("a", "a > 9", True),
        ("a = 1.0-2", "a = 1.0", True),
        ("a = 1.0-2", "a > 1.0", False),
        ("a = 1.0-2", "a >= 1.0-3", False),
        ("a = 1:1.0-2", "a > 9", True),
        ("a = 0:1.0-2", "a = 1.0-2", True),
        ("a = 5.1~rc1", "a >= 5.1", False),
        ("a < 2", "a > 1", True),
        ("a < 1.0-2", "a = 1.0", True),
        ("a < 2", "a > 3", False),
        ("a <= 2", "a >= 2", True),
        ("a < 2", "a >= 2", False),
    ],
)
def test_versions_that_overlap(provided: str, asked: str, overlaps: bool) -> None:
    assert Relation.of(provided).overlaps(Relation.of(asked)) is overlaps
    assert Relation.of(asked).overlaps(Relation.of(provided)) is overlaps


def test_conditions_cut_at_every_length_are_none() -> None:
    text = "((libx.so.1(X_2)(64bit) >= 1 or (b with c(d) = 1:2-3)) if (e unless f else g) else h)"
    assert parse_condition(text) is not None
    assert [parse_condition(text[:length]) for length in range(len(text))] == [None] * len(text)
