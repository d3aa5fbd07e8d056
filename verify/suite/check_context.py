"""What a stack's own check is given: where it runs, and how it says what it found."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

VERDICTS = ("PASS", "WARN", "FAIL", "SKIP")


class CheckContext(NamedTuple):
    """Given to ``check(context)``.

    ``device`` is the intended one, ``cpu`` or ``cuda``; ``folder`` may be written to; ``seed`` is for random
    numbers; ``batch`` is the spec's ``verify.batch``.
    """

    device: str
    folder: str
    seed: int
    batch: int

    def passed(self, summary: str, **evidence: str) -> Dict[str, Any]:
        """A finding that all is well; ``evidence`` may be ``subject``, ``measured``, ``required``, ``next_step``."""
        return _made("PASS", summary, evidence)

    def failed(self, summary: str, **evidence: str) -> Dict[str, Any]:
        """A finding that the image is wrong."""
        return _made("FAIL", summary, evidence)

    def finding(self, verdict: str, summary: str, **evidence: str) -> Dict[str, Any]:
        """A finding of any verdict: PASS, WARN, FAIL, or SKIP for what does not apply here."""
        return _made(verdict, summary, evidence)


def _made(verdict: str, summary: str, evidence: Dict[str, str]) -> Dict[str, Any]:
    if verdict not in VERDICTS:
        raise ValueError("the verdict of a check is one of %s, not %r" % (", ".join(VERDICTS), verdict))
    unknown = sorted(set(evidence) - {"subject", "measured", "required", "next_step"})
    if unknown:
        raise TypeError("a finding has no %s" % ", ".join(unknown))
    return {
        "verdict": verdict,
        "summary": str(summary),
        **{key: str(value) for key, value in evidence.items()},
    }
