"""Errors of results by precision against the stack's tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stackbuild.verification.promise import Promise

# Largest error of one element relative to the largest element of a 256 × 256 product of standard normal
# matrices. Rounding gives about 4e-7 in fp32, half a unit in the last place of the result in fp16
# (2^-11) and bf16 (2^-8); the limits leave a factor of about four, TF32 (10-bit mantissa) is told from fp32.
DEFAULT_TOLERANCE: Mapping[str, float] = {
    "fp64": 1e-12,
    "fp32": 1e-5,
    "tf32": 2e-3,
    "fp16": 2e-3,
    "bf16": 1.6e-2,
}


def tolerance_of(promise: Promise) -> Mapping[str, float]:
    """Largest relative error by precision: the stack's own where it has one."""
    return {**DEFAULT_TOLERANCE, **promise.tolerance}


def wrong_results(promise: Promise, by_precision: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is wrong with results that were measured in several precisions; empty when nothing is.

    A precision that the device lacks is wrong only where the stack names it, and fp32 everywhere.
    """
    tolerance = tolerance_of(promise)
    wrong: list[str] = []
    for precision, result in by_precision.items():
        if "unsupported" in result:
            if precision in promise.tolerance or precision == "fp32":
                wrong.append(f"{precision} is not supported: {result['unsupported']}")
        elif result["device"] != promise.device:
            wrong.append(f"{precision} was computed on {result['device']}")
        elif not result["finite"]:
            wrong.append(f"{precision} has values that are not finite")
        elif result["error"] > tolerance[precision]:
            wrong.append(
                f"{precision} is off by {result['error']:.1e}, allowed is {tolerance[precision]:.1e}"
            )
    return wrong


def described_errors(by_precision: Mapping[str, Mapping[str, Any]]) -> str:
    """The errors for a person."""
    return ", ".join(
        f"{precision} {result['error']:.1e}"
        for precision, result in by_precision.items()
        if result.get("error") is not None
    )


def described_limits(promise: Promise, by_precision: Mapping[str, Mapping[str, Any]]) -> str:
    """The limits for a person."""
    tolerance = tolerance_of(promise)
    return ", ".join(f"{precision} {tolerance[precision]:.1e}" for precision in by_precision)
