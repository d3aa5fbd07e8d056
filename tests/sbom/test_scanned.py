"""The SBOM of any image, from its scan."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cyclonedx.model.bom import Bom

from stackbuild.sbom.check import check_licences, check_references
from stackbuild.sbom.scanned import scan_sbom
from stackbuild.scan.scan import scan_of
from tests.scan.test_contents import record_line
from tests.support.elf import make_elf, make_fatbin
from tests.support.json_schemas import cyclonedx_violation
from tests.support.layer_tars import Content, image_files

VENV = "opt/venv/lib/python3.12/site-packages"
DEBIANS = "usr/lib/python3/dist-packages"
STATUS = """\
Package: libc6
Status: install ok installed
Version: 2.36-9+deb12u9
Architecture: amd64
Source: glibc
Depends: libgcc-s1

Package: libgcc-s1
Status: install ok installed
Version: 12.2.0-14
Architecture: amd64
Depends: libc6 (>= 2.35)

Package: app
Status: install ok installed
Version: 1
Architecture: all
Pre-Depends: nothing | libc6:any
Depends: provided (>= 2) [amd64]

Package: real
Status: install ok installed
Version: 3
Architecture: all
Provides: provided (= 3)
"""


def dist(
    name: str, version: str, *lines: str, site: str = VENV, files: dict[str, bytes] | None = None
) -> dict[str, Content]:
    """A distribution with further METADATA lines."""
    info = f"{name}-{version}.dist-info"
    listed = "".join(record_line(path, data) for path, data in (files or {}).items())
    metadata = "\n".join((f"Name: {name}", f"Version: {version}", *lines, "", "Text"))
    return {
        **{f"{site}/{path}": data for path, data in (files or {}).items()},
        f"{site}/{info}/METADATA": metadata,
        f"{site}/{info}/RECORD": f"{listed}{info}/METADATA,,\n{info}/RECORD,,\n",
    }


BASE: dict[str, Content] = {
    "etc/os-release": 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian 12"\n',
    "var/lib/dpkg/status": STATUS,
    "var/lib/dpkg/info/libc6:amd64.list": "/.\n/lib/x86_64-linux-gnu/libc.so.6\n",
    "lib": "-> usr/lib",
    "usr/lib/x86_64-linux-gnu/libc.so.6": make_elf(soname="libc.so.6"),
    "usr/share/doc/libc6/copyright": "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
    "\nFiles: *\nLicense: LGPL-2.1+\n text\n\nFiles: a\nLicense: MIT\n",
}
TORCH = {
    "torch/__init__.py": b"",
    "torch/_C.cpython-312-x86_64-linux-gnu.so": make_elf(
        soname="_C.so", needed=["libtorch_cuda.so", "libc.so.6"], runpath="$ORIGIN/lib"
    ),
    "torch/lib/libtorch_cuda.so": make_elf(
        soname="libtorch_cuda.so",
        needed=["libcudart.so.13", "libc.so.6"],
        runpath="$ORIGIN/../../nvidia/cu13/lib",
        fatbin=make_fatbin(cubins=["sm_80", "sm_120"], ptx=["compute_120"]),
    ),
}
CUDART = {"nvidia/cu13/lib/libcudart.so.13": make_elf(soname="libcudart.so.13")}
PYTHON: dict[str, Content] = {
    VENV: None,
    **dist(
        "torch",
        "2.14.1+cu130",
        "License-Expression: BSD-3-Clause",
        "Requires-Dist: nvidia-cuda-runtime==13.0.96; platform_system == 'Linux'",
        "Requires-Dist: colorama; sys_platform == 'win32'",
        "Requires-Dist: zhelper[fast]",
        "Requires-Dist: optree>=1; extra == 'optree'",
        files=TORCH,
    ),
    **dist("nvidia-cuda-runtime", "13.0.96", "License: NVIDIA Proprietary Software", files=CUDART),
    **dist("zhelper", "1", "Requires-Dist: leaf; extra == 'fast'", "License: GPL-2.0 or MIT lol ("),
    **dist("leaf", "1", "License: MPL-2.0 AND MIT"),
    **dist("optree", "1", "License: A text\n        of several lines", "Classifier: License :: Public-Domain"),
    **dist("colorama", "1"),
    **dist("setuptools", "80", files={"setuptools/_vendor/cffi-1.16.dist-info/METADATA": b"Name: cffi\nVersion: 1.16\n"}),
    **dist("cffi", "1.17"),
    **dist("cffi", "1.17", site=DEBIANS),
}  # fmt: skip
LABELS = {"org.opencontainers.image.title": "example", "org.opencontainers.image.version": "1"}


def written(*layers: dict[str, Content], **run_config: Any) -> dict[str, Any]:
    """The document of an image, held against the strict schema, our own checks and a second reader."""
    text = scan_sbom(scan_of(image_files(*layers, **run_config))).decode()
    assert cyclonedx_violation(text) == ""
    check_references(text)
    check_licences(text)
    document: dict[str, Any] = json.loads(text)
    read = Bom.from_json(document)  # type: ignore[attr-defined]
    read.validate()
    assert len(read.components) == len(document.get("components", []))
    return document


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return written(BASE, PYTHON, Labels=LABELS)


def component(document: dict[str, Any], name: str, version: str | None = None) -> dict[str, Any]:
    """The one component of that name, wherever it is nested."""
    found = [
        item
        for item in components(document)
        if item["name"] == name and version in (None, item.get("version"))
    ]
    assert len(found) == 1, [item["bom-ref"] for item in found]
    return found[0]


def components(node: dict[str, Any]) -> list[dict[str, Any]]:
    children = node.get("components", [])
    return [*children, *(inner for child in children for inner in components(child))]


def needs(document: dict[str, Any], name: str, version: str | None = None) -> set[str]:
    """What a component depends on, by name."""
    names = {item["bom-ref"]: item["name"] for item in components(document)}
    ref = component(document, name, version)["bom-ref"]
    (entry,) = [entry for entry in document["dependencies"] if entry["ref"] == ref]
    return {names[other] for other in entry.get("dependsOn", [])}


def properties(item: dict[str, Any]) -> dict[str, str]:
    return {entry["name"].removeprefix("stackbuild:"): entry["value"] for entry in item.get("properties", [])}


def test_the_same_image_gives_the_same_bytes_by_whatever_name() -> None:
    first = image_files(BASE, PYTHON, name="one", Labels=LABELS)
    second = image_files(dict(reversed(BASE.items())) | {}, PYTHON, name="/tmp/two.tar", Labels=LABELS)
    assert scan_sbom(scan_of(first)) == scan_sbom(scan_of(image_files(BASE, PYTHON, name="x", Labels=LABELS)))
    # The same paths written in another order are another layer, and only its digest tells them apart.
    one, two = (scan_sbom(scan_of(files)).decode() for files in (first, second))
    for a, b in zip(first.description.diff_ids, second.description.diff_ids, strict=True):
        two = two.replace(b, a)
    assert json.loads(one)["components"] == json.loads(two)["components"]


def test_the_order_of_places_is_not_that_of_memory() -> None:
    files = image_files(
        BASE, {"usr/lib/os-release": "ID=debian\n", "etc/os-release": "ID=debian\nVERSION_ID=12\n"}
    )
    documents = {scan_sbom(scan_of(files)) for _ in range(12)}
    assert len(documents) == 1
    system = component(json.loads(documents.pop()), "debian")
    assert [place["location"] for place in system["evidence"]["occurrences"]] == [
        "/etc/os-release",
        "/usr/lib/os-release",
    ]


def test_the_image_is_named_by_its_labels(document: dict[str, Any]) -> None:
    root = document["metadata"]["component"]
    assert (root["name"], root["version"], root["type"]) == ("example", "1", "container")
    assert properties(root)["platform"] == "linux/amd64"


def test_an_image_on_top_of_a_stack_is_not_named_as_the_stack() -> None:
    pins = {
        "stack": "example", "os": "debian 12", "glibc": "2.36", "lock-sha256": "c" * 64,
        "base": {"name": "bootstrap debian bookworm", "digest": "sha256:" + "d" * 64},
    }  # fmt: skip
    label = json.dumps({"schema": 1, "pins": pins, "diff-ids": ["sha256:" + "e" * 64]})
    found = written(BASE, Labels={**LABELS, "io.stackbuild.pins": label})
    assert found["metadata"]["component"]["name"] == "image"


def test_debs_have_purl_licences_and_dependencies(document: dict[str, Any]) -> None:
    libc = component(document, "libc6")
    assert libc["purl"] == "pkg:deb/debian/libc6@2.36-9%2Bdeb12u9?arch=amd64&distro=debian-12"
    said = [entry["license"].get("id") or entry["license"]["name"] for entry in libc["licenses"]]
    assert said == ["LGPL-2.1+", "MIT"]
    assert needs(document, "libc6") == {"libgcc-s1"}
    assert needs(document, "app") == {"libc6", "real"}
    assert needs(document, "debian") == {"app", "libc6", "libgcc-s1", "real"}


def test_requirements_are_evaluated_with_the_extras_that_others_ask_for(document: dict[str, Any]) -> None:
    found = needs(document, "torch")
    assert {"nvidia-cuda-runtime", "zhelper"} <= found
    assert not {"colorama", "optree"} & found
    assert needs(document, "zhelper") == {"leaf"}


def test_bundled_libraries_are_children_with_gpu_code_hash_and_what_they_load(
    document: dict[str, Any],
) -> None:
    torch = component(document, "torch")
    assert torch["type"] == "framework"
    assert properties(torch)["gpu-binaries"] == "sm_80 sm_120"
    (library,) = torch["components"]
    assert library["name"] == "libtorch_cuda.so"
    assert properties(library)["gpu-ptx"] == "compute_120"
    assert library["hashes"][0]["alg"] == "SHA-256"
    assert needs(document, "libtorch_cuda.so") == {"libcudart.so.13", "libc6"}
    # The extension module is torch's own; what it loads, torch needs.
    assert {"libtorch_cuda.so", "libc6"} <= needs(document, "torch")
    (cudart,) = component(document, "nvidia-cuda-runtime")["components"]
    assert (cudart["name"], cudart["version"]) == ("libcudart.so.13", "13.0.96")
    assert properties(cudart)["cuda-library"] == "cudart"


def test_every_component_says_where_it_was_found(document: dict[str, Any]) -> None:
    layers = properties(document["metadata"]["component"])["layers"].split()
    for item in components(document):
        assert item["evidence"]["occurrences"], item["name"]
    (place,) = component(document, "libc6")["evidence"]["occurrences"]
    assert place["location"] == "/var/lib/dpkg/info/libc6:amd64.list", (
        "its layer is the one that installed it"
    )
    (place,) = component(document, "zhelper")["evidence"]["occurrences"]
    assert place == {
        "location": f"/{VENV}/zhelper-1.dist-info/METADATA",
        "additionalContext": f"layer {layers[1]}",
    }


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("torch", {"license": {"id": "BSD-3-Clause"}}),
        ("leaf", {"expression": "MPL-2.0 AND MIT"}),
        ("nvidia-cuda-runtime", {"license": {"name": "NVIDIA Proprietary Software"}}),
        ("zhelper", {"license": {"name": "GPL-2.0 or MIT lol ("}}),
        ("optree", {"license": {"name": "Public-Domain"}}),
    ],
)
def test_licences_are_ids_expressions_or_names(
    document: dict[str, Any], name: str, licence: dict[str, Any]
) -> None:
    """Case G03."""
    (said,) = component(document, name)["licenses"]
    said.pop("acknowledgement", None)
    assert said == licence


def test_one_package_in_three_places_is_three_components(document: dict[str, Any]) -> None:
    """Case G04; the vendored copy is marked, and stands below the package that brings it."""
    refs = [item["bom-ref"] for item in components(document) if item["name"] == "cffi"]
    assert len(set(refs)) == 3
    assert component(document, "torch")["purl"] == "pkg:pypi/torch@2.14.1%2Bcu130"  # case G01
    (copy,) = component(document, "setuptools")["components"]
    assert (copy["name"], copy["version"], properties(copy)["vendored"]) == ("cffi", "1.16", "true")
    others = [item for item in document["components"] if item["name"] == "cffi"]
    assert [item["version"] for item in others] == ["1.17", "1.17"]
    assert not any("vendored" in properties(item) for item in others)


def test_everything_can_be_reached_from_the_image(document: dict[str, Any]) -> None:
    known = {entry["ref"]: entry.get("dependsOn", []) for entry in document["dependencies"]}
    ahead, reached = [document["metadata"]["component"]["bom-ref"]], set()
    while ahead:
        ref = ahead.pop()
        if ref not in reached:
            reached.add(ref)
            ahead += known[ref]
    assert {item["bom-ref"] for item in document["components"]} <= reached


def test_hash_and_place_of_a_direct_url() -> None:
    url = {"url": "https://host/a-1.whl", "archive_info": {"hashes": {"sha256": "5" * 64}}}
    found = written({**dist("a", "1"), f"{VENV}/a-1.dist-info/direct_url.json": json.dumps(url)})
    item = component(found, "a")
    assert item["hashes"] == [{"alg": "SHA-256", "content": "5" * 64}]
    assert properties(item)["url"] == "https://host/a-1.whl"


def test_apk_and_conda() -> None:
    found = written(
        {
            "etc/os-release": "ID=alpine\nVERSION_ID=3.20.1\n",
            "lib/apk/db/installed": "P:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\np:so:libc.musl-x86_64.so.1=1\n\n"
            "P:zlib\nV:1.3\nA:x86_64\nL:Zlib\nD:so:libc.musl-x86_64.so.1 !bad\n",
            "opt/conda/conda-meta/numpy-2.0-py312_0.json": '{"name": "numpy", "version": "2.0", "license": "BSD-3-Clause"}',
        }
    )
    assert component(found, "musl")["purl"] == "pkg:apk/alpine/musl@1.2.5-r0?arch=x86_64&distro=alpine-3.20.1"
    assert component(found, "musl")["licenses"][0]["license"]["id"] == "MIT"
    assert needs(found, "zlib") == {"musl"}
    assert component(found, "numpy")["purl"] == "pkg:conda/numpy@2.0"


def test_what_nobody_owns_is_listed_and_what_cannot_be_known_is_said() -> None:
    found = written(
        BASE,
        {
            "usr/local/cuda/lib64/libcudnn.so.9.1.0": make_elf(soname="libcudnn.so.9", needed=["libc.so.6"]),
            f"{VENV}/torch/version.py": "__version__ = '2.8.0+cu128'\ncuda: str = '12.8'\n",
            f"{VENV}/torch/__init__.py": "",
            f"{VENV}/torch": None,
            f"{VENV}/a-1.dist-info/sboms/a.cdx.json": "{}",
            VENV: None,
        },
    )
    cudnn = component(found, "libcudnn.so.9.1.0")
    assert (cudnn["version"], properties(cudnn)["cuda-library"]) == ("9.1.0", "cudnn")
    assert needs(found, "libcudnn.so.9.1.0") == {"libc6"}
    torch = component(found, "torch")
    assert (torch["version"], properties(torch)["metadata"]) == ("2.8.0+cu128", "missing")
    said = " ".join(entry["value"] for entry in found["metadata"]["properties"])
    assert "Modules in /opt/venv/lib/python3.12/site-packages without metadata" in said
    assert "hashes are given only where" in said
    assert "a-1.dist-info/sboms/a.cdx.json was found and could not be read" in said


def test_a_package_without_a_name_that_can_be_written_has_no_purl() -> None:
    status = "Package: /\nStatus: install ok installed\nVersion: 1\n\n"
    found = written({"etc/os-release": "ID=debian\nVERSION_ID=12\n", "var/lib/dpkg/status": status})
    assert "purl" not in component(found, "/")


def test_an_image_with_nothing_in_it() -> None:
    found = written({"a": "b"})
    assert found.get("components", []) == []
    said = " ".join(entry["value"] for entry in found["metadata"]["properties"])
    assert "The distribution is not known" in said


def test_licences_that_the_schema_lets_through_are_found() -> None:
    with pytest.raises(ValueError, match="no SPDX expression: MIT lol"):
        check_licences('{"components": [{"licenses": [{"expression": "MIT lol ("}]}]}')


def test_an_image_made_to_break_it_still_gives_a_valid_document() -> None:
    library = {"a/liba.so": make_elf(soname="liba.so", needed=["liba.so", "libb.so"])}
    other = {"a/libb.so": make_elf(soname="libb.so")}
    written(
        {
            "etc/os-release": 'ID="a b/\\n@"\nVERSION_ID="?#%"\n',
            "var/lib/dpkg/status": "Package: a/../b\nVersion: @?#\n\nPackage: /\nVersion: 1\nDepends: |,,(, a/../b\n",
            VENV: None,
            **dist("/", "1"),
            **dist("dotted.name", "not a version", f"License: {'(' * 90}", "Requires-Dist: <<<"),
            **dist("twice", "1", "License-Expression: " + "(" * 3000 + "MIT" + ")" * 3000, files=library),
            f"{VENV}/Twice-1.dist-info/METADATA": "Name: Twice\nVersion: 1\nRequires-Dist: twice[x]\n",
            f"{VENV}/Twice-1.dist-info/RECORD": record_line("a/libb.so", other["a/libb.so"]),
            f"{VENV}/a/libb.so": other["a/libb.so"],
            f"{VENV}/p/_vendor/c-1.dist-info/METADATA": "Name: c\nVersion: 1\n",
            f"{VENV}/p/_vendor/c-1.egg-info": "Name: c\nVersion: 1\n",
            f"{VENV}/p/_vendor/C-1.dist-info/METADATA": "Name: C\nVersion: 1\n",
            **dist("p", "1", files={"p/_vendor/C-1.dist-info/METADATA": b"Name: C\nVersion: 1\n"}),
        },
        Labels={"org.opencontainers.image.title": "\ud800\x00"},
    )


def test_a_version_is_no_longer_than_the_format_has_room_for(recwarn: pytest.WarningsRecorder) -> None:
    status = f"Package: a\nStatus: install ok installed\nVersion: {'9' * 3000}\nArchitecture: amd64\n\n"
    found = component(written({"etc/os-release": "ID=debian\n", "var/lib/dpkg/status": status}), "a")
    assert found["version"] == "9" * 1024
    assert not [warning for warning in recwarn if "version" in str(warning.message)]
