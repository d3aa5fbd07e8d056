"""The licences a wheel's own metadata names."""

from __future__ import annotations

import email.parser
import email.policy
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name, canonicalize_version

from stackbuild.layers.venv import VENV
from stackbuild.lock.model import LockedWheel
from stackbuild.scan.contents.python import PythonDistribution

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


def installed_licences(
    wheels: Iterable[LockedWheel], distributions: Iterable[PythonDistribution]
) -> dict[str, tuple[str, ...]]:
    """Read the licences of locked wheels from an image that they are installed in.

    Args:
        wheels: The locked wheels.
        distributions: What a scan of the image found.

    Returns:
        sha256 of each wheel whose metadata the image has to its licences, as :func:`wheel_licences` gives them.
    """
    installed = {
        (found.key, canonicalize_version(found.version)): found.metadata
        for found in distributions
        if found.environment.startswith(f"{VENV}/") and not found.vendored and found.metadata
    }
    found = {}
    for wheel in wheels:
        metadata = installed.get((canonicalize_name(wheel.name), canonicalize_version(wheel.version)))
        if metadata is not None:
            found[wheel.sha256] = metadata_licences(metadata)
    return found


def licences_in(wheel: Path) -> tuple[str, ...]:
    """The licences that a wheel's METADATA names; see :func:`declared_licences`."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(
            entry
            for entry in archive.namelist()
            if entry.count("/") == 1 and entry.endswith(".dist-info/METADATA")
        )
        text = archive.read(name).decode("utf-8", errors="replace")
    headers = email.parser.Parser(policy=email.policy.compat32).parsestr(text, headersonly=True)
    return declared_licences(
        str(headers.get("License-Expression", "")),
        str(headers.get("License", "")),
        [str(value) for value in headers.get_all("Classifier", [])],
    )


def metadata_licences(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The licences that metadata as a scan keeps it names; see :func:`declared_licences`."""
    return declared_licences(
        metadata.get("license-expression", ""), metadata.get("license", ""), metadata.get("classifier", ())
    )


def declared_licences(expression: str, stated: str, classifiers: Iterable[str]) -> tuple[str, ...]:
    """The licences that a distribution's core metadata names.

    License-Expression (PEP 639) counts alone; else a License field that is a name and not a text; else
    the licence classifiers' last parts.

    Args:
        expression: Its License-Expression; empty without one.
        stated: Its License field; a text of several lines has a line end in it.
        classifiers: Its classifiers.
    """
    if expression.strip():
        return (expression.strip(),)
    # A line end is looked for before anything is stripped: a text may have only its first line here.
    name = "" if "\n" in stated else stated.strip()
    if name and name.upper() != "UNKNOWN" and len(name) <= _LONGEST_NAME:
        return (name,)
    names = {value.split(" :: ")[-1] for value in classifiers if value.startswith("License :: ")}
    return tuple(sorted(names - {"OSI Approved"}))
