"""Which image of a layout is read: by name, by platform, and never one that only happens to be last."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from stackbuild.errors import ScanError
from stackbuild.progress import SilentObserver
from stackbuild.scan.open_source import open_source
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.archive import ArchiveSource
from stackbuild.site_config import SiteConfig
from tests.support.layer_tars import digest, image_config, layer_tar, oci_layout_files

NAME = "org.opencontainers.image.ref.name"
LAYERS = {os: layer_tar({"etc/os-release": f"ID={os}\n"}) for os in ("debian", "alpine")}
ODD: tuple[Any, ...] = (None, 5, 1.5, True, "text", ["text"], [None], {}, {"x": None}, [{}], [[]])


def image_of(os: str) -> tuple[str, dict[str, bytes]]:
    """The digest of an image's manifest, and its blobs."""
    files = oci_layout_files([LAYERS[os]])
    entry = json.loads(files["index.json"])["manifests"][1]
    return entry["digest"], {name: data for name, data in files.items() if name.startswith("blobs/")}


def entry(os: str, *, name: str = "", platform: str = "", **annotations: str) -> dict[str, Any]:
    system, _, rest = platform.partition("/")
    architecture, _, variant = rest.partition("/")
    value: dict[str, Any] = {"digest": image_of(os)[0]}
    if name:
        value["annotations"] = {NAME: name}
    if annotations:
        value["annotations"] = annotations
    if platform:
        value["platform"] = {"os": system, "architecture": architecture}
        if variant:
            value["platform"]["variant"] = variant
    return value


def layout(folder: Path, *entries: dict[str, Any], **changed: bytes) -> Path:
    files = {**image_of("debian")[1], **image_of("alpine")[1], **changed}
    files["index.json"] = json.dumps({"manifests": entries}).encode()
    path = folder / "layout.tar"
    path.write_bytes(layer_tar(files))
    return path


def os_of(path: Path, **options: str) -> str:
    site, observer = SiteConfig(), SilentObserver()
    with open_source(str(path), site=site, store=None, observer=observer, **options) as source:
        return str(scan_image(source, observer).fact("os-release", "etc/os-release")["ID"])


def refused(path: Path, **options: str) -> ScanError:
    with pytest.raises(ScanError) as caught:
        os_of(path, **options)
    return caught.value


def code_of(path: Path, *, wanted: str) -> str:
    """The code that opening an archive fails with; empty where it does not."""
    try:
        with ArchiveSource(path, wanted=wanted):
            return ""
    except ScanError as error:
        return error.code


def test_of_two_images_of_one_platform_neither_is_taken_for_granted(tmp_path: Path) -> None:
    path = layout(
        tmp_path,
        entry("debian", name="one", platform="linux/amd64"),
        entry("alpine", name="two", platform="linux/amd64"),
    )
    error = refused(path)
    assert error.code == "archive-has-several"
    assert "--image: one, two" in error.do
    assert os_of(path, wanted="one") == "debian"
    assert os_of(path, wanted="two") == "alpine"
    assert os_of(path, wanted=image_of("debian")[0]) == "debian"


def test_one_image_under_two_names_is_one_image(tmp_path: Path) -> None:
    assert os_of(layout(tmp_path, entry("debian", name="one"), entry("debian", name="two"))) == "debian"


def test_images_without_a_platform_are_told_apart_by_name(tmp_path: Path) -> None:
    path = layout(tmp_path, entry("debian", name="one"), entry("alpine", name="two"))
    assert "--image: one, two" in refused(path).do
    assert os_of(path, wanted="two") == "alpine"


def test_a_name_that_no_image_has_is_no_other_images(tmp_path: Path) -> None:
    error = refused(layout(tmp_path, entry("debian", name="one")), wanted="other")
    assert (error.code, error.what) == ("archive-has-several", "no image of the layout is called other")


def test_a_name_of_containerds_counts(tmp_path: Path) -> None:
    named = entry("debian", **{"io.containerd.image.name": "docker.io/library/x:1", NAME: "1"})
    path = layout(tmp_path, named, entry("alpine", name="2"))
    assert os_of(path, wanted="docker.io/library/x:1") == "debian"


