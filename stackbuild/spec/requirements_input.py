"""What a spec asks of the Python indexes, its files included, and the hash of what decides its lock."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from stackbuild.spec.model import RequirementsFile, StackSpec, WheelUrl
from stackbuild.spec.requirement_files.environment import TargetEnvironments
from stackbuild.spec.requirement_files.interface import FileContent, Listed, Pin, Reader, Selection, refusal
from stackbuild.spec.requirement_files.poetry_lock import read_poetry_lock
from stackbuild.spec.requirement_files.pylock import read_pylock
from stackbuild.spec.requirement_files.requirements_txt import read_requirements_txt
from stackbuild.spec.requirement_files.uv_lock import read_uv_lock

# The parts of a spec that decide its lock, by field; ``packages`` is taken as read, and ``target`` only where a
# variant is resolved from it. All else (files, image, verify, waivers, summary) changes no locked input.
_DECIDING = (
    "schema_",
    "base",
    "external",
    "python",
    "pip",
    "frameworks",
    "indexes",
    "overrides",
    "constraints",
    "exclude",
    "prereleases",
    "apt",
    "apt_sources",
    "platforms",
)


@dataclass(frozen=True)
class Requirements:
    """Everything a spec's ``packages`` and ``constraints`` ask for. Frameworks are not in it: the spec has them.

    Attributes:
        direct: Requirements (PEP 508) that leave the version open, in the order given.
        constraints: Bounds on versions of what gets installed for another reason.
        pins: Distributions at exactly one version, to be installed as well; with hashes where a file gave them.
            The pin of a framework has no hashes: its variant decides which build is taken.
        wheels: Wheels that the spec names by URL and hash.
        sources: Where each of ``direct`` and ``constraints`` stands, as ``file:line`` or ``packages``.
    """

    direct: tuple[str, ...]
    constraints: tuple[str, ...]
    pins: tuple[Pin, ...]
    wheels: tuple[WheelUrl, ...]
    sources: dict[str, str]


def requirement_inputs(spec: StackSpec, spec_dir: Path) -> Requirements:
    """Collect what the spec asks for, reading the files it names.

    Args:
        spec: The spec.
        spec_dir: The folder that its paths start from.

    Raises:
        SpecError: A file is missing (``requirements-not-found``), or it holds what a stack cannot honour or what
            contradicts the spec (``requirements-invalid``), each with file and line.
    """
    direct = [Listed(package, "packages") for package in spec.packages if isinstance(package, str)]
    constraints = [Listed(text, "constraints") for text in spec.constraints]
    pins: list[Pin] = []
    environments = TargetEnvironments(spec.python, spec.platforms)
    for package in spec.packages:
        if isinstance(package, RequirementsFile):
            selection = Selection(package.groups, package.extras, environments)
            content = _read(spec_dir / package.from_, selection)
            direct += content.direct
            constraints += content.constraints
            pins += content.pins
    frameworks = {canonicalize_name(name): framework for name, framework in spec.frameworks.items()}
    checked = []
    for pin in pins:
        framework = frameworks.get(canonicalize_name(pin.name))
        if framework is not None:
            wanted = framework.version
            if wanted and not pin.marker and Version(wanted).public != Version(pin.version).public:
                raise refusal(
                    pin.source,
                    f"{pin.name} is {pin.version} here, and {wanted} under frameworks in the spec",
                    "Give the version in one place.",
                )
            pin = Pin(pin.name, pin.version, pin.extras, (), pin.marker, pin.source)
        checked.append(pin)
    return Requirements(
        direct=tuple(dict.fromkeys(item.text for item in direct)),
        constraints=tuple(dict.fromkeys(item.text for item in constraints)),
        pins=tuple(dict.fromkeys(checked)),
        wheels=tuple(package for package in spec.packages if isinstance(package, WheelUrl)),
        sources={item.text: item.source for item in (*constraints, *direct)},
    )


def _read(path: Path, selection: Selection) -> FileContent:
    return _reader(path)(path, selection)


def _reader(path: Path) -> Reader:
    """Choose the reader by the file's name, as the formats' own tools do."""
    name = path.name
    if name == "uv.lock":
        return read_uv_lock
    if name == "poetry.lock":
        return read_poetry_lock
    # PEP 751, "File Name": pylock.toml or pylock.NAME.toml.
    if name == "pylock.toml" or (name.startswith("pylock.") and name.endswith(".toml")):
        return read_pylock
    if name.endswith((".txt", ".in")):
        return read_requirements_txt
    hint = "Use its lock: pylock.toml, uv.lock or poetry.lock." if name == "pyproject.toml" else ""
    raise refusal(
        path,
        "the name says no format that can be read here",
        hint or "Known are requirements files (.txt, .in), pylock.toml, uv.lock and poetry.lock.",
    )


def lock_inputs_sha256(spec: StackSpec, spec_dir: Path) -> str:
    """Return the sha256, in hex, of just what decides the lock.

    Comments, spelling of the YAML, and keys that change no locked input leave it as it is; so do comments in
    the requirements files.

    Raises:
        SpecError: A file that the spec reads is missing or not valid.
    """
    requirements = requirement_inputs(spec, spec_dir)
    document: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, include=set(_DECIDING))
    if any(framework.variant == "auto" for framework in spec.frameworks.values()):
        document["target"] = spec.target.model_dump(mode="json", by_alias=True)
    document["requirements"] = {
        "direct": requirements.direct,
        "constraints": requirements.constraints,
        "pins": [[pin.requirement, list(pin.hashes)] for pin in requirements.pins],
        "wheels": [wheel.model_dump(mode="json") for wheel in requirements.wheels],
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
