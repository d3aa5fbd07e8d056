"""SBOMs that wheels bring along (PEP 770): as auditwheel and maturin write them, and made to do harm."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from stackbuild.scan.readers.bundled import BundledReader
from tests.sbom.test_scanned import BASE, component, needs, properties, written
from tests.scan.test_contents import distribution
from tests.support.layer_tars import Content

SITE = "opt/venv/lib/python3.12/site-packages"
WHEEL = "pkg:pypi/psycopg_binary@3.3.9?file_name=psycopg_binary-3.3.9-cp312-cp312-manylinux_2_17_x86_64.whl"
KEYUTILS = "pkg:rpm/centos/keyutils-libs@1.5.8-3.el7"
SASL = "pkg:rpm/centos/cyrus-sasl-lib@2.1.26-24.el7_9"
# auditwheel 6.7: the wheel is a component of its own, and references bear the hash of the file.
AUDITWHEEL: dict[str, Any] = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.4",
    "metadata": {"component": {"type": "library", "bom-ref": WHEEL, "name": "psycopg_binary", "purl": WHEEL}},
    "components": [
        {"type": "library", "bom-ref": WHEEL, "name": "psycopg_binary", "version": "3.3.9", "purl": WHEEL},
        {
            "type": "library",
            "bom-ref": f"{KEYUTILS}#b0804f",
            "name": "keyutils-libs",
            "version": "1.5.8-3.el7",
            "purl": KEYUTILS,
        },
        {
            "type": "library",
            "bom-ref": f"{SASL}#31c73d",
            "name": "cyrus-sasl-lib",
            "version": "2.1.26",
            "purl": SASL,
        },
        {
            "type": "library",
            "bom-ref": f"{SASL}#99aa00",
            "name": "cyrus-sasl-lib",
            "version": "2.1.26",
            "purl": SASL,
        },
    ],
    "dependencies": [{"ref": WHEEL, "dependsOn": [f"{KEYUTILS}#b0804f"]}, {"ref": f"{KEYUTILS}#b0804f"}],
}
# cargo-cyclonedx 0.5, as maturin runs it: references are paths, and what only builds is excluded.
CARGO: dict[str, Any] = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "metadata": {"component": {"bom-ref": "path+file:///w#1", "name": "fast", "purl": "pkg:cargo/fast@1"}},
    "components": [
        {
            "type": "library",
            "bom-ref": "registry+crates#ahash@0.8.12",
            "name": "ahash",
            "version": "0.8.12",
            "scope": "required",
            "purl": "pkg:cargo/ahash@0.8.12",
            "hashes": [{"alg": "SHA-256", "content": "5a15f179" * 8}],
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        },
        {
            "type": "library",
            "bom-ref": "registry+crates#cfg-if@1.0.0",
            "name": "cfg-if",
            "version": "1.0.0",
            "purl": "pkg:cargo/cfg-if@1.0.0",
            "licenses": [{"license": {"id": "MIT"}}, {"license": {"name": "Apache License 2.0"}}],
        },
        {"type": "library", "bom-ref": "b", "name": "autocfg", "version": "1.3.0", "scope": "excluded"},
    ],
    "dependencies": [
        {"ref": "path+file:///w#1", "dependsOn": ["registry+crates#ahash@0.8.12", "b"]},
        {
            "ref": "registry+crates#ahash@0.8.12",
            "dependsOn": ["registry+crates#cfg-if@1.0.0", "b", "nowhere"],
        },
    ],
}


def wheel_with(name: str, version: str, document: dict[str, Any], file: str) -> dict[str, Content]:
    return {
        **distribution(name, version, {f"{name}/__init__.py": b""}, SITE),
        f"{SITE}/{name}-{version}.dist-info/sboms": None,
        f"{SITE}/{name}-{version}.dist-info/sboms/{file}": json.dumps(document),
    }


def read(document: object) -> Any:
    return BundledReader().read("x.json", io.BytesIO(json.dumps(document).encode()))


def test_what_was_copied_into_a_wheel_is_below_it() -> None:
    found = written(BASE, wheel_with("psycopg_binary", "3.3.9", AUDITWHEEL, "auditwheel.cdx.json"))
    wheel = component(found, "psycopg_binary")
    assert [child["purl"] for child in wheel["components"]] == [SASL, KEYUTILS]
    keyutils = component(found, "keyutils-libs")
    stated = f"/{SITE}/psycopg_binary-3.3.9.dist-info/sboms/auditwheel.cdx.json"
    assert properties(keyutils)["stated-by"] == stated
    assert keyutils["evidence"]["occurrences"][0]["location"] == stated


def test_crates_have_their_hashes_licences_and_dependencies() -> None:
    found = written(BASE, wheel_with("fast", "1", CARGO, "fast.cyclonedx.json"))
    wheel = component(found, "fast")
    assert [child["name"] for child in wheel["components"]] == ["ahash", "cfg-if"]
    ahash = component(found, "ahash")
    assert ahash["hashes"] == [{"alg": "SHA-256", "content": "5a15f179" * 8}]
    assert ahash["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert needs(found, "ahash") == {"cfg-if"}
    licences = {
        entry["license"].get("id") or entry["license"]["name"]
        for entry in component(found, "cfg-if")["licenses"]
    }
    assert licences == {"MIT", "Apache License 2.0"}


def test_two_wheels_with_one_library_list_it_each() -> None:
    found = written(
        BASE,
        wheel_with("fast", "1", CARGO, "fast.cyclonedx.json"),
        wheel_with("faster", "2", CARGO, "faster.cyclonedx.json"),
    )
    assert [child["name"] for child in component(found, "faster")["components"]] == ["ahash", "cfg-if"]
    assert [child["name"] for child in component(found, "fast")["components"]] == ["ahash", "cfg-if"]


@pytest.mark.parametrize(
    "document",
    [[], {}, {"bomFormat": "SPDX"}, "text", None],
)
def test_another_format_is_not_read(document: object) -> None:
    assert read(document) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"components": {"name": "x"}},
        {"components": [None, 3, {"name": 5}, {"name": ""}]},
        {"metadata": [], "dependencies": [{"ref": 3, "dependsOn": "x"}, 7]},
        {
            "components": [
                {
                    "name": "a",
                    "hashes": [{"alg": "SHA-256", "content": "zz"}],
                    "licenses": [1, {"license": 2}],
                }
            ]
        },
        {
            "components": [
                {"name": "a\ud800", "version": None, "purl": "not a purl", "type": "cryptographic-asset"}
            ]
        },
        {
            "dependencies": [{"ref": "a", "dependsOn": ["a", None, {}]}],
            "components": [{"name": "a", "bom-ref": "a"}],
        },
    ],
)
def test_odd_documents_give_a_valid_one(fields: dict[str, Any]) -> None:
    written(BASE, wheel_with("fast", "1", {"bomFormat": "CycloneDX", **fields}, "fast.cdx.json"))


def test_components_inside_others_are_found_however_deep() -> None:
    innermost: dict[str, Any] = {"name": "c0"}
    for number in range(1, 300):
        innermost = {"name": f"c{number}", "components": [innermost]}
    assert len(read({"bomFormat": "CycloneDX", "components": [innermost]})) == 300
    nested = "[" * 100_000
    assert BundledReader().read("x.json", io.BytesIO(nested.encode())) is None