def test_attestations_are_no_images(tmp_path: Path) -> None:
    attached = entry("alpine", **{"vnd.docker.reference.type": "attestation-manifest"})
    assert os_of(layout(tmp_path, entry("debian", name="one"), attached)) == "debian"
    assert os_of(layout(tmp_path, entry("debian"), entry("alpine", platform="unknown/unknown"))) == "debian"


def test_variants_of_arm_are_platforms_of_their_own(tmp_path: Path) -> None:
    path = layout(
        tmp_path, entry("debian", platform="linux/arm/v6"), entry("alpine", platform="linux/arm/v7")
    )
    assert os_of(path, platform="linux/arm/v7") == "alpine"
    assert os_of(path, platform="linux/arm/v6") == "debian"
    assert "linux/arm/v6, linux/arm/v7" in refused(path, platform="linux/arm").do


@pytest.mark.parametrize("asked", ["linux/arm64", "linux/arm64/v8"])
def test_the_variant_of_arm64_says_nothing(asked: str, tmp_path: Path) -> None:
    path = layout(
        tmp_path, entry("debian", platform="linux/arm64/v8"), entry("alpine", platform="linux/amd64")
    )
    assert os_of(path, platform=asked) == "debian"


def test_an_index_without_images_is_said_without_a_list_of_nothing(tmp_path: Path) -> None:
    error = refused(layout(tmp_path))
    assert (error.code, error.do) == ("archive-unknown", "Save the image again.")


def test_an_index_in_an_index_is_named_by_the_outer_one(tmp_path: Path) -> None:
    inner = json.dumps(
        {
            "manifests": [
                entry("debian", platform="linux/amd64"),
                entry("alpine", platform="linux/arm64"),
            ]
        }
    ).encode()
    outer = {"digest": digest(inner), "annotations": {NAME: "both"}}
    path = layout(
        tmp_path, outer, entry("alpine", name="x"), **{f"blobs/{digest(inner).replace(':', '/')}": inner}
    )
    assert os_of(path, wanted="both") == "debian"
    assert os_of(path, wanted="both", platform="linux/arm64") == "alpine"


@pytest.mark.parametrize("part", ["config", "manifest"])
def test_a_document_under_anothers_digest_is_refused(part: str, tmp_path: Path) -> None:
    manifest_digest, blobs = image_of("debian")
    manifest = json.loads(blobs[f"blobs/{manifest_digest.replace(':', '/')}"])
    changed = manifest_digest if part == "manifest" else manifest["config"]["digest"]
    name = f"blobs/{changed.replace(':', '/')}"
    error = refused(layout(tmp_path, entry("debian"), **{name: blobs[name] + b" "}))
    assert error.code == "archive-damaged"
    assert f"{name} has another content than its name says" in error.detail


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_is_of_another_kind_than_it_must_be_is_said(odd: Any, tmp_path: Path) -> None:
    layers = [LAYERS["debian"]]
    manifest = [{"Config": "config.json", "RepoTags": ["made:1"], "Layers": ["0/layer.tar"]}]
    for document, keys in (
        ("config.json", ("rootfs",)),
        ("config.json", ("rootfs", "diff_ids")),
        ("config.json", ("history",)),
        ("config.json", ("config",)),
        ("manifest.json", (0,)),
        ("manifest.json", (0, "RepoTags")),
        ("manifest.json", (0, "Layers")),
        ("manifest.json", (0, "Config")),
    ):
        documents: dict[str, Any] = {"config.json": image_config(layers), "manifest.json": manifest}
        documents = copy.deepcopy(documents)
        at = documents[document]
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = odd
        path = tmp_path / "saved.tar"
        path.write_bytes(
            layer_tar(
                {"0/layer.tar": layers[0], **{name: json.dumps(v).encode() for name, v in documents.items()}}
            )
        )
        for wanted in ("", "made:1"):
            assert code_of(path, wanted=wanted) in ("", "archive-damaged", "archive-has-several"), keys


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_index_of_another_kind_than_it_must_be_is_said(odd: Any, tmp_path: Path) -> None:
    for key in ("digest", "platform", "annotations"):
        for others in ((), (entry("alpine", name="x"),)):
            odd_entry = {**entry("debian", name="one", platform="linux/amd64"), key: odd}
            for wanted in ("", "x"):
                code = code_of(layout(tmp_path, odd_entry, *others), wanted=wanted)
                assert code in ("", "archive-damaged", "archive-has-several", "no-such-platform"), key
