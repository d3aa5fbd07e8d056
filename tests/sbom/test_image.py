from __future__ import annotations

import json
from typing import Any

import pytest

from stackbuild.sbom.check import check_references
from stackbuild.sbom.image import write_sbom
from stackbuild.spec.model import BootstrapBaseSpec, StackSpec
from tests.lock.examples import bootstrap_base, deb, platform_lock, wheel
from tests.support.json_schemas import cyclonedx_violation

SPEC = StackSpec(
    schema_=1, name="example", base=BootstrapBaseSpec(bootstrap="debian", suite="bookworm"), python="3.11"
)
# Case G03: what a licence field says, and where CycloneDX takes it.
LICENCES = {
    "MIT": {"license": {"id": "MIT"}},
    "MPL-2.0 AND MIT": {"expression": "MPL-2.0 AND MIT"},
    "Public-Domain": {"license": {"name": "Public-Domain"}},
    "NVIDIA Proprietary Software": {"license": {"name": "NVIDIA Proprietary Software"}},
    "GPL-2.0 or MIT lol (": {"license": {"name": "GPL-2.0 or MIT lol ("}},
}


def _document(**changes: Any) -> bytes:
    names = [f"dist{number}" for number in range(len(LICENCES))]
    wheels = [
        wheel(name, "2.13.0+cpu").model_copy(update={"sha256": str(number) * 64, "requires": ("dist0",)})
        for number, name in enumerate(names)
    ]
    lock = platform_lock(base=bootstrap_base(deb("libc6"), deb("libstdc++6")), wheels=wheels)
    licences = {str(number) * 64: (text,) for number, text in enumerate(LICENCES)}
    values = {"version": "py311-0123456789ab", "platform": "linux/amd64", "licences": licences}
    return write_sbom(SPEC, lock, **(values | changes))


def test_the_document_is_valid_by_the_strict_schema_and_its_references_hold() -> None:
    text = _document(config_digest="sha256:" + "7" * 64).decode()
    assert cyclonedx_violation(text) == ""
    check_references(text)


def test_the_document_is_the_same_twice_and_bears_the_locks_time() -> None:
    first, second = _document(), _document()
    assert first == second
    document = json.loads(first)
    assert document["metadata"]["timestamp"].startswith("2026-01-02T03:04:05")
    assert document["serialNumber"].startswith("urn:uuid:")


def test_another_image_has_another_serial_number() -> None:
    other = json.loads(_document(config_digest="sha256:" + "7" * 64))
    assert other["serialNumber"] != json.loads(_document())["serialNumber"]


def test_wheels_have_the_locks_hash_and_an_unescaped_version() -> None:
    components = {entry["name"]: entry for entry in json.loads(_document())["components"]}
    assert components["dist1"]["hashes"] == [{"alg": "SHA-256", "content": "1" * 64}]
    assert components["dist1"]["version"] == "2.13.0+cpu"
    assert components["dist1"]["purl"] == "pkg:pypi/dist1@2.13.0%2Bcpu"


def test_licences_are_ids_expressions_or_names() -> None:
    components = {entry["name"]: entry for entry in json.loads(_document())["components"]}
    shown = []
    for number in range(len(LICENCES)):
        (licence,) = components[f"dist{number}"]["licenses"]
        licence.pop("acknowledgement", None)
        shown.append(licence)
    assert shown == list(LICENCES.values())


def test_several_licences_of_which_one_is_an_expression_stay_valid() -> None:
    text = _document(licences={"1" * 64: ("MIT", "MPL-2.0 AND MIT")}).decode()
    assert cyclonedx_violation(text) == ""


def test_dependencies_follow_the_lock() -> None:
    document = json.loads(_document())
    needs = {entry["ref"]: entry.get("dependsOn", []) for entry in document["dependencies"]}
    assert needs["pkg:pypi/dist1@2.13.0%2Bcpu"] == ["pkg:pypi/dist0@2.13.0%2Bcpu"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"components": [{"bom-ref": "a"}, {"bom-ref": "a"}]}, "given 2 times"),
        ({"components": [{"bom-ref": "a"}], "dependencies": [{"ref": "a", "dependsOn": ["b"]}]}, "no such"),
        ({"components": [{"bom-ref": "a"}], "dependencies": [{"ref": "a"}, {"ref": "a"}]}, "stated 2 times"),
    ],
)
def test_references_that_the_schema_lets_through_are_found(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_references(json.dumps(document))
