"""Pin list, labels, tags, and what inspect makes of them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stackbuild.annotate.inspect import inspect_image
from stackbuild.annotate.labels import PINS_LABEL, image_labels, read_pins_label
from stackbuild.annotate.pin_list import PinList, pin_list
from stackbuild.annotate.tags import content_hash, image_tags, image_version
from stackbuild.errors import NotJudgedError
from stackbuild.lock.model import LockedWheel, PlatformLock
from stackbuild.spec.model import StackSpec

LOCK, FILES = "1" * 64, "2" * 64
A, B, C, D = (f"sha256:{letter * 64}" for letter in "abcd")


def spec(**keys: Any) -> StackSpec:
    base = {"image": "nvidia/cuda", "tag": "13.0.3-base-ubuntu24.04"}
    return StackSpec.model_validate(
        {"schema": 1, "name": "torch-cu130", "base": base, "python": "3.12", **keys}
    )


def wheel(name: str, version: str) -> LockedWheel:
    return LockedWheel(
        name=name,
        version=version,
        index="default",
        file=f"{name}-{version}-cp312-cp312-manylinux_2_28_x86_64.whl",
        sha256="e" * 64,
        size=1,
        group="other",
    )


def platform(*wheels: LockedWheel, environment: list[str] | None = None, **keys: Any) -> PlatformLock:
    base = {
        "kind": "image",
        "image": "nvidia/cuda",
        "tag": "13.0.3-base-ubuntu24.04",
        "index-digest": A,
        "platform-digest": B,
        "config-digest": C,
        "diff-ids": [D],
        "config": {"config": {"Env": environment or []}},
        "created": "2026-01-02T03:04:05Z",
    }
    values = {
        "base": base,
        "os": {"id": "ubuntu", "version-id": "24.04", "glibc": "2.39"},
        "python": {"version": "3.12.3", "executable": "/usr/bin/python3.12", "tag": "cp312"},
        "wheels": wheels,
        "created": "2026-01-02T03:04:05Z",
    }
    return PlatformLock.model_validate(values | keys)


CU130 = (
    wheel("nvidia-cuda-runtime", "13.0.96"),
    wheel("nvidia-cudnn-cu13", "9.24.0.43"),
    wheel("nvidia-nccl-cu13", "2.30.7"),
    wheel("onnxruntime-gpu", "1.31.1"),
    wheel("tensorrt-cu13-libs", "10.14.1"),
    wheel("torch", "2.14.1+cu130"),
)


def pins(*wheels: LockedWheel, files: str = FILES, **keys: Any) -> PinList:
    return pin_list(spec(), platform(*wheels, **keys), files, lock_sha256=LOCK)


def test_the_pin_list_of_a_cuda_stack() -> None:
    found = pins(*CU130, environment=["CUDA_VERSION=13.0.3"])
    assert found.os == "ubuntu 24.04"
    assert (found.base.name, found.base.digest) == ("nvidia/cuda:13.0.3-base-ubuntu24.04", A)
    assert (found.glibc, found.python) == ("2.39", "3.12.3")
    assert (found.cuda, found.cudnn, found.nccl) == ("13.0.96", "9.24.0.43", "2.30.7")
    assert (found.torch, found.torch_variant) == ("2.14.1", "cu130")
    assert (found.onnxruntime_package, found.onnxruntime) == ("onnxruntime-gpu", "1.31.1")
    assert found.tensorrt == "10.14.1"
    assert found.driver_floor is not None
    assert (found.driver_floor.version, found.driver_floor.cuda_major) == ("580.65.06", 13)
    assert "cuda-toolkit-release-notes" in found.driver_floor.source
    assert "sm_90" in found.compute_capabilities["torch"]
    assert "sm_89" in found.compute_capabilities["onnxruntime-gpu"]


def test_cuda_12_wheels_carry_the_suffix() -> None:
    found = pins(wheel("nvidia-cuda-runtime-cu12", "12.6.77"), wheel("torch", "2.13.0+cu126"))
    assert (found.cuda, found.torch_variant) == ("12.6.77", "cu126")
    assert found.driver_floor is not None
    assert found.driver_floor.version == "525.60.13"


def test_without_cuda_wheels_the_variant_then_the_base_says_the_runtime() -> None:
    assert pins(wheel("torch", "2.9.1+cu128")).cuda == "12.8"
    assert pins(environment=["CUDA_VERSION=12.8.1", "NCCL_VERSION=2.25.1-1"]).cuda == "12.8.1"
    plain = pins(wheel("torch", "2.13.0+cpu"))
    assert (plain.cuda, plain.driver_floor, plain.torch_variant) == (None, None, "cpu")


def test_the_default_indexs_torch_has_the_variant_that_the_facts_name() -> None:
    assert pins(wheel("torch", "2.13.0")).torch_variant == "cu130"


def test_tags_come_from_the_content() -> None:
    found = pins(*CU130)
    version = f"2.14.1-cu130-py312-{content_hash(found)[:12]}"
    assert image_tags(found) == (f"torch-cu130:{version}", "torch-cu130:latest")
    assert content_hash(found) != content_hash(pins(*CU130, files="3" * 64))
    assert content_hash(found) == content_hash(pins(files=FILES))


@pytest.mark.parametrize(
    "keys",
    [
        {"summary": "For the fleet"},
        {"image": {"env": {"A": "1"}}},
        {"image": {"cmd": ["python"]}},
        {"image": {"user": {"name": "app", "uid": 1001}}},
        {"image": {"labels": {"team": "vision"}}},
    ],
)
def test_a_version_never_names_another_image(keys: dict[str, Any]) -> None:
    def version(**keys: Any) -> str:
        return image_version(pin_list(spec(**keys), platform(*CU130), FILES, lock_sha256=LOCK))

    assert version(**keys) != version()
    assert version(**keys) == version(**keys)
    assert version(verify={"shm-size": "1g"}) == version(), "what is only judged by changes no image"


@pytest.mark.parametrize(
    ("wheels", "keys", "start"),
    [
        ((), {}, "py312-"),
        ((), {"python": None}, ""),
        ((wheel("torch", "2.15.0.dev20260530+rocm6.4"),), {}, "2.15.0.dev20260530-rocm6.4-py312-"),
        ((wheel("torch", "2.9.1+git_abc"),), {}, "2.9.1-git.abc-py312-"),
    ],
)
def test_tags_keep_to_their_grammar(wheels: tuple[LockedWheel, ...], keys: Any, start: str) -> None:
    tag = image_tags(pins(*wheels, **keys))[0].split(":")[1]
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", tag)
    assert re.fullmatch(re.escape(start) + "[0-9a-f]{12}", tag)


def labels(diff_ids: list[str], **keys: Any) -> dict[str, str]:
    return image_labels(spec(**keys), pins(*CU130), diff_ids, created="2026-01-02T03:04:05Z")


def test_labels_say_what_oci_defines_and_what_is_pinned() -> None:
    found = labels([D, C], summary="For the fleet")
    oci = {
        key.removeprefix("org.opencontainers.image."): value
        for key, value in found.items()
        if key != PINS_LABEL
    }
    assert oci == {
        "title": "torch-cu130",
        "description": "For the fleet",
        "version": image_tags(pins(*CU130))[0].split(":")[1],
        "revision": content_hash(pins(*CU130)),
        "source": "stacks/torch-cu130.yaml",
        "base.name": "docker.io/nvidia/cuda:13.0.3-base-ubuntu24.04",
        "base.digest": A,
        "created": "2026-01-02T03:04:05Z",
    }
    assert list(found) == sorted(found)
    document = json.loads(found[PINS_LABEL])
    assert document["diff-ids"] == [D, C]
    assert document["pins"]["driver-floor"]["version"] == "580.65.06"
    assert document["pins"]["lock-sha256"] == LOCK
    assert read_pins_label(found, "x").pins == pins(*CU130)
    assert found == labels([D, C], summary="For the fleet")


def test_the_specs_own_labels_win_over_ocis_only() -> None:
    source = "org.opencontainers.image.source"
    found = labels([D], image={"labels": {source: "https://git.example/stacks", "team": "vision"}})
    assert (found[source], found["team"]) == ("https://git.example/stacks", "vision")


def test_inspect_tells_the_stack_from_what_was_built_on_it() -> None:
    exact = inspect_image("a:1", labels([D, C]), [D, C])
    assert exact.relation == "exact"
    assert exact.pins == pins(*CU130)
    derived = inspect_image("a:1", labels([D, C]), [D, C, A, B])
    assert (derived.relation, derived.layers_on_top) == ("derived", 2)
    assert derived.pins is None
    assert derived.derived_from == pins(*CU130)
    assert "derived from stack torch-cu130: 2 layers on top" in derived.statement
    for present in ([D], [C, D], [A], [], [D, A]):
        different = inspect_image("a:1", labels([D, C]), present)
        assert (different.relation, different.pins, different.derived_from) == ("different", None, None)
    unrecorded = inspect_image("a:1", labels([]), [D])
    assert unrecorded.relation == "unrecorded"
    assert "cannot be told" in unrecorded.statement


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({}, "no-pin-list"),
        ({PINS_LABEL: "not json"}, "pin-list-unreadable"),
        ({PINS_LABEL: "[]"}, "pin-list-unreadable"),
        ({PINS_LABEL: '{"schema": 1, "pins": {"stack": "x"}}'}, "pin-list-unreadable"),
    ],
)
def test_images_without_a_readable_pin_list_are_a_sentence(found: dict[str, str], code: str) -> None:
    with pytest.raises(NotJudgedError) as caught:
        inspect_image("other:1", found, [A])
    assert caught.value.code == code
    assert str(caught.value).startswith("other:1: ")


def test_a_label_of_a_later_schema_is_not_guessed_at() -> None:
    later = json.loads(labels([D])[PINS_LABEL]) | {"schema": 2, "new-key": 1}
    with pytest.raises(NotJudgedError, match="schema 2"):
        inspect_image("a:1", {PINS_LABEL: json.dumps(later)}, [D])
    same = later | {"schema": 1}
    assert inspect_image("a:1", {PINS_LABEL: json.dumps(same)}, [D]).relation == "exact"
