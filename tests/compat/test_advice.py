"""What would make it run: the oldest driver for an image on given GPUs, and what is said of it."""

from __future__ import annotations

from datetime import date

import pytest

from stackbuild.compat.check import Subject, check
from stackbuild.compat.contents import Contents, Distribution, contents_of_cuda_tag, contents_of_spec
from stackbuild.compat.judge import HostJudge
from stackbuild.compat.needs import needs
from stackbuild.compat.offer import described_offer, named_gpu
from stackbuild.compat.oldest_driver import oldest_driver
from stackbuild.compat.subject import Compatibility, ImageNeeds
from stackbuild.facts.tables import Facts
from stackbuild.findings import Verdict
from stackbuild.site_policy import Policy
from stackbuild.spec.model import StackSpec, Waiver

FACTS = Facts()
TODAY = date(2026, 11, 30)


def cuda_image(tag: str) -> ImageNeeds:
    return needs(contents_of_cuda_tag("image", "nvidia/cuda", tag, FACTS), FACTS)


@pytest.mark.parametrize(
    ("tag", "gpu", "accepts", "driver"),
    [
        # The image's own demand has no alternative for GeForce, so minor-version compatibility does not help.
        ("12.8.1-base-ubuntu24.04", "RTX 4090", "minor", "570.26"),
        # For data-centre cards it allows R535 and others, which the floor of CUDA 12 covers.
        ("12.8.1-base-ubuntu24.04", "H100", "minor", "535.54.03"),
        ("12.8.1-base-ubuntu24.04", "H100", "native", "570.26"),
        # A GPU needs a driver that knows it, whatever the runtime needs.
        ("12.4.1-base-ubuntu22.04", "RTX 5090", "minor", "570.26"),
    ],
)
def test_oldest_driver_of_an_image(tag: str, gpu: str, accepts: Compatibility, driver: str) -> None:
    image = cuda_image(tag)
    assert oldest_driver(image, accepts, FACTS, [named_gpu(gpu, FACTS)]) == driver


def test_without_gpus_no_brand_is_assumed() -> None:
    assert oldest_driver(cuda_image("12.8.1-base-ubuntu24.04"), "minor", FACTS) == "570.26"


def test_an_image_without_cuda_needs_no_driver() -> None:
    assert oldest_driver(ImageNeeds("cpu"), "native", FACTS) is None


@pytest.mark.parametrize(
    "tag", ["11.8.0-base-ubuntu22.04", "12.4.1-base-ubuntu22.04", "12.8.1-base-ubuntu24.04"]
)
@pytest.mark.parametrize("gpu", ["RTX 4090", "A100", "T4", "L40S"])
def test_the_driver_that_is_named_does_serve(tag: str, gpu: str) -> None:
    image = cuda_image(tag)
    driver = oldest_driver(image, "minor", FACTS, [named_gpu(gpu, FACTS)])
    assert driver is not None
    found = HostJudge(FACTS).judge(image, described_offer(driver.removeprefix("R"), [gpu], FACTS))
    assert [finding.code for finding in found if finding.verdict is Verdict.FAIL] == []


def advice(variant: str, driver: str, gpu: str) -> tuple[str, ...]:
    contents = Contents("ours", distributions=(Distribution("torch", variant),), expects_gpu=True)
    hosts = [described_offer(driver, [gpu], FACTS)]
    report = check([Subject(contents, "spec", accepts="native")], hosts, FACTS, Policy(), TODAY)
    return report.cells[0].advice


def test_a_driver_is_advised_where_the_driver_is_the_obstacle() -> None:
    newest, oldest = advice("2.9.1+cu130", "575.57.08", "RTX 4090")
    assert newest.startswith("This host runs torch 2.14.1 (cu126)")
    assert oldest == "The oldest driver that serves this stack here is 580.65.06."


def test_no_driver_is_advised_where_another_would_not_help() -> None:
    (newest,) = advice("2.8.0+cu128", "570.124.06", "GTX 1080")
    assert "(cu126)" in newest


# --- several platforms


def platforms(*waivers: Waiver) -> list[Subject]:
    spec = StackSpec.model_validate(
        {
            "schema": 1,
            "name": "both",
            "base": {"image": "nvidia/cuda", "tag": "12.8.1-base-ubuntu24.04"},
            "python": "3.12",
            "platforms": ["linux/amd64", "linux/arm64"],
            "frameworks": {"onnxruntime-gpu": {"version": "1.24.4"}},
        }
    )
    return [
        Subject(contents_of_spec(spec, FACTS, platform), "spec", waivers=waivers)
        for platform in spec.platforms
    ]


def test_a_stack_of_two_platforms_has_two_rows_that_say_which() -> None:
    report = check(platforms(), [], FACTS, Policy(), TODAY)
    assert [(row.stack, row.platform) for row in report.stacks] == [
        ("both", "linux/amd64"),
        ("both", "linux/arm64"),
    ]


def test_a_waiver_that_one_platform_uses_is_used() -> None:
    waiver = Waiver(code="no-wheel-for-platform", reason="later", owner="maria", until=date(2027, 1, 1))
    report = check(platforms(waiver), [], FACTS, Policy(), TODAY)
    found = {(finding.code, finding.verdict) for finding in report.findings}
    assert ("no-wheel-for-platform", Verdict.WARN) in found
    assert "waiver-unused" not in {code for code, _ in found}


@pytest.mark.parametrize(
    ("code", "match", "unused"),
    [
        ("ort-silent-cpu-fallback", "", False),  # only a verification can say
        ("arch-not-covered", "libfoo.so", False),  # a scan may find that library
        ("arch-not-covered", "", True),
        ("base-wheel-cuda-differ", "nothing", True),
    ],
)
def test_a_check_calls_a_waiver_unused_only_where_it_can_know(code: str, match: str, unused: bool) -> None:
    waiver = Waiver(code=code, match=match, reason="later", owner="maria", until=date(2027, 1, 1))
    report = check(platforms(waiver), [], FACTS, Policy(), TODAY)
    codes = [finding.code for finding in report.findings if finding.verdict is Verdict.FAIL]
    assert ("waiver-unused" in codes) is unused


def test_only_a_base_with_a_compiler_is_warned_of_a_gpu_newer_than_it() -> None:
    host = described_offer("580.65.06", ["12.1"], FACTS)
    judge = HostJudge(FACTS)
    for flavour, warned in (("base", False), ("runtime", False), ("devel", True)):
        found = judge.judge(cuda_image(f"12.8.1-{flavour}-ubuntu24.04"), host)
        assert ("gpu-newer-than-toolkit" in {finding.code for finding in found}) is warned
