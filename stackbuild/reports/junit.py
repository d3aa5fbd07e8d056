"""A report as JUnit XML, as CI systems read it.

Schema: the Jenkins xUnit plug-in's ``junit-10.xsd``, which GitLab, Azure Pipelines and CircleCI also read: a
``testsuite`` for each part, a ``testcase`` for each finding. FAIL is a ``failure``, ERROR an ``error``, SKIP is
``skipped``; a WARN passes, with its text as ``system-out``, unless it is to fail.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.reports.document import Document, Part, evidence
from stackbuild.reports.safe_text import safe_line, safe_text

_ELEMENTS = {Verdict.FAIL: "failure", Verdict.ERROR: "error", Verdict.SKIP: "skipped"}
_NO_ZONE = re.compile(r"(Z|[+-]\d\d:\d\d)$")


def render_junit(document: Document, *, strict: bool = False) -> str:
    """The document as JUnit XML.

    Args:
        document: What to write.
        strict: Whether a WARN is a failure.
    """
    root = ElementTree.Element("testsuites", {"name": "stackbuild"})
    # The schema has no number of skipped cases for all suites.
    counted = _counts(document.findings, strict=strict)
    root.attrib.update({name: counted[name] for name in ("tests", "failures", "errors")})
    root.set("time", f"{document.seconds:.3f}")
    for position, part in enumerate(document.parts):
        _suite(root, document, part, first=position == 0, strict=strict)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(root: ElementTree.Element, document: Document, part: Part, *, first: bool, strict: bool) -> None:
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": safe_line(part.name), **_counts(part.findings, strict=strict)}
    )
    # Where parts have no time of their own, that of the whole is told once.
    timed = any(each.seconds for each in document.parts)
    suite.set("time", f"{part.seconds if timed else document.seconds if first else 0:.3f}")
    if document.started:
        suite.set("timestamp", _NO_ZONE.sub("", document.started))
    properties = ElementTree.SubElement(suite, "properties")
    facts = [*document.headline, *((f"stack.{row.name}", row.value) for row in document.stack)]
    if part.told:
        facts.append(("outcome", part.told))
    complete = is_complete(part.findings) if len(document.parts) > 1 else document.complete
    for name, value in [*facts, ("complete", "true" if complete else "false")]:
        ElementTree.SubElement(properties, "property", {"name": safe_line(name), "value": safe_line(value)})
    for finding in part.findings:
        _case(suite, part, finding, strict=strict)
    if first and document.log:
        ElementTree.SubElement(suite, "system-out").text = safe_text(document.log)


def _case(suite: ElementTree.Element, part: Part, finding: Finding, *, strict: bool) -> None:
    # One code may be found for several subjects, and a CI system tells cases apart by their names.
    name = f"{finding.code} [{finding.subject}]" if finding.subject else finding.code
    # Dots would make packages of a version in the name.
    classname = re.sub(r"\.", "_", safe_line(part.name))
    case = ElementTree.SubElement(
        suite, "testcase", {"classname": classname, "name": safe_line(name), "time": "0"}
    )
    element = _element(finding, strict=strict)
    if element == "skipped":
        ElementTree.SubElement(case, element, {"message": safe_line(finding.summary)})
    elif element:
        told = {"message": safe_line(finding.summary), "type": finding.code}
        ElementTree.SubElement(case, element, told).text = safe_text(_text(finding))
    elif finding.verdict is Verdict.WARN:
        ElementTree.SubElement(case, "system-out").text = safe_text(
            f"WARN: {finding.summary}\n{_text(finding)}"
        )


def _element(finding: Finding, *, strict: bool) -> str:
    if strict and finding.verdict is Verdict.WARN:
        return "failure"
    return _ELEMENTS.get(finding.verdict, "")


def _counts(findings: Sequence[Finding], *, strict: bool) -> dict[str, str]:
    elements = [_element(finding, strict=strict) for finding in findings]
    return {
        "tests": str(len(findings)),
        "failures": str(elements.count("failure")),
        "errors": str(elements.count("error")),
        "skipped": str(elements.count("skipped")),
    }


def _text(finding: Finding) -> str:
    lines = [f"{name}: {text}" for name, text in evidence(finding)]
    if finding.waived:
        lines.append(f"waived: {finding.waived}")
    if finding.next_step:
        lines.append(f"next step: {finding.next_step}")
    return "\n".join(lines)
