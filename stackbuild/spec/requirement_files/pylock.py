"""pylock.toml (PEP 751), through packaging's own model of it."""

from __future__ import annotations

from pathlib import Path

from packaging.pylock import Package, Pylock, PylockValidationError

from stackbuild.spec.requirement_files.interface import (
    FileContent,
    LockedFile,
    Pin,
    Selection,
    read_toml,
    refusal,
    wheel_hashes,
)
from stackbuild.spec.requirement_files.selection import check_known


def read_pylock(path: Path, selection: Selection) -> FileContent:
    """Read the packages that apply to the stack's environments.

    Without groups in the spec, the file's default groups are taken (PEP 751, "Installation").

    Raises:
        SpecError: The file is not valid, or a package comes as a source tree or without wheels.
    """
    try:
        lock = Pylock.from_dict(read_toml(path))
    except PylockValidationError as error:
        raise refusal(path, f"this is not a valid pylock.toml: {error}") from None
    check_known(path, "extra", selection.extras, lock.extras or ())
    check_known(
        path, "group", selection.groups, [*(lock.dependency_groups or ()), *(lock.default_groups or ())]
    )
    python = f"{selection.environments.python}.99"
    if lock.requires_python is not None and not lock.requires_python.contains(python):
        raise refusal(
            path, f"it was locked for Python {lock.requires_python}, and the stack has {python[:-3]}"
        )
    pins = []
    for package in lock.packages:
        marker = str(package.marker or "")
        answer = selection.environments.answer(
            marker,
            extras=selection.extras,
            groups=selection.groups or tuple(lock.default_groups or ()),
            context="lock_file",
        )
        if answer != "never":
            # A marker of a lock file can name extras and groups, which no requirement can: those are decided.
            keep = answer == "depends" and "extras" not in marker and "dependency_groups" not in marker
            pins.append(_pin(path, package, marker if keep else ""))
    return FileContent(pins=tuple(pins))


def _pin(path: Path, package: Package, marker: str) -> Pin:
    for kind in ("vcs", "directory", "archive"):
        if getattr(package, kind) is not None:
            raise refusal(
                path,
                f"'{package.name}' comes as {'a version-control checkout' if kind == 'vcs' else f'a {kind}'}",
                "Build a wheel of it, and write {url: …, sha256: …} under packages in the spec.",
            )
    if package.version is None or not package.wheels:
        raise refusal(
            path, f"'{package.name}' has no wheel in the file", "Only wheels are taken: lock again."
        )
    files = [
        LockedFile(file=wheel.filename, hash=f"sha256:{wheel.hashes['sha256']}")
        for wheel in package.wheels
        if "sha256" in wheel.hashes
    ]
    return Pin(
        name=package.name,
        version=str(package.version),
        hashes=wheel_hashes(files, path, package.name),
        marker=marker,
        source=str(path),
    )
