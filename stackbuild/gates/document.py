"""Writes ``docs/gates.md`` from the pages: ``python -m stackbuild.gates.document > docs/gates.md``."""

from __future__ import annotations

import sys

from stackbuild.facts.tables import Facts
from stackbuild.gates.pages import gate_areas, gate_pages
from stackbuild.gates.worksheet import worksheet_document

_INTRODUCTION = """\
# Codes

Every finding and every error has a stable code. A gate is one check; its answer, a finding, has a verdict
(PASS, WARN, FAIL, ERROR, SKIP), evidence (measured against required) and a next step. FAIL says that the
spec or the image is wrong, ERROR that the host or the infrastructure kept it from being judged. A failure
that is no gate's answer, such as a lock that is missing, ends the command and carries its code in brackets.

`stackbuild explain CODE` shows the same text. This file is written from `stackbuild/gates/*.json` and
`worksheet.toml` by `python -m stackbuild.gates.document`; the acceptance worksheet is at its end.
"""

# In the order of a stack's life; an area that is not named here comes last.
_AREAS = {
    "spec": ("Spec, site configuration and command line", ""),
    "static": (
        "Static gates: `stackbuild check`",
        "They are judged from spec, lock, image configuration and the facts, without Docker and without a GPU.\n"
        "Those that the runtime gates measure as well are described there.\n",
    ),
    "host": ("Hosts and fleets", ""),
    "lock": ("Locks", ""),
    "registry": ("Image registries", ""),
    "store": ("Store and transfers", ""),
    "build": ("Layers and builds", ""),
    "engine": ("Docker engine and images", ""),
    "scan": (
        "Gates on what is in an image: `stackbuild scan`",
        "They are judged from the image's files, without starting it. Those that the static or the runtime gates\n"
        "judge as well are described there.\n",
    ),
    "runtime": (
        "Runtime gates: `stackbuild verify`",
        """\
They are judged from what the suite measures inside a container of the image. The suite has the standard
library only, runs on the image's own Python (3.9 or newer) as the image's own user, without network, and
starts a process for each gate: one that crashes, hangs, is killed or floods its output is one finding, and
the others go on. An exception or a crash is a FAIL; a gate that was killed for want of memory or gave no
answer in time is an ERROR. A gate that an earlier one makes pointless, or that needs a GPU where none was
reserved, is a SKIP that keeps the report from being complete; a gate with nothing to judge is a SKIP that does not.
""",
    ),
    "elsewhere": (
        "Runs without Docker here, and production: `stackbuild verify --local`, `--emit`, `--collect`",
        "",
    ),
    "publish": ("Publishing and picking", ""),
    "history": ("History of nights", ""),
    "drift": (
        "Drift: `stackbuild diff`",
        "Drift is exit code 6, whatever the verdicts are; a WARN says what differs and why it matters.\n",
    ),
    "nightly": ("Nightly", ""),
    "outcomes": (
        "Outcomes of a night: `stackbuild nightly`",
        "The first word of a stack's line. The code at the line's end says what the outcome comes from.\n",
    ),
    "schedule": ("Jobs of a CI service: `stackbuild matrix`", ""),
}


_FROM_LOGS = """
## Failures in logs: `stackbuild explain TEXT`

`stackbuild explain` recognises these in a pasted error or log, and those above that other programs report as
well. They are of the host, the build or the program, and no gate answers with them.
"""


def gates_document() -> str:
    """The whole document as Markdown."""
    parts = [_INTRODUCTION]
    for area in sorted(gate_areas(), key=lambda area: [*_AREAS, area].index(area)):
        title, text = _AREAS.get(area, (area.capitalize(), ""))
        parts.append(f"\n## {title}\n")
        if text:
            parts.append(f"\n{text}")
        for code, page in gate_pages(area).items():
            parts.append(
                f"\n### `{code}`\n\n**{page.title}.** {page.meaning}\n\n"
                f"* Evidence: {page.evidence}\n* Next step: {page.next_step}\n"
            )
    parts.append(_FROM_LOGS)
    for row in Facts().table("failure_signatures").rows:
        if row.code not in gate_pages():
            apart = f" {row.apart}" if row.apart else ""
            parts.append(
                f"\n### `{row.code}`\n\n`{row.signature}`\n\n{row.cause}{apart}\n\n"
                f"* Evidence: {row.evidence}\n* Next step: {row.next_step}\n"
            )
    parts.append(worksheet_document())
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(gates_document())
