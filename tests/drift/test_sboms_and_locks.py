"""Locks, SBOMs, and sides of two kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stackbuild.drift.compare import compare_subjects, image_side
from stackbuild.drift.lock_subject import lock_subject
from stackbuild.drift.model import Drift
from stackbuild.drift.sbom_subject import LARGEST, sbom_subject
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.lock.file import read_lock
from stackbuild.lock.model import (
    BootstrapBaseLock,
    ImageBaseLock,
    Lock,
    LockedDeb,
    LockedWheel,
    OsLock,
    PlatformLock,
    PythonLock,
)
from stackbuild.progress import SilentObserver
from stackbuild.sbom.scanned import scan_sbom
from stackbuild.scan.scan import scan_of
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.archive import ArchiveSource
from stackbuild.spec.model import Platform
from tests.drift.images import OS, archive, deb, dist
from tests.support.elf import make_elf, make_fatbin
from tests.support.layer_tars import layer_tar
from tests.support.nvidia_config import nvidia_configuration

PLATFORM: Platform = "linux/amd64"
STACKS = Path(__file__).parents[2] / "stacks"


def compare_locks(before: Lock, after: Lock, platform: Platform) -> Drift:
    return compare_subjects(lock_subject(before, platform), lock_subject(after, platform))


def compare_sboms(before: bytes, after: bytes) -> Drift:
    return compare_subjects(sbom_subject(before, "before"), sbom_subject(after, "after"))


def wheel(name: str, version: str, **more: Any) -> LockedWheel:
    sha256 = more.pop("sha256", "1" * 64)
    file = f"{name}-{version}-py3-none-any.whl"
    return LockedWheel(
        name=name, version=version, index="default", file=file, sha256=sha256, size=1, group="other", **more
    )


def locked_deb(name: str, version: str, sha256: str = "2" * 64) -> LockedDeb:
    path = f"pool/main/{name}.deb"
    return LockedDeb(
        name=name,
        version=version,
        architecture="amd64",
        repository="debian",
        path=path,
        sha256=sha256,
        size=1,
    )


def lock(
    *wheels: LockedWheel, debs: tuple[LockedDeb, ...] = (), stack: str = "demo", python: str = "3.11.2"
) -> Lock:
    base = BootstrapBaseLock(
        distribution="debian",
        suite="bookworm",
        debs=(locked_deb("libc6", "2.36-9"),),
        diff_id=f"sha256:{'3' * 64}",
        created="2026-01-01T00:00:00Z",
    )
    platform = PlatformLock(
        base=base,
        os=OsLock(id="debian", version_id="12", codename="bookworm", glibc="2.36"),
        python=PythonLock(version=python, executable="/usr/bin/python3.11", tag="cp311"),
        debs=debs,
        wheels=wheels,
        created="2026-01-01T00:00:00Z",
    )
    return Lock(schema=1, stack=stack, spec_sha256="4" * 64, platforms={PLATFORM: platform})  # type: ignore[call-arg]


def told(drift: Drift) -> tuple[list[str], list[str]]:
    return (
        [f"{pin.pin} {pin.before} → {pin.after}" for pin in drift.pins],
        [
            f"{item.kind} {item.name} {item.before} → {item.after} {' '.join(item.what)}".rstrip()
            for item in drift.packages
        ],
    )


def test_two_locks() -> None:
    before = lock(wheel("numpy", "2.1.0"), wheel("torch", "2.12.1+cu126"), debs=(locked_deb("curl", "7"),))
    after = lock(
        wheel("numpy", "2.1.0", sha256="5" * 64),
        wheel("torch", "2.13.0+cu130"),
        debs=(locked_deb("curl", "7"), locked_deb("libc6", "2.36-10")),
    )
    pins, packages = told(compare_locks(before, after, PLATFORM))
    assert pins == [
        "driver_floor 525.60.13 → 580.65.06",
        "cuda 12.6 → 13.0",
        "torch 2.12.1 → 2.13.0",
        "torch_variant cu126 → cu130",
        "compute_capabilities torch sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90 → sm_75 sm_80 sm_86 sm_90 sm_100 sm_120",
    ]
    assert packages == [
        "deb libc6 2.36-9 → 2.36-10 version",
        f"python numpy 2.1.0; sha256 {'1' * 12} → 2.1.0; sha256 {'5' * 12} hash",
        "python torch 2.12.1+cu126 → 2.13.0+cu130 version",
    ]
    same = compare_locks(before, before, PLATFORM)
    assert not same.differs
    assert same.levels == ("pins", "packages")
    with pytest.raises(LockError) as caught:
        compare_locks(before, after, "linux/arm64")
    assert caught.value.code == "platform-not-locked"


def test_what_the_bases_of_two_locks_ask_of_the_host() -> None:
    def on_cuda(tag: str) -> Lock:
        base = ImageBaseLock(
            image="nvidia/cuda",
            tag=tag,
            index_digest=f"sha256:{'6' * 64}",
            platform_digest=f"sha256:{'7' * 64}",
            config_digest=f"sha256:{'8' * 64}",
            diff_ids=(f"sha256:{'9' * 64}",),
            config={"config": nvidia_configuration(tag)},
            created="2026-01-01T00:00:00Z",
        )
        made = lock(wheel("numpy", "2.1.0"))
        platform = made.platforms[PLATFORM].model_copy(update={"base": base})
        return made.model_copy(update={"platforms": {PLATFORM: platform}})

    drift = compare_locks(on_cuda("12.6.3-base-ubuntu24.04"), on_cuda("13.0.3-base-ubuntu24.04"), PLATFORM)
    assert [pin.pin for pin in drift.pins] == ["base", "driver_floor", "cuda", "env NVIDIA_REQUIRE_CUDA"]
    assert [pin.pin for pin in drift.pins if pin.breaking] == [
        "driver_floor",
        "cuda",
        "env NVIDIA_REQUIRE_CUDA",
    ]
    assert drift.unknown == ("Which packages the base of demo holds is not in its lock.",)


def test_the_shipped_locks_say_what_tells_the_stacks_apart() -> None:
    drift = compare_locks(read_lock(STACKS / "torch-cpu.lock"), read_lock(STACKS / "demo-cpu.lock"), PLATFORM)
    assert [pin.pin for pin in drift.pins] == ["stack", "torch", "torch_variant"]
    assert {item.change for item in drift.packages} == {"removed"}
    assert "torch" in {item.name for item in drift.packages}


def scanned(path: Path, *layers: dict[str, Any]) -> Path:
    return archive(path, *(layer_tar(layer) for layer in layers))


def test_an_image_against_its_lock(tmp_path: Path) -> None:
    debians = {"usr/lib/python3/dist-packages/apt_x-1.dist-info/METADATA": "Name: apt-x\nVersion: 1\n"}
    debs = {"var/lib/dpkg/status": deb("libc6", "2.36-9") + deb("curl", "7")}
    path = scanned(tmp_path / "image.tar", OS, {**debs, **debians}, dist("numpy", "2.1.0", "License: MIT"))
    of_lock = lock(wheel("numpy", "2.1.0"), debs=(locked_deb("curl", "7"),), python="3.11.9")
    with ArchiveSource(path) as source:
        image = image_side(source, store=None, observer=SilentObserver())
        drift = compare_subjects(lock_subject(of_lock, PLATFORM), image)
        assert told(drift) == ([], [])
        assert drift.levels == ("pins", "packages")
        other = lock(
            wheel("numpy", "2.2.0"), wheel("six", "1"), debs=(locked_deb("curl", "8"),), stack="other"
        )
        pins, packages = told(compare_subjects(lock_subject(other, PLATFORM), image))
    assert pins == []  # an image without a pin list does not say of which stack it is
    assert packages == ["deb curl 8 → 7 version", "python numpy 2.2.0 → 2.1.0 version", "python six 1 →"]


def test_our_sbom_says_what_its_image_says(tmp_path: Path) -> None:
    library = make_elf(soname="libt.so", fatbin=make_fatbin(cubins=["sm_80"]))
    layers = (
        OS,
        {"var/lib/dpkg/status": deb("libc6", "2.36-9")},
        dist(
            "torch", "2.13.0+cu126", "License-Expression: BSD-3-Clause", files={"torch/lib/libt.so": library}
        ),
        {"usr/local/cuda/lib64/libcudart.so.12.6.77": make_elf(soname="libcudart.so.12")},
    )
    with ArchiveSource(scanned(tmp_path / "image.tar", *layers)) as source:
        image = image_side(source, store=None, observer=SilentObserver())
        document = scan_sbom(scan_of(scan_image(source, SilentObserver())))
    sbom = sbom_subject(document, "image.cdx.json")
    drift = compare_subjects(image, sbom)
    assert told(drift) == ([], [])
    assert {(item.kind, item.name) for item in sbom.packages.packages} == {
        ("deb", "libc6"),
        ("python", "torch"),
        ("cuda", "libcudart"),
    }
    for pin in ("os", "torch", "cuda", "driver_floor", "compute_capabilities torch"):
        assert sbom.pins[pin] == image.pins[pin], pin


def sbom(*components: dict[str, Any], **more: Any) -> bytes:
    return json.dumps(
        {"bomFormat": "CycloneDX", "specVersion": "1.5", "components": components, **more}
    ).encode()


def component(purl: str, version: str, **more: Any) -> dict[str, Any]:
    name = purl.rpartition("/")[2]
    return {"type": "library", "name": name, "version": version, "purl": f"{purl}@{version}", **more}


def test_another_tools_sbom() -> None:
    os = {"type": "operating-system", "name": "debian", "version": "12"}
    before = sbom(
        os,
        component("pkg:pypi/Flask", "3.0.0", licenses=[{"license": {"id": "BSD-3-Clause"}}]),
        component("pkg:deb/debian/curl", "7.88", licenses=[]),
        component("pkg:npm/left-pad", "1.3.0", hashes=[{"alg": "SHA-256", "content": "A" * 64}]),
        {"type": "file", "name": "/etc/passwd"},
    )
    after = sbom(
        {**os, "version": "13"},
        component("pkg:pypi/flask", "3.0.0", licenses=[{"expression": "MIT"}]),
        component("pkg:deb/debian/curl", "7.88", licenses=[{"license": {"name": "curl"}}]),
        component("pkg:npm/left-pad", "1.3.0", hashes=[{"alg": "SHA-256", "content": "b" * 64}]),
        component("pkg:rpm/fedora/zlib", "1.3"),
    )
    # A copy inside another package is not installed.
    vendored = [{"name": "stackbuild:vendored", "value": "true"}]
    assert not compare_sboms(
        before, sbom(*json.loads(before)["components"], component("pkg:pypi/x", "1", properties=vendored))
    ).differs
    drift = compare_sboms(before, after)
    assert told(drift) == (
        ["os debian 12 → debian 13"],
        [
            f"npm left-pad 1.3.0; sha256 {'a' * 12} → 1.3.0; sha256 {'b' * 12} hash",
            "python flask 3.0.0; licence BSD-3-Clause → 3.0.0; licence MIT licence",
            "rpm zlib  → 1.3",
        ],
    )
    assert not compare_sboms(before, before).differs


def test_what_another_tool_does_not_list_is_no_move() -> None:
    properties = [{"name": "stackbuild:gpu-binaries", "value": "sm_80 sm_90"}]
    os: dict[str, Any] = {"type": "operating-system", "name": "debian", "version": "12"}
    ours = sbom(
        {**os, "properties": [{"name": "stackbuild:glibc", "value": "2.36"}]},
        component("pkg:pypi/torch", "2.13.0+cu126", properties=properties),
    )
    theirs = sbom(os, component("pkg:pypi/torch", "2.13.0+cu126"))
    assert not compare_sboms(ours, theirs).differs
    other = ours.replace(b"sm_80 sm_90", b"sm_90")
    (pin,) = compare_sboms(ours, other).pins
    assert (pin.pin, pin.breaking) == ("compute_capabilities torch", True)


NESTED: dict[str, Any] = {"name": "x", "version": "1"}
for _ in range(20):
    NESTED = {"name": "x", "version": "1", "components": [NESTED]}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "does not say that it is CycloneDX"),
        (b'{"spdxVersion": "SPDX-2.3"}', "does not say that it is CycloneDX"),
        (b'{"bomFormat": "CycloneDX"}', "lists no components"),
        (b"[" * 100_000, "not JSON"),
        (sbom(NESTED), "too deeply"),
    ],
)
def test_what_is_no_sbom_is_said(data: bytes, why: str) -> None:
    with pytest.raises(NotJudgedError) as caught:
        sbom_subject(data, "x.json")
    assert caught.value.code == "sbom-unreadable"
    assert why in caught.value.what


class Huge(bytes):
    def __len__(self) -> int:
        return LARGEST + 1


def test_a_huge_document_is_not_parsed() -> None:
    with pytest.raises(NotJudgedError, match="bytes"):
        sbom_subject(Huge(b"{}"), "x.json")


@pytest.mark.parametrize(
    "odd",
    [
        {"name": None, "purl": "pkg:pypi/@1"},
        {"name": 5, "purl": 7, "licenses": "MIT", "hashes": {}, "properties": [1]},
        {
            "purl": "pkg:pypi/x@1",
            "licenses": [{"license": "MIT"}],
            "properties": [{"name": None, "value": 3}],
        },
        {"name": "\ud800", "version": "\ud800", "purl": "pkg:pypi/a@1"},
        "no object",
    ],
)
def test_odd_components_do_no_harm(odd: Any) -> None:
    data = sbom(odd, component("pkg:pypi/flask", "1"))
    drift = compare_sboms(data, sbom())
    assert any(item.name == "flask" for item in drift.packages)
    drift.model_dump_json()


def test_two_platforms_are_not_compared() -> None:
    properties = [{"name": "stackbuild:platform", "value": "linux/arm64"}]
    arm = sbom(metadata={"component": {"name": "i", "properties": properties}})
    with pytest.raises(NotJudgedError) as caught:
        compare_subjects(sbom_subject(arm, "arm"), lock_subject(lock(), PLATFORM))
    assert caught.value.code == "platforms-differ"
