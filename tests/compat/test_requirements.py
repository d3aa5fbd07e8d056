"""NVIDIA_REQUIRE_*: the evaluator against a brute-force one, and the reason it names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stackbuild.compat.offer import described_offer
from stackbuild.compat.requirements import judge_requirement, parse_requirement, satisfied
from stackbuild.facts.tables import Facts
from stackbuild.findings import Verdict
from stackbuild.host.model import Host, HostGpu
from stackbuild.host.offer import host_offer

FACTS = Facts()
NUMBERS = st.sampled_from(["0", "1", "2", "10"])
VERSIONS = st.lists(NUMBERS, min_size=1, max_size=3).map(".".join)
OPERATORS = st.sampled_from(["!=", "<=", ">=", "=", "<", ">"])
TERMS = st.one_of(
    st.tuples(st.sampled_from(["cuda", "driver", "arch"]), OPERATORS, VERSIONS),
    st.tuples(st.just("brand"), st.sampled_from(["=", "!="]), st.sampled_from(["tesla", "geforce"])),
    st.tuples(st.just("platform"), OPERATORS, VERSIONS),
)
EXPRESSIONS = st.lists(st.lists(TERMS, min_size=1, max_size=3), max_size=3)
HOSTS = st.fixed_dictionaries(
    {
        "cuda": VERSIONS,
        "driver": VERSIONS,
        "arch": VERSIONS,
        "brand": st.sampled_from(["tesla", "geforce", "grid"]),
    }
)


def brute_force(expression: list[list[tuple[str, str, str]]], host: dict[str, str]) -> bool:
    """The rule said another way: compare fractions of a large base instead of tuples."""

    def weight(text: str) -> float:
        return sum(int(part) * 1000.0 ** (4 - index) for index, part in enumerate(text.split(".")))

    def true(name: str, operator: str, value: str) -> bool:
        if name == "platform":
            return True
        if name == "brand":
            return (host[name] == value) is (operator == "=")
        left, right = weight(host[name]), weight(value)
        python = {"=": "=="}.get(operator, operator)
        return bool(eval(f"left {python} right", {"left": left, "right": right}))

    return not expression or any(all(true(*term) for term in conjunction) for conjunction in expression)


@given(EXPRESSIONS, HOSTS)
def test_agrees_with_a_brute_force_evaluator(
    expression: list[list[tuple[str, str, str]]], host: dict[str, str]
) -> None:
    text = " ".join(",".join("".join(term) for term in conjunction) for conjunction in expression)
    assert satisfied(parse_requirement(text), host) is brute_force(expression, host)


def full_requirement(cuda: str) -> str:
    return next(row.value for row in FACTS.table("cuda_image_requirements").rows if row.cuda == cuda)


def test_a_branch_the_image_allows_by_brand_is_enough() -> None:
    host = host_offer(Host(driver="550.163.01", gpus=(HostGpu(name="NVIDIA L4", brand="nvidia"),)), FACTS)
    assert judge_requirement("NVIDIA_REQUIRE_CUDA", full_requirement("12.8"), host).verdict is Verdict.PASS


def test_geforce_is_not_among_the_brands_and_the_reason_is_cuda_not_the_last_clause() -> None:
    host = described_offer("550.163.01", ["RTX 4090"], FACTS)
    finding = judge_requirement("NVIDIA_REQUIRE_CUDA", full_requirement("12.8"), host)
    assert (finding.verdict, finding.code, finding.required) == (Verdict.FAIL, "driver-too-old", "cuda>=12.8")
    assert "cloudgaming" not in finding.summary
    assert finding.details["minor_compat_possible"] is True


def test_every_gpu_must_meet_it() -> None:
    mixed = host_offer(
        Host(
            driver="550.163.01",
            gpus=(
                HostGpu(name="NVIDIA L4", brand="nvidia"),
                HostGpu(name="GeForce RTX 4090", brand="geforce"),
            ),
        ),
        FACTS,
    )
    assert judge_requirement("NVIDIA_REQUIRE_CUDA", full_requirement("12.8"), mixed).verdict is Verdict.FAIL


def test_arch_alone_is_another_code() -> None:
    host = described_offer("580.95.05", ["T4"], FACTS)
    finding = judge_requirement("NVIDIA_REQUIRE_ARCH", "arch>=8.0", host)
    assert (finding.verdict, finding.code, finding.required) == (
        Verdict.FAIL,
        "requirement-not-met",
        "arch>=8.0",
    )


def test_malformed_is_named() -> None:
    host = described_offer("580.95.05", ["T4"], FACTS)
    finding = judge_requirement("NVIDIA_REQUIRE_CUDA", "cuda=>12", host)
    assert (finding.verdict, finding.code) == (Verdict.FAIL, "requirement-malformed")


def test_cdi_host_is_told_that_nobody_else_checks() -> None:
    host = host_offer(Host(driver="580.95.05", injection="cdi", gpus=(HostGpu(name="L4"),)), FACTS)
    finding = judge_requirement("NVIDIA_REQUIRE_CUDA", "cuda>=13.0", host)
    assert finding.verdict is Verdict.PASS
    assert finding.details["evaluated_by_toolkit"] is False
    assert "CDI" in finding.summary


def test_an_unknown_brand_that_would_decide_is_no_failure() -> None:
    host = host_offer(Host(driver="550.163.01"), FACTS)
    finding = judge_requirement("NVIDIA_REQUIRE_CUDA", full_requirement("12.8"), host)
    assert finding.verdict is Verdict.SKIP
    assert "brand" in finding.summary


def test_an_unknown_brand_that_cannot_help_is_a_failure() -> None:
    host = host_offer(Host(driver="520.61.05"), FACTS)
    finding = judge_requirement("NVIDIA_REQUIRE_CUDA", full_requirement("12.8"), host)
    assert (finding.verdict, finding.required) == (Verdict.FAIL, "cuda>=12.8")
