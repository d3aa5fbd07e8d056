"""SBOMs in SPDX that wheels bring along (PEP 770): 2.3 and 3.0, as tools write them, and made to do harm."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest

from stackbuild.errors import ScanError
from stackbuild.scan.readers import bundled_spdx, bundled_spdx3
from stackbuild.scan.readers.bundled import BundledReader
from tests.sbom.test_bundled import SITE, wheel_with
from tests.sbom.test_scanned import BASE, component, needs, properties, written

PATH = "x/fast-1.dist-info/sboms/fast.spdx.json"


def package(name: str, purl: str = "", **fields: Any) -> dict[str, Any]:
    references = [
        {"referenceCategory": "SECURITY", "referenceType": "cpe23Type", "referenceLocator": "cpe:2.3:a"}
    ]
    if purl:
        references.append(
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
        )
    return {
        "SPDXID": f"SPDXRef-{name}",
        "name": name,
        "versionInfo": "1.0",
        "downloadLocation": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "licenseConcluded": "NOASSERTION",
        "externalRefs": references,
        **fields,
    }


def related(one: str, kind: str, other: str) -> dict[str, str]:
    return {
        "spdxElementId": f"SPDXRef-{one}",
        "relationshipType": kind,
        "relatedSpdxElement": f"SPDXRef-{other}",
    }


def spdx(
    *packages: dict[str, Any], relations: tuple[dict[str, str], ...] = (), **fields: Any
) -> dict[str, Any]:
    return {
        "spdxVersion": "SPDX-2.3",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "fast",
        "dataLicense": "CC0-1.0",
        "packages": list(packages),
        "relationships": list(relations),
        **fields,
    }


# As syft 1.18 writes a folder's: the root is described, has no purl, and contains what was found.
SPDX = spdx(
    package("openblas", "pkg:generic/openblas@1.0", licenseDeclared="BSD-3-Clause", checksums=[
        {"algorithm": "SHA1", "checksumValue": "0" * 40},
        {"algorithm": "SHA256", "checksumValue": "AB12CD34" * 8},
    ]),
    package("gfortran", "pkg:rpm/centos/libgfortran@8.3.1", licenseConcluded="GPL-3.0-only WITH GCC-exception-3.1"),
    package("odd", licenseDeclared="LicenseRef-1", versionInfo="NOASSERTION"),
    package("cmake", "pkg:generic/cmake@3"),
    package("root", primaryPackagePurpose="FILE"),
    relations=(
        related("root", "CONTAINS", "openblas"),
        related("openblas", "DEPENDS_ON", "gfortran"),
        related("odd", "DEPENDENCY_OF", "openblas"),
        related("cmake", "BUILD_TOOL_OF", "openblas"),
        related("DOCUMENT", "DESCRIBES", "root"),
    ),
    hasExtractedLicensingInfos=[{"licenseId": "LicenseRef-1", "name": "Odd Licence", "extractedText": "..."}],
    files=[{"SPDXID": "SPDXRef-file", "fileName": "./a.so"}],
)  # fmt: skip
SPDX3_CONTEXT = "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"


def element(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "spdxId": f"https://example.org/{name}",
        "creationInfo": "_:creation",
        "name": name,
        **fields,
    }


def relation(one: str, kind: str, *others: str, scope: str = "") -> dict[str, Any]:
    fields: dict[str, Any] = {
        "from": f"https://example.org/{one}",
        "relationshipType": kind,
        "to": [other if ":" in other else f"https://example.org/{other}" for other in others],
    }
    if scope:
        return element("LifecycleScopedRelationship", f"{one}-{kind}-{scope}", **fields, scope=scope)
    return element("Relationship", f"{one}-{kind}", **fields)


SPDX3: dict[str, Any] = {
    "@context": SPDX3_CONTEXT,
    "@graph": [
        {"type": "CreationInfo", "@id": "_:creation", "specVersion": "3.0.1"},
        element("SpdxDocument", "document", rootElement=["https://example.org/bom"]),
        element("software_Sbom", "bom", rootElement=["https://example.org/fast"]),
        element("software_Package", "fast", software_packageUrl="pkg:pypi/fast@1"),
        element(
            "software_Package",
            "openblas",
            software_packageVersion="0.3",
            software_packageUrl="pkg:generic/openblas@0.3",
            software_primaryPurpose="library",
            verifiedUsing=[{"type": "Hash", "algorithm": "sha256", "hashValue": "ab12cd34" * 8}],
        ),
        element(
            "software_Package",
            "gfortran",
            externalIdentifier=[
                {"externalIdentifierType": "cpe23", "identifier": "cpe:2.3:a"},
                {"externalIdentifierType": "packageUrl", "identifier": "pkg:rpm/centos/libgfortran@8"},
            ],
        ),
        element("software_Package", "cmake"),
        element("software_File", "a.so"),
        element(
            "simplelicensing_LicenseExpression",
            "licence",
            simplelicensing_licenseExpression="GPL-3.0-only WITH GCC-exception-3.1",
        ),
        relation("openblas", "hasConcludedLicense", "https://spdx.org/licenses/MIT"),
        relation("openblas", "hasDeclaredLicense", "https://spdx.org/licenses/BSD-3-Clause"),
        relation("gfortran", "hasConcludedLicense", "licence"),
        relation("openblas", "dependsOn", "gfortran", "nowhere"),
        relation("openblas", "dependsOn", "cmake", scope="build"),
    ],
}


def read(document: object, path: str = PATH) -> Any:
    return BundledReader().read(path, io.BytesIO(json.dumps(document).encode()))


def names(rows: list[list[Any]]) -> list[str]:
    return [row[1] for row in rows]


@pytest.fixture(params=[SPDX, SPDX3], ids=["2.3", "3.0"])
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    return written(BASE, wheel_with("fast", "1", request.param, "fast.spdx.json"))


def test_what_was_copied_into_a_wheel_is_below_it(document: dict[str, Any]) -> None:
    below = {child["name"] for child in component(document, "fast")["components"]}
    assert below - {"odd"} == {"openblas", "gfortran"}
    openblas = component(document, "openblas")
    stated = f"/{SITE}/fast-1.dist-info/sboms/fast.spdx.json"
    assert properties(openblas)["stated-by"] == stated
    assert openblas["evidence"]["occurrences"][0]["location"] == stated
    assert openblas["hashes"] == [{"alg": "SHA-256", "content": "ab12cd34" * 8}]
    assert openblas["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert "gfortran" in needs(document, "openblas")
    gfortran = component(document, "gfortran")
    assert gfortran["purl"].startswith("pkg:rpm/centos/libgfortran@8")
    assert gfortran["licenses"] == [{"expression": "GPL-3.0-only WITH GCC-exception-3.1"}]


def test_a_licence_that_the_document_brings_is_a_name_and_no_assertion_says_nothing() -> None:
    document = written(BASE, wheel_with("fast", "1", SPDX, "fast.spdx.json"))
    odd = component(document, "odd")
    assert odd["licenses"] == [{"license": {"name": "Odd Licence"}}]
    assert "version" not in odd
    assert needs(document, "openblas") == {"gfortran", "odd"}


@pytest.mark.parametrize(
    ("packages", "described", "left"),
    [
        (["a", "b"], ["a", "b"], ["a", "b"]),
        (["a"], ["a"], ["a"]),
        (["fast", "b"], ["fast"], ["b"]),
        (["fast", "b", "c"], ["fast", "b"], ["b", "c"]),
        (["fast", "b"], [], ["fast", "b"]),
        (["other", "b"], ["other"], ["other", "b"]),
    ],
    ids=["what-was-put-in", "one-alone", "the-wheel", "the-wheel-and-more", "nothing", "another-kind"],
)
def test_which_of_the_described_is_the_distribution(
    packages: list[str], described: list[str], left: list[str]
) -> None:
    purls = {"fast": "pkg:pypi/Fast@1", "other": "pkg:generic/other@1"}
    document = spdx(
        *(package(name, purls.get(name, "")) for name in packages),
        documentDescribes=[f"SPDXRef-{name}" for name in described],
    )
    assert names(read(document)) == left


def test_what_only_builds_is_left_out_unless_it_is_in_something_too() -> None:
    everywhere = spdx(
        *(package(name) for name in ("a", "builds", "tests", "both")),
        relations=(
            related("builds", "BUILD_DEPENDENCY_OF", "a"),
            related("tests", "TEST_TOOL_OF", "a"),
            related("both", "DEV_TOOL_OF", "a"),
            related("a", "STATIC_LINK", "both"),
        ),
    )
    assert [row[1:2] + row[6:] for row in read(everywhere)] == [["a", [1]], ["both", []]]


def test_spdx3_leaves_out_what_only_builds_unless_it_is_shipped_too() -> None:
    graph = [
        *(element("software_Package", name) for name in ("a", "tool", "tested", "both")),
        relation("a", "usesTool", "tool", "both"),
        relation("a", "dependsOn", "tested", scope="test"),
        relation("a", "dependsOn", "both", scope="runtime"),
    ]
    assert [row[1:2] + row[6:] for row in read({"@context": [SPDX3_CONTEXT], "@graph": graph})] == [
        ["a", [1]],
        ["both", []],
    ]


@pytest.mark.parametrize(
    "document",
    [
        {"spdxVersion": "SPDX-2.1", "packages": []},
        {"spdxVersion": ["SPDX-2.3"]},
        {"@context": "https://schema.org", "@graph": []},
        {"@context": SPDX3_CONTEXT},
        {"@context": SPDX3_CONTEXT, "@graph": {}},
        {"@context": {"a": SPDX3_CONTEXT}, "@graph": []},
    ],
)
def test_another_format_is_not_read(document: object) -> None:
    assert read(document) is None


@pytest.mark.parametrize(
    "text", ["SPDXVersion: SPDX-2.3\nPackageName: x\n", '{"spdxVersion": "SPDX-2.3", ', "\0"]
)
def test_a_document_that_cannot_be_read_is_said(text: str) -> None:
    files = {**wheel_with("fast", "1", SPDX, "good.spdx.json")}
    files[f"{SITE}/fast-1.dist-info/sboms/bad.spdx"] = text
    document = written(BASE, files)
    assert component(document, "openblas")
    unknown = [entry["value"] for entry in document["metadata"]["properties"]]
    assert f"/{SITE}/fast-1.dist-info/sboms/bad.spdx was found and could not be read" in unknown


ODD: list[Any] = [None, 3, "text", [], {}, [[]], {"a": 1}, [None, 3, "x", {}], "a\ud800", True]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("key", [*SPDX, "documentDescribes"])
def test_odd_values_of_spdx_2_give_a_valid_document(key: str, odd: Any) -> None:
    rows = read({**SPDX, key: odd})
    assert rows is None or all(len(row) == 7 for row in rows)
    json.dumps(rows).encode()


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_fields_of_packages_and_relations_give_rows(odd: Any) -> None:
    first = SPDX["packages"][0]
    for key in [*first, "checksums", "primaryPackagePurpose"]:
        rows = read(
            spdx(
                {**first, key: odd}, package("other"), relations=(related("openblas", "DEPENDS_ON", "other"),)
            )
        )
        assert "other" in names(rows)
        json.dumps(rows, ensure_ascii=False).encode()
    for key in related("a", "b", "c"):
        broken = {**related("a", "DEPENDS_ON", "b"), key: odd}
        assert names(read(spdx(package("a"), package("b"), relations=(broken,)))) == ["a", "b"]
    for number, entry in enumerate(SPDX3["@graph"]):
        for key in entry:
            graph = [*SPDX3["@graph"]]
            graph[number] = {**entry, key: odd}
            rows = read({**SPDX3, "@graph": graph})
            assert rows
            json.dumps(rows, ensure_ascii=False).encode()


def test_a_document_of_odd_packages_becomes_a_valid_one() -> None:
    odd = spdx(
        package("a\ud800", "not a purl", primaryPackagePurpose="OPERATING-SYSTEM", licenseDeclared="(MIT OR"),
        package("b", "pkg:generic/b@1", checksums=[{"algorithm": "SHA256", "checksumValue": "zz"}]),
        package("b", "pkg:generic/b@1"),
        relations=(related("b", "DEPENDS_ON", "b"), related("b", "DEPENDS_ON", "nowhere")),
    )
    document = written(BASE, wheel_with("fast", "1", odd, "fast.spdx.json"))
    assert component(document, "b")["version"] == "1.0"
    assert component(document, "a\\ud800")["type"] == "operating-system"


@pytest.mark.parametrize("module", [bundled_spdx, bundled_spdx3])
def test_more_packages_than_any_distribution_has_are_refused(
    monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    monkeypatch.setattr(module, "MOST_PACKAGES", 2)
    document = SPDX if module is bundled_spdx else SPDX3
    with pytest.raises(ScanError, match="more than 2 rows") as raised:
        read(document)
    assert raised.value.code == "layer-too-large"


@pytest.mark.parametrize("version", ["2.3", "3.0"])
def test_time_grows_with_the_document_and_no_faster(version: str) -> None:
    def taken(count: int) -> float:
        listed = [f"p{number}" for number in range(count)]
        if version == "2.3":
            relations = tuple(related(name, "DEPENDS_ON", "p0") for name in listed)
            document = spdx(*map(package, listed), relations=relations)
        else:
            graph = [element("software_Package", name) for name in listed]
            graph.append(relation("p0", "dependsOn", *listed))
            document = {"@context": SPDX3_CONTEXT, "@graph": graph}
        best = 9.0
        for _ in range(3):
            begun = time.process_time()
            assert len(read(document)) == count
            best = min(best, time.process_time() - begun)
        return best

    assert taken(4_000) < 40 * taken(500)
