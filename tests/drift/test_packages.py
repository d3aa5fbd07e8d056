"""Packages of two sides against each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackbuild.drift.model import Drift, PackageChange
from stackbuild.drift.packages import Package, PackageSet, compare_packages
from tests.drift.images import OS, archive, compared, deb, dist, of_layers
from tests.support.layer_tars import Content, layer_tar

VENV = "/opt/venv/lib/python3.11/site-packages"
NEWER = "/opt/venv/lib/python3.12/site-packages"


def change(before: list[Package], after: list[Package], **sets: object) -> tuple[PackageChange, ...]:
    return compare_packages(PackageSet(tuple(before)), PackageSet(tuple(after), **sets))  # type: ignore[arg-type]


def python(version: str, place: str = VENV, **more: object) -> Package:
    return Package("python", "numpy", version, place, **more)  # type: ignore[arg-type]


def test_added_removed_and_changed() -> None:
    (moved,) = change([python("2.1.0")], [python("2.2.0")])
    assert (moved.change, moved.before, moved.after, moved.what) == (
        "changed",
        "2.1.0",
        "2.2.0",
        ("version",),
    )
    assert not moved.breaking
    (came,) = change([], [python("2.2.0")])
    assert (came.change, came.before, came.after, came.breaking) == ("added", "", "2.2.0", False)
    (went,) = change([python("2.2.0")], [])
    assert (went.change, went.before, went.after, went.breaking) == ("removed", "2.2.0", "", True)
    (broken,) = change([python("1.26.4")], [python("2.2.0")])
    assert broken.breaking
    assert "from 1 to 2" in broken.why


def test_licences_and_hashes_differ_at_equal_versions() -> None:
    (licence,) = change([python("1", licences=("MIT",))], [python("1", licences=("GPL-3.0-only",))])
    assert licence.what == ("licence",)
    assert (licence.before, licence.after) == ("1; licence MIT", "1; licence GPL-3.0-only")
    (hashed,) = change([python("1", sha256="a" * 64)], [python("1", sha256="b" * 64)])
    assert hashed.what == ("hash",)
    assert hashed.before == f"1; sha256 {'a' * 12}"
    # Another version has other bytes of itself.
    (version,) = change([python("1", sha256="a" * 64)], [python("2", sha256="b" * 64)])
    assert version.what == ("version",)
    # What one side does not say cannot differ.
    assert change([python("1", licences=None)], [python("1", licences=("MIT",))]) == ()
    assert change([python("1")], [python("1", sha256="b" * 64)]) == ()
    (stated,) = change([python("1", licences=())], [python("1", licences=("MIT",))])
    assert stated.before == "1; licence not stated"


def test_another_python_moves_no_package() -> None:
    assert change([python("1")], [python("1", NEWER)]) == ()
    debians = python("1", "/usr/lib/python3/dist-packages")
    moved, came = change([python("1")], [debians, python("2", NEWER)])
    assert (moved.change, moved.after, came.change, came.place) == ("changed", "2", "added", debians.place)


def test_a_side_without_places_is_compared_by_name() -> None:
    assert change([python("1"), python("2", "/srv/env")], [python("2", ""), python("1", "")]) == ()


def test_a_lock_is_held_against_its_environment_alone() -> None:
    in_image = [python("1"), Package("python", "apt-tool", "3", "/usr/lib/python3/dist-packages")]
    assert change(in_image, [python("1")], python_place=VENV) == ()
    (extra,) = change([*in_image, Package("python", "extra", "1", VENV)], [python("1")], python_place=VENV)
    assert (extra.name, extra.change) == ("extra", "removed")


def test_of_a_kind_that_is_known_in_part_only_common_packages_count() -> None:
    base = [Package("deb", "libc6", "2.36"), Package("deb", "curl", "7")]
    assert change(base, [Package("deb", "curl", "7")], partial=frozenset({"deb"})) == ()
    (moved,) = change(base, [Package("deb", "curl", "8")], partial=frozenset({"deb"}))
    assert moved.name == "curl"


def test_two_architectures_are_two_packages() -> None:
    both = [Package("deb", "libc6", "1", architecture=name) for name in ("amd64", "i386")]
    (gone,) = change(both, both[:1])
    assert (gone.name, gone.change, gone.before) == ("libc6", "removed", "1")


PACKAGES = st.lists(
    st.builds(
        Package,
        kind=st.sampled_from(["python", "deb"]),
        name=st.sampled_from(["a", "b", "c"]),
        version=st.sampled_from(["1", "2", "10"]),
        place=st.sampled_from(["", VENV, NEWER]),
        licences=st.sampled_from([None, (), ("MIT",)]),
        sha256=st.sampled_from(["", "1" * 64, "2" * 64]),
    ),
    max_size=6,
)


@given(PACKAGES, st.randoms())
def test_the_order_of_reading_does_not_matter(packages: list[Package], random: object) -> None:
    shuffled = packages.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert change(packages, shuffled) == ()


@given(PACKAGES, PACKAGES)
def test_the_other_way_round_is_the_mirror(before: list[Package], after: list[Package]) -> None:
    mirror = {"added": "removed", "removed": "added", "changed": "changed"}
    forth, back = change(before, after), change(after, before)
    assert [(item.name, mirror[item.change], item.after, item.before, item.what) for item in forth] == [
        (item.name, item.change, item.before, item.after, item.what) for item in back
    ]


def texts(drift: Drift) -> dict[str, tuple[str, str, str]]:
    return {f"{item.kind} {item.name}": (item.change, item.before, item.after) for item in drift.packages}


def test_debs_distributions_and_licences_of_images(tmp_path: Path) -> None:
    drift = of_layers(
        tmp_path,
        [
            OS,
            {"var/lib/dpkg/status": deb("libc6", "2.36-9") + deb("old", "1")},
            dist("numpy", "2.1.0", "License: BSD"),
        ],
        [
            OS,
            {"var/lib/dpkg/status": deb("libc6", "2.36-10")},
            dist("numpy", "2.1.0", "License: MIT"),
            dist("new", "1"),
        ],
    )
    assert texts(drift) == {
        "deb libc6": ("changed", "2.36-9", "2.36-10"),
        "deb old": ("removed", "1", ""),
        "python numpy": ("changed", "2.1.0; licence BSD", "2.1.0; licence MIT"),
        "python new": ("added", "", "1"),
    }
    assert drift.packages == tuple(sorted(drift.packages, key=lambda item: (item.kind, item.name)))


def test_a_slim_image_says_nothing_of_the_licences_and_documents_of_debs(tmp_path: Path) -> None:
    licence = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nLicense: GPL-2\n"
    whole: dict[str, Content] = {
        "var/lib/dpkg/status": deb("tool", "1"),
        "var/lib/dpkg/info/tool.list": "/usr/share/doc/tool/copyright\n/usr/share/tool/x\n",
        "usr/share/doc/tool/copyright": licence,
        "usr/share/tool/x": "1",
    }
    slim = {path: value for path, value in whole.items() if "/doc/" not in path}
    drift = of_layers(tmp_path, [whole], [slim])
    assert drift.packages == ()
    assert [(file.path, file.owner) for file in drift.files] == [
        ("/usr/share/doc", ""),
        ("/usr/share/doc/tool", "tool 1"),
        ("/usr/share/doc/tool/copyright", "tool 1"),
    ]


@pytest.mark.parametrize("level", ["pins", "packages", "files"])
def test_a_level_is_where_the_comparison_ends(tmp_path: Path, level: str) -> None:
    before = archive(tmp_path / "a.tar", layer_tar({**OS, **dist("numpy", "2.1.0")}), Env=["A=1"])
    after = archive(tmp_path / "b.tar", layer_tar({**OS, **dist("numpy", "2.2.0")}), Env=["A=2"])
    drift = compared(before, after, level=level)  # type: ignore[arg-type]
    assert [bool(found) for found in (drift.pins, drift.packages, drift.files)] == {
        "pins": [True, False, False],
        "packages": [True, True, False],
        "files": [True, True, True],
    }[level]
    assert drift.levels == ("pins", "packages", "files")[: ["pins", "packages", "files"].index(level) + 1]
