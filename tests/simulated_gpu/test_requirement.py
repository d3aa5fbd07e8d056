"""The simulated hook's reading of NVIDIA_REQUIRE_*, and the product's: two implementations, one answer."""

from __future__ import annotations

import pytest

from stackbuild.compat.requirements import holds, parse_requirement
from tests.simulated_gpu.requirement import RequirementError, require
from tests.support.nvidia_config import require_cuda

L4 = {"cuda": "12.2", "driver": "535.216.03", "arch": "8.9", "brand": "nvidia"}
_DRIVER_TOO_OLD = ", please update your driver to a newer version, or use an earlier cuda container"

MET = [
    "",
    "cuda>=12.2",
    "cuda>=12.2.0",
    "cuda>=9.0",
    "cuda<12.10",
    "driver>=535,driver<536",
    "cuda>=13.0 brand=NVIDIA,driver>=535,driver<536",
    "arch>=8.0 cuda>=99",
    "brand!=geforce",
    "driver!=535",
    require_cuda("12.8"),
]
NOT_MET = [
    ("cuda>=12.4", f"unsatisfied condition: cuda>=12.4{_DRIVER_TOO_OLD}"),
    ("cuda>=12.4 brand=tesla,driver>=535", f"unsatisfied condition: cuda>=12.4{_DRIVER_TOO_OLD}"),
    ("driver>=550", "unsatisfied condition: driver>=550"),
    ("brand=tesla,driver>=535", "unsatisfied condition: brand=tesla,driver>=535"),
    ("arch<8.9", "unsatisfied condition: arch<8.9"),
]


def met_by_the_product(requirement: str) -> bool:
    alternatives = parse_requirement(requirement)
    return not alternatives or any(
        all(holds(term, L4) for term in alternative) for alternative in alternatives
    )


@pytest.mark.parametrize("requirement", MET)
def test_a_requirement_that_is_met(requirement: str) -> None:
    require([requirement], L4)
    assert met_by_the_product(requirement)


@pytest.mark.parametrize(("requirement", "message"), NOT_MET)
def test_a_requirement_that_is_not_met_is_told_by_its_first_alternative(
    requirement: str, message: str
) -> None:
    with pytest.raises(RequirementError) as caught:
        require([requirement], L4)
    assert str(caught.value) == message
    assert not met_by_the_product(requirement)


def test_all_variables_must_be_met() -> None:
    with pytest.raises(RequirementError, match=r"driver>=600"):
        require(["cuda>=12.0", "driver>=600"], L4)


def test_without_a_visible_gpu_its_properties_are_taken_to_fit() -> None:
    require(["brand=geforce,arch>=12.0"], {"cuda": "12.2", "driver": "535.216.03"})


@pytest.mark.parametrize("requirement", ["cuda", "cuda=>12", "cuda>=twelve", "kernel>=5", "brand>=tesla"])
def test_what_is_no_comparison_is_an_invalid_expression(requirement: str) -> None:
    with pytest.raises(RequirementError, match=r"^invalid expression$"):
        require([requirement], L4)
