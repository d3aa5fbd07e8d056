"""What a Dockerfile asks of its builder, seen before the context is sent (case F03)."""

from __future__ import annotations

import re

from stackbuild.findings import Finding, Verdict

# Docker documentation, "Dockerfile reference" and "Custom Dockerfile syntax": what needs BuildKit.
_SYNTAX = re.compile(r"^#\s*syntax\s*=", re.IGNORECASE)
_BUILDKIT_ONLY = (
    (re.compile(r"^RUN\s+(?:--\S+\s+)*--(mount|network|security|device)\b", re.IGNORECASE), "RUN --{0}"),
    (
        re.compile(
            r"^(?:COPY|ADD)\s+(?:--\S+\s+)*--(link|chmod|parents|exclude|checksum|keep-git-dir|unpack)\b",
            re.IGNORECASE,
        ),
        "COPY or ADD --{0}",
    ),
    (re.compile(r"^(?:RUN|COPY|ADD)\b.*<<-?[\"']?([A-Za-z_]\w*)", re.IGNORECASE), "the here-document {0}"),
)


def lint_for_classic_builder(dockerfile: str) -> tuple[Finding, ...]:
    """Find what the classic builder, the only one docker-py reaches, cannot do.

    DOCKER_BUILDKIT=1 changes nothing here: only the command line reads it.

    Args:
        dockerfile: The Dockerfile's text.

    Returns:
        One FAIL with the code ``needs-buildkit`` for each place; nothing when all is well.
    """
    findings = []
    in_head = True
    for number, line in _logical_lines(dockerfile):
        if in_head and _SYNTAX.match(line):
            findings.append(_finding(number, "a '# syntax=' directive"))
        # Directives count only before the first instruction, comment or empty line.
        in_head = in_head and bool(re.match(r"^#\s*[a-z]+\s*=", line, re.IGNORECASE))
        for pattern, name in _BUILDKIT_ONLY:
            match = pattern.search(line)
            if match:
                findings.append(_finding(number, name.format(match[1])))
    return tuple(findings)


def _logical_lines(dockerfile: str) -> list[tuple[int, str]]:
    """Instructions with their continuation lines joined, each with its first line's number."""
    lines: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, raw in enumerate(dockerfile.splitlines(), start=1):
        text = raw.strip()
        if pending and text.startswith("#"):
            continue  # comments between continuation lines are dropped
        start = start if pending else number
        if text.endswith("\\") and not text.startswith("#"):
            pending += text[:-1] + " "
            continue
        lines.append((start, pending + text))
        pending = ""
    if pending:
        lines.append((start, pending))
    return lines


def _finding(line: int, what: str) -> Finding:
    return Finding(
        code="needs-buildkit",
        verdict=Verdict.FAIL,
        summary=f"Line {line} uses {what}, which only BuildKit understands.",
        subject=f"Dockerfile:{line}",
        measured=what,
        required="the classic builder's syntax",
        next_step="Take it out, or build with docker buildx instead of the Docker SDK.",
        details={"line": line, "backend": "classic"},
    )
