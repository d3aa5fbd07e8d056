"""One of the stack's own checks: a file with a function ``check(context)`` that yields findings."""

from __future__ import annotations

import importlib.util
from typing import Any, Dict

from suite.check_context import CheckContext

FUNCTION = "check"
MOST_FINDINGS = 1000


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Run the check and collect what it yields. Options: ``file``, and the fields of the context."""
    spec = importlib.util.spec_from_file_location("stack_check", options["file"])
    if spec is None or spec.loader is None:
        raise ImportError("%s is no Python file" % options["file"])
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    context = CheckContext(
        device=options["device"],
        folder=options["results_folder"],
        seed=int(options["seed"]),
        batch=int(options["batch"]),
    )
    findings = []
    for found in getattr(source, FUNCTION)(context) or ():
        if not isinstance(found, dict) or "verdict" not in found or "summary" not in found:
            raise TypeError("%s must yield findings made by its context, it yielded %r" % (FUNCTION, found))
        findings.append(found)
        if len(findings) > MOST_FINDINGS:
            raise ValueError("a check yields at most %d findings" % MOST_FINDINGS)
    return {"findings": findings}
