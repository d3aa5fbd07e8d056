from __future__ import annotations

import pytest
from packageurl import PackageURL

from stackbuild.lock.model import OsLock
from stackbuild.sbom.inventory import Item, deb_purl, image_inventory, merge, pypi_purl
from tests.lock.examples import bootstrap_base, deb, platform_lock, wheel


@pytest.mark.parametrize(
    ("name", "version", "written"),
    [
        ("torch", "2.4.1+cu121", "pkg:pypi/torch@2.4.1%2Bcu121"),
        ("torchaudio", "2.0.1+cpu", "pkg:pypi/torchaudio@2.0.1%2Bcpu"),
    ],
)
def test_a_local_version_is_escaped_once_and_comes_back(name: str, version: str, written: str) -> None:
    """Case G01."""
    assert pypi_purl(name, version).to_string() == written
    assert PackageURL.from_string(written).version == version


def test_a_deb_with_plus_signs_and_a_tilde() -> None:
    """Case G01."""
    os = OsLock(id="ubuntu", version_id="22.04", glibc="2.35")
    purl = deb_purl(deb("libstdc++6", "12.3.0-1ubuntu1~22.04"), os).to_string()
    assert purl.startswith("pkg:deb/ubuntu/libstdc%2B%2B6@12.3.0-1ubuntu1~22.04?")
    assert purl.endswith("?arch=amd64&distro=ubuntu-22.04")


def test_one_package_in_two_places_is_two_items_and_in_one_place_one() -> None:
    """Case G04: cffi of the distribution, cffi of the venv, and the latter again from its own SBOM."""

    def cffi(version: str, location: str, *needs: str) -> Item:
        return Item("library", "cffi", version, pypi_purl("cffi", version), location, needs=needs)

    venv = "/opt/venv/lib/python3.12/site-packages"
    found = [cffi("1.15", "/usr/lib/python3/dist-packages"), cffi("1.17", venv), cffi("1.17", venv, "x")]
    merged = merge(found)
    assert [item.version for item in merged] == ["1.15", "1.17"]
    assert merged[1].needs == ("x",)
    assert [item.key for item in merged] == [item.key for item in merge(reversed(found))]


def test_an_upgraded_deb_of_the_base_is_there_once() -> None:
    base = bootstrap_base(deb("libc6", "2.36-9"), deb("zlib1g"))
    lock = platform_lock(base=base, debs=(deb("libc6", "2.36-10"),), wheels=())
    inventory = image_inventory(lock, {})
    assert [item.version for item in inventory.items if item.name == "libc6"] == ["2.36-10"]


def test_a_registry_base_is_a_component_by_index_digest() -> None:
    base = image_inventory(platform_lock(), {}).items
    purls = [item.purl.to_string() for item in base if item.kind == "container" and item.purl]
    assert purls == [
        f"pkg:oci/cuda@sha256:{'a' * 64}?repository_url=docker.io/nvidia/cuda&tag=13.0.3-base-ubuntu24.04"
    ]


def test_every_item_can_be_reached_from_the_top() -> None:
    wheels = (
        wheel("numpy"),
        wheel("torch").model_copy(update={"requires": ("sympy",), "requested": True}),
        wheel("sympy").model_copy(update={"requires": ("mpmath",)}),
        wheel("mpmath"),
    )
    base = bootstrap_base(deb("libc6"))
    inventory = image_inventory(platform_lock(base=base, wheels=wheels), {})
    by_key = {item.key: item for item in inventory.items}
    reached: set[str] = set()
    ahead = list(inventory.top)
    while ahead:
        key = ahead.pop()
        if key not in reached:
            reached.add(key)
            ahead.extend(by_key[key].needs)
    assert reached == set(by_key)
