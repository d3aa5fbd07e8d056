"""Debian versions sort as dpkg sorts them."""

from __future__ import annotations

import itertools
import subprocess

import pytest

from stackbuild.resolution.debs.deb_versions import compare_deb_versions, deb_version_key

# From deb-version(7) and versions as Debian and Ubuntu really write them, oldest first.
ORDERED = [
    "0.9~~", "0.9~rc1", "0.9", "1.0~bpo12+1", "1.0", "1.0-1", "1.0-1ubuntu0.8", "1.0-1ubuntu0.10",
    "1.0-1+b1", "1.0-1+deb12u2", "1.0-1+deb12u10", "1.0a", "1.0+dfsg", "1.0.1", "1.9", "1.10",
    "2.36-9+deb12u9", "2.36-9+deb12u13", "3.12.3-1ubuntu0.8", "1:0.1", "1:1.2.13.dfsg-1", "2:0",
]  # fmt: skip


def test_the_order_of_real_versions() -> None:
    assert sorted(set(ORDERED), key=deb_version_key) == ORDERED
    assert max(["2.36-9+deb12u9", "2.36-9+deb12u13"], key=deb_version_key) == "2.36-9+deb12u13"
    assert compare_deb_versions("1.0", "1.0-0") == 0
    assert compare_deb_versions("0:1.0", "1.0") == 0


@pytest.mark.parametrize(("one", "other"), list(itertools.pairwise(ORDERED)))
def test_dpkg_agrees(one: str, other: str) -> None:
    for left, right in ((one, other), (other, one)):
        found = compare_deb_versions(left, right)
        word = "lt" if found < 0 else "gt" if found > 0 else "eq"
        done = subprocess.run(["dpkg", "--compare-versions", left, word, right], check=False)
        assert done.returncode == 0, (left, word, right)
