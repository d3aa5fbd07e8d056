"""Properties of the judge that hold for every stack and host of the facts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stackbuild.compat.architecture import coverage
from stackbuild.compat.contents import Contents, Distribution
from stackbuild.compat.judge import HostJudge
from stackbuild.compat.needs import needs
from stackbuild.compat.offer import described_offer
from stackbuild.compat.subject import HostOffer, ImageNeeds
from stackbuild.compat.versions import parse_compute_capability
from stackbuild.facts.tables import Facts
from stackbuild.findings import Verdict

FACTS = Facts()
JUDGE = HostJudge(FACTS)
BUILDS = st.sampled_from([f"{row.version}+{row.variant}" for row in FACTS.table("torch_variants").rows])
ORTS = st.none() | st.sampled_from([row.version for row in FACTS.table("onnxruntime_releases").rows])
GPUS = st.sampled_from([row.product for row in FACTS.table("gpus").rows])
DRIVERS = st.sampled_from([row.last_driver for row in FACTS.table("driver_branches").rows if row.last_driver])
ACCEPTS = st.sampled_from([None, "native", "minor", "forward"])
# A newer driver may rightly end a pass: old GPUs are dropped, and a compat library may become the older one.
EXCUSED = {"gpu-dropped-by-driver", "compat-lib-older-than-driver"}


def image(torch: str, ort: str | None, accepts: str | None) -> ImageNeeds:
    listed = [Distribution("torch", torch)] + ([Distribution("onnxruntime-gpu", ort)] if ort else [])
    return needs(Contents("stack", distributions=tuple(listed)), FACTS, accepts)  # type: ignore[arg-type]


def failing(stack: ImageNeeds, host: HostOffer) -> set[str]:
    return {finding.code for finding in JUDGE.judge(stack, host) if finding.verdict is Verdict.FAIL}


@settings(max_examples=300)
@given(BUILDS, ORTS, GPUS, st.tuples(DRIVERS, DRIVERS), ACCEPTS)
def test_a_newer_driver_never_turns_a_pass_into_a_failure(
    torch: str, ort: str | None, gpu: str, drivers: tuple[str, str], accepts: str | None
) -> None:
    older, newer = sorted(drivers, key=lambda text: [int(part) for part in text.split(".")])
    stack = image(torch, ort, accepts)
    if not failing(stack, described_offer(older, [gpu], FACTS)):
        assert failing(stack, described_offer(newer, [gpu], FACTS)) <= EXCUSED


@settings(max_examples=300)
@given(BUILDS, ORTS, st.lists(GPUS, min_size=1, max_size=3), GPUS, DRIVERS, ACCEPTS)
def test_one_more_gpu_never_turns_a_failure_into_a_pass(
    torch: str, ort: str | None, gpus: list[str], another: str, driver: str, accepts: str | None
) -> None:
    stack = image(torch, ort, accepts)
    if failing(stack, described_offer(driver, gpus, FACTS)):
        assert failing(stack, described_offer(driver, [*gpus, another], FACTS))


@given(
    st.lists(st.sampled_from(["sm_50", "sm_75", "sm_80", "sm_86", "sm_90a", "sm_100f", "sm_120"]), max_size=4)
)
def test_more_cubins_never_cover_less(architectures: list[str]) -> None:
    for row in FACTS.table("architectures").rows:
        device = parse_compute_capability(row.compute_capability)
        alone = [coverage([name], (), device).how for name in architectures]
        assert (coverage(architectures, (), device).how == "cubin") is ("cubin" in alone)
