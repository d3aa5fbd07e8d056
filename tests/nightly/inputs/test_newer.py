"""What is newer within the spec's ranges, and the judge's answer on taking it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.nightly.model import NewerVersion
from stackbuild.resolution.wheels.locking import WheelsResult
from tests.nightly.inputs.scene import IMAGE, TAG, Scene, one, passed, scene, told
from tests.support.loopback import Misbehaviour

_LINUX = "py3-none-manylinux_2_27_x86_64"
CUDA_12 = ("nvidia-cublas-cu12", "nvidia-cudnn-cu12")
CUDA_13 = ("nvidia-cublas", "nvidia-cudnn-cu13")


@pytest.fixture
def night(tmp_path: Path, resolved: dict[str, WheelsResult]) -> Iterator[Scene]:
    """A stack for CUDA 12.6 whose ranges are open: onnxruntime-gpu 1.26 is the last release for CUDA 12."""
    with scene(tmp_path, resolved) as made:
        for name, version in zip(CUDA_12, ("12.6.4.1", "9.10.2.21"), strict=True):
            made.wheel(name, version, tag=_LINUX)
        onnxruntime(made, "1.26.0", CUDA_12)
        made.wheel("numpy", "2.3.5", tag=_LINUX)
        made.deb("tool", "1.0-1")
        made.lock_now(
            "numpy>=2.3,<3",
            "onnxruntime-gpu>=1.26",
            target={"gpus": ["A100"], "driver": ">=570.124", "compatibility": "minor"},
        )
        yield made


def onnxruntime(night: Scene, version: str, libraries: tuple[str, ...]) -> None:
    night.wheel(
        "onnxruntime-gpu",
        version,
        "numpy",
        *(f'{name}; extra == "{extra}"' for name, extra in zip(libraries, ("cuda", "cudnn"), strict=True)),
        extras=("cuda", "cudnn"),
        tag="cp312-cp312-manylinux_2_28_x86_64",
    )


def test_nothing_newer(night: Scene) -> None:
    newer = night.newer()
    assert newer.versions == ()
    assert passed(newer.findings) == {"t": "Nothing is newer within the spec's ranges."}


def test_the_judge_has_nothing_against_it(night: Scene) -> None:
    night.wheel("numpy", "2.4.0", tag=_LINUX)
    night.wheel("numpy", "3.0.0", tag=_LINUX)  # out of range
    night.deb("tool", "1.0-2")
    newer = night.newer()
    assert [(v.kind, v.name, v.locked, v.newer, v.verdict) for v in newer.versions] == [
        ("deb", "tool", "1.0-1", "1.0-2", "PASS"),
        ("python", "numpy", "2.3.5", "2.4.0", "PASS"),
    ]
    assert newer.versions[1].reason == "no gate is worse than with what is locked"
    assert told(newer.findings) == []
    assert passed(newer.findings) == {"t": "Newer within the spec's ranges: numpy 2.4.0, 1 deb."}


def test_the_judge_would_not_take_it_and_blames_no_other(night: Scene) -> None:
    for name, version in zip(CUDA_13, ("13.0.2.14", "9.13.0.50"), strict=True):
        night.wheel(name, version, tag=_LINUX)
    onnxruntime(night, "1.31.1", CUDA_13)
    night.wheel("numpy", "2.4.0", tag=_LINUX)
    newer = night.newer()
    answers = {version.name: version for version in newer.versions}
    assert sorted(answers) == ["numpy", "onnxruntime-gpu"]
    assert answers["numpy"].verdict == "PASS"
    refused = answers["onnxruntime-gpu"]
    assert (refused.kind, refused.newer, refused.verdict) == ("onnxruntime", "1.31.1", "FAIL")
    assert "CUDA 13" in refused.reason
    assert told(newer.findings) == [("WARN", "newer-version", "onnxruntime-gpu")]
    assert "bound the range" in newer.findings[0].next_step
    assert passed(newer.findings)["t"] == "Newer within the spec's ranges: numpy 2.4.0."


def test_a_newer_base_is_judged_by_its_own_configuration(night: Scene) -> None:
    night.image(created="2026-11-29T00:00:00Z", CUDA_VERSION="13.0.3", NVIDIA_REQUIRE_CUDA="cuda>=13.0")
    (version,) = night.newer().versions
    assert (version.kind, version.name, version.verdict) == ("base", f"{IMAGE}:{TAG}", "FAIL")
    assert version.locked.startswith("sha256:")
    assert version.newer != version.locked


def test_without_a_target_the_answer_says_so(night: Scene) -> None:
    night.lock_now("numpy>=2.3,<3")
    night.wheel("numpy", "2.4.0", tag=_LINUX)
    (version,) = night.newer().versions
    assert version.reason.endswith("the spec names no target to judge it on")


def test_a_base_pinned_by_digest_has_nothing_newer(night: Scene) -> None:
    assert night.lock is not None
    base = night.lock.platforms["linux/amd64"].base
    assert base.kind == "image"
    night.lock_now("numpy>=2.3,<3", base={"image": IMAGE, "tag": TAG, "digest": base.index_digest})
    night.image(created="2026-11-29T00:00:00Z")
    newer = night.newer()
    assert newer.versions == ()
    assert told(newer.findings) == []  # that the tag moved is said by the inputs


def test_what_can_no_longer_be_resolved_is_a_warning(night: Scene) -> None:
    night.wheel("numpy", "2.4.0", "missing>=1", tag=_LINUX)
    (night.root / "default" / "numpy-2.3.5-py3-none-manylinux_2_27_x86_64.whl").unlink()
    newer = night.newer()
    assert newer.versions == ()
    assert told(newer.findings) == [("WARN", "unsolvable", "wheels for linux/amd64")]
    finding = one(newer.findings, "unsolvable")
    assert finding.summary.startswith("A lock made today with --upgrade would fail: ")
    assert "missing" in finding.measured
    assert "as far as could be asked" in passed(newer.findings)["t"]


def test_an_index_that_limits_is_no_answer(night: Scene) -> None:
    night.indexes.misbehave("/simple/", Misbehaviour(status=429, headers={"Retry-After": "0"}))
    night.deb("tool", "1.0-2")
    newer = night.newer()
    assert told(newer.findings) == [("ERROR", "index-rate-limited", "wheels for linux/amd64")]
    assert [version.name for version in newer.versions] == ["tool"]


def test_no_file_is_fetched_to_be_hashed(night: Scene) -> None:
    night.wheel("numpy", "2.4.0", tag=_LINUX)
    before = len(night.indexes.requested(r"/files/"))
    assert isinstance(night.newer().versions[0], NewerVersion)
    fetched = night.indexes.requested(r"/files/")[before:]
    assert [request.path for request in fetched if "Range" not in request.headers] == []


@pytest.mark.parametrize(("newest", "verdict"), [("2.14.1", "PASS"), ("2.99.0", "WARN")])
def test_a_framework_within_its_range(
    newest: str, verdict: str, tmp_path: Path, resolved: dict[str, WheelsResult]
) -> None:
    """A release that the facts do not know yet is judged as far as it goes, and not called good."""
    with scene(tmp_path, resolved, indexes=("pytorch-cu130",)) as night:
        night.wheel("torch", "2.13.0+cu130", index="pytorch-cu130", tag=_LINUX)
        night.lock_now(
            "torch>=2.13",
            frameworks={"torch": {"variant": "cu130"}},
            target={"gpus": ["H200"], "driver": ">=580.65"},
        )
        night.wheel("torch", f"{newest}+cu130", index="pytorch-cu130", tag=_LINUX)
        newer = night.newer()
    (version,) = newer.versions
    assert (version.kind, version.newer, version.verdict) == ("torch", f"{newest}+cu130", verdict)
    assert ("is not in the facts" in version.reason) is (verdict == "WARN")


def test_no_answer_of_an_index_is_no_pass(night: Scene) -> None:
    night.indexes.misbehave("/default/", Misbehaviour(status=500))
    newer = night.newer()
    assert newer.versions == ()
    assert told(newer.findings) == [
        ("ERROR", "index-unreachable", "wheels for linux/amd64"),
        ("SKIP", "newer-version", "t"),
    ]
    assert one(newer.findings, "newer-version").summary == (
        "Whether anything is newer is not known: wheels for linux/amd64 could not be asked for."
    )
