"""The licences a wheel's own metadata names."""

from __future__ import annotations

import email.parser
import email.policy
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from stackbuild.lock.model import LockedWheel

# Longer texts in the old License field are whole licences, not names of one.
_LONGEST_NAME = 100


def wheel_licences(wheels: Iterable[LockedWheel], paths: Mapping[str, Path]) -> dict[str, tuple[str, ...]]:
    """Read the licences of locked wheels.

    All wheels must be there, so that a document never depends on what happens to be in the store.

    Args:
        wheels: The locked wheels.
        paths: Their files, by file name, as ``lock.wheels_fetch.fetch_wheels`` returns them.

    Returns:
        sha256 of each wheel to its licences, as its metadata words them.
    """
    return {wheel.sha256: licences_in(paths[wheel.file]) for wheel in wheels}


def licences_in(wheel: Path) -> tuple[str, ...]:
    """The licences that a wheel's METADATA names.

    License-Expression (PEP 639) counts alone; else a License field that is a name and not a text; else
    the licence classifiers' last parts.
    """
    with zipfile.ZipFile(wheel) as archive:
        name = next(
            entry
            for entry in archive.namelist()
            if entry.count("/") == 1 and entry.endswith(".dist-info/METADATA")
        )
        text = archive.read(name).decode("utf-8", errors="replace")
    headers = email.parser.Parser(policy=email.policy.compat32).parsestr(text, headersonly=True)
    expression = str(headers.get("License-Expression", "")).strip()
    if expression:
        return (expression,)
    stated = str(headers.get("License", "")).strip()
    if stated and stated.upper() != "UNKNOWN" and "\n" not in stated and len(stated) <= _LONGEST_NAME:
        return (stated,)
    classifiers = [str(value) for value in headers.get_all("Classifier", [])]
    names = {value.split(" :: ")[-1] for value in classifiers if value.startswith("License :: ")}
    return tuple(sorted(names - {"OSI Approved"}))
