"""Judges the frozen stack against production's."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.frozen_stack import FrozenStack
from stackbuild.verification.judge.findings import finding

CODE = "stack-differs"


def judge_stack(stack: FrozenStack, must_match: Mapping[str, str]) -> tuple[Finding, ...]:
    """Gate ``stack-differs``: what must be as in production is; one finding a field, none where nothing must be.

    A field that nobody could tell here is an ERROR: it may be the same.

    Args:
        stack: As it was here.
        must_match: Field → its value in production.
    """
    return tuple(_judged(name, stack.field(name), required) for name, required in must_match.items())


def _judged(name: str, here: str, required: str) -> Finding:
    if not here:
        what = f"nobody could tell {name} here, and it must be as in production: {required}"
        return finding(CODE, Verdict.ERROR, what, subject=name, required=required)
    if here == required:
        what = f"{name} is as in production: {here}"
        return finding(CODE, Verdict.PASS, what, subject=name, measured=here, required=required)
    what = f"{name} is {here} here and {required} in production"
    return finding(CODE, Verdict.FAIL, what, subject=name, measured=here, required=required)
