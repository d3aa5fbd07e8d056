"""What ``variant: auto`` becomes for a target."""

from __future__ import annotations

import pytest

from stackbuild.compat.variants import resolve_auto_variant
from stackbuild.errors import LockError
from stackbuild.facts.tables import Facts
from stackbuild.spec.model import TargetSpec

FACTS = Facts()


def test_the_newest_that_fits_is_taken_and_newer_ones_are_told_off_with_their_reason() -> None:
    choice = resolve_auto_variant("2.9.1", TargetSpec(gpus=("V100",), driver=">=580.65"), FACTS)
    assert (choice.variant, choice.base_cuda) == ("cu128", "12.9")
    assert choice.told == (
        "variant auto is cu128 for torch 2.9.1; not cu130: "
        "CUDA 13 no longer supports Volta GPUs such as V100 (7.0); the last that does is CUDA 12.x"
    )


def test_where_the_newest_fits_nothing_else_is_told() -> None:
    choice = resolve_auto_variant("2.9.1", TargetSpec(gpus=("H200",), driver=">=580.65"), FACTS)
    assert choice.told == "variant auto is cu130 for torch 2.9.1"


@pytest.mark.parametrize(
    ("torch", "target", "code"),
    [
        ("2.9.1", TargetSpec(), "auto-without-target"),
        ("99.0", TargetSpec(gpus=("H200",)), "channel-not-published"),
        ("2.9.1", TargetSpec(driver=">=470.57.02"), "no-fitting-variant"),
    ],
)
def test_what_cannot_be_resolved_says_why(torch: str, target: TargetSpec, code: str) -> None:
    with pytest.raises(LockError) as caught:
        resolve_auto_variant(torch, target, FACTS)
    assert caught.value.code == code
