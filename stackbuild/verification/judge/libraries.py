"""Which CUDA libraries are really mapped, and whether they are the ones the lock installed (cases J01, J03)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from stackbuild.counting import counted
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding, not_applicable, pointless
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise

_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")
_DRIVER = ("libcuda.so", "libnvidia-ml.so")
# Gates whose process has the framework's libraries mapped.
_SOURCES = ("torch-import", "torch-devices", "ort-session")


def judge_libraries(promise: Promise, results: Mapping[str, GateResult]) -> tuple[Finding, ...]:
    """Gates ``libraries-as-locked`` and ``cudnn-shadowed``.

    A library of the system counts as shadowing when an installed distribution ships one of its name and
    its version is another: wheels find theirs by RUNPATH, which loses to LD_LIBRARY_PATH.
    """
    sources = [results[name] for name in _SOURCES if name in results and results[name].outcome == "measured"]
    if not sources:
        why = "no framework was loaded, so no library is mapped"
        return (not_applicable("libraries-as-locked", why), not_applicable("cudnn-shadowed", why))
    mapped = {
        entry["file"]: entry
        for result in sources
        for entry in result.measured.get("libraries", ())
        if not entry["file"].rsplit("/", 1)[-1].startswith(_DRIVER)
    }
    if not mapped:
        why = "the frameworks map no CUDA library"
        if promise.device == "cpu":
            return (not_applicable("libraries-as-locked", why), not_applicable("cudnn-shadowed", why))
        return (pointless("libraries-as-locked", why), pointless("cudnn-shadowed", why))
    listed = [mapped[file] for file in sorted(mapped)]
    cudnn = [entry for entry in listed if "libcudnn" in entry["file"]]
    others = [entry for entry in listed if "libcudnn" not in entry["file"]]
    locked = {entry.name: entry.version for entry in promise.distributions}
    return (
        _judged("libraries-as-locked", others, locked),
        _judged("cudnn-shadowed", cudnn, locked)
        if cudnn
        else not_applicable("cudnn-shadowed", "no framework maps cuDNN"),
    )


def _judged(code: str, entries: Sequence[Mapping[str, Any]], locked: Mapping[str, str]) -> Finding:
    wrong = [text for entry in entries if (text := _wrong(entry, locked))]
    same = [entry["file"] for entry in entries if entry["owner"] is None and entry["shipped_by"]]
    details = {"libraries": list(entries), "shadow-same-version": [] if wrong else same}
    if wrong:
        return finding(
            code,
            Verdict.FAIL,
            "; ".join(wrong),
            measured=", ".join(entry["file"] for entry in entries if _wrong(entry, locked)),
            required="the libraries of the installed distributions",
            details=details,
        )
    owners = sorted({" ".join(entry["owner"]) for entry in entries if entry["owner"]})
    return finding(
        code,
        Verdict.PASS,
        f"{counted(len(entries), 'library is', 'libraries are')} mapped, as installed",
        measured=", ".join(owners) or ", ".join(entry["file"] for entry in entries),
        details=details,
    )


def _wrong(entry: Mapping[str, Any], locked: Mapping[str, str]) -> str:
    """What is wrong with one mapped library; empty when nothing is."""
    file, owner = entry["file"], entry["owner"]
    if owner is not None:
        name, version = owner
        promised = locked.get(name)
        if promised is not None and promised != version:
            return f"{file} is of {name} {version}, locked is {promised}"
        return ""
    match = _VERSION.search(file)
    version = match[1].split(".") if match else []
    for name, shipped in entry["shipped_by"]:
        # A system's file names as many parts as it likes; those it names must agree.
        if version != shipped.split(".")[: len(version)]:
            return f"{file} is mapped in place of {name} {shipped}"
    return ""
