"""requirements.txt, as pip documents it ("Requirements File Format", pip 26).

Environment markers are kept; what would bring another index, an editable or a source tree is refused, because
a stack names its indexes and its wheels itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from stackbuild.errors import SpecError, SpecProblem
from stackbuild.spec.requirement_files.interface import FileContent, Listed, Pin, Selection, read_text
from stackbuild.spec.torch_channels import is_root_channel, suggested_channel

_COMMENT = re.compile(r"(^|\s)#.*$")
_HASH = re.compile(r"(?:^|\s)--hash(?:=|\s+)(\S+)")
_INCLUDE = re.compile(r"(?:--requirement|--constraint|-r|-c)\s*=?\s*(.+)$")
_LOCAL = re.compile(r"^(\.{0,2}/|\.{1,2}$|file:)")

# Options that change nothing here, since every file is a wheel with a locked hash.
_HARMLESS = {"--require-hashes", "--prefer-binary", "--only-binary"}
_REFUSED = {
    "-e": "an editable install cannot be pinned; build a wheel of it and name that by URL and sha256",
    "--editable": "an editable install cannot be pinned; build a wheel of it and name that by URL and sha256",
    "-i": "a stack names its indexes itself: use `indexes` in the spec, or the site file for a mirror",
    "--index-url": "a stack names its indexes itself: use `indexes` in the spec, or the site file for a mirror",
    "--extra-index-url": "indexes are never merged: bind the packages to one under `indexes` in the spec",
    "-f": "put the wheels into a folder that an index in the spec or the site file names",
    "--find-links": "put the wheels into a folder that an index in the spec or the site file names",
    "--no-index": "map the default index to a folder in the site file",
    "--pre": "list the distributions under `prereleases` in the spec",
    "--no-binary": "only wheels are taken; build a wheel and name it by URL and sha256",
    "--trusted-host": "set `ca-bundle` in the site file",
    "--use-feature": "remove the option",
    "--config-settings": "only wheels are taken, so nothing is built",
    "--global-option": "only wheels are taken, so nothing is built",
}


class _Refuse(Protocol):
    """Records a problem at the line being read."""

    def __call__(self, message: str, suggestion: str = "", code: str = "requirements-invalid") -> None:
        """Record it."""


@dataclass
class _Collected:
    direct: list[Listed] = field(default_factory=list)
    constraints: list[Listed] = field(default_factory=list)
    pins: list[Pin] = field(default_factory=list)
    problems: list[SpecProblem] = field(default_factory=list)


def read_requirements_txt(path: Path, selection: Selection) -> FileContent:
    """Read a requirements file and the files it includes (``-r``, ``-c``).

    Raises:
        SpecError: Every line that cannot be honoured, with file and line.
    """
    collected = _Collected()
    if selection.groups or selection.extras:
        raise SpecError(
            "a requirements.txt has no groups and no extras",
            code="requirements-invalid",
            where=str(path),
            do="Remove groups and extras from the spec's entry for this file.",
        )
    _read(path, collected, (), as_constraints=False)
    if collected.problems:
        raise SpecError.of(str(path), collected.problems)
    return FileContent(tuple(collected.direct), tuple(collected.constraints), tuple(collected.pins))


def included_files(path: Path) -> tuple[Path, ...]:
    """The file and all that it includes (``-r``, ``-c``), missing ones too; nothing in them is judged.

    Args:
        path: A requirements file.
    """
    found: dict[Path, Path] = {}

    def visit(file: Path) -> None:
        if file.resolve() in found:
            return
        found[file.resolve()] = file
        try:
            text = read_text(file)
        except SpecError:
            return  # whoever takes requirements from it tells
        for _, line in _logical_lines(text):
            included = _INCLUDE.match(line)
            if included is not None and "://" not in included[1]:
                visit(file.parent / included[1].strip().strip("\"'"))

    visit(path)
    return tuple(found.values())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    number = 0
    parts: list[str] = []
    for index, raw in enumerate(text.splitlines(), start=1):
        if not parts:
            number = index
        # As pip does: a comment line inside a continuation ends it.
        stripped = raw.rstrip()
        if stripped.endswith("\\") and not raw.lstrip().startswith("#"):
            parts.append(stripped[:-1])
            continue
        parts.append(raw)
        line = _COMMENT.sub("", " ".join(parts)).strip()
        parts = []
        if line:
            yield number, line
    rest = _COMMENT.sub("", " ".join(parts)).strip()
    if rest:
        yield number, rest


def _read(path: Path, collected: _Collected, parents: tuple[Path, ...], *, as_constraints: bool) -> None:
    for number, line in _logical_lines(read_text(path)):

        def refuse(message: str, suggestion: str = "", code: str = "requirements-invalid") -> None:
            collected.problems.append(
                SpecProblem(code, str(path), number, 1, message, suggestion, line[:160])  # noqa: B023
            )

        if "${" in line:
            refuse("an environment variable would make the lock depend on who makes it", "Write the value.")
        elif line.startswith("-"):
            nested = _option(path, line, refuse)
            if nested is None:
                continue
            included, constraints = nested
            if included.resolve() in (path.resolve(), *(parent.resolve() for parent in parents)):
                refuse(f"'{included.name}' includes itself")
                continue
            try:
                _read(included, collected, (*parents, path), as_constraints=as_constraints or constraints)
            except SpecError as error:
                if not error.problems:
                    refuse(f"'{included}' {error.what}")
                collected.problems.extend(error.problems)
        else:
            _requirement(f"{path}:{number}", line, collected, refuse, as_constraints=as_constraints)


def _option(path: Path, line: str, refuse: _Refuse) -> tuple[Path, bool] | None:
    match = re.match(r"(--[a-z-]+|-[a-zA-Z])\s*=?\s*(.*)$", line)
    option, value = (match[1], match[2].strip().strip("\"'")) if match else (line, "")
    if option in ("-r", "--requirement", "-c", "--constraint"):
        if not value or "://" in value:
            refuse(
                f"'{option}' needs a file" if not value else "a file by URL is not pinned", "Keep it here."
            )
            return None
        return path.parent / value, option in ("-c", "--constraint")
    if option in _HARMLESS:
        return None
    if option in ("-i", "--index-url", "--extra-index-url") and is_root_channel(value):
        refuse(
            "the root of torch's channels mixes builds for the CPU, every CUDA and ROCm",
            f"Remove the line and write frameworks: torch: {{variant: cu130}} in the spec, which takes "
            f"{suggested_channel(None, 'cu130')}.",
            "index-not-channel-specific",
        )
        return None
    reason = _REFUSED.get(option)
    refuse(
        f"'{option}' is not honoured in a stack"
        if reason
        else f"'{option}' is not an option of pip's known here",
        f"{reason[0].upper()}{reason[1:]}." if reason else "Remove the line.",
    )
    return None


def _requirement(
    source: str, line: str, collected: _Collected, refuse: _Refuse, *, as_constraints: bool
) -> None:
    given = _HASH.findall(line)
    text = _HASH.sub(" ", line).strip()
    if re.search(r"\s--?[a-z]", text):
        refuse("options after a requirement are not honoured", "Only --hash may follow.")
        return
    if re.match(r"(git|hg|svn|bzr)\+", text) or re.search(r"@\s*(git|hg|svn|bzr)\+", text):
        refuse(
            "a version-control checkout cannot be pinned by content",
            "Build a wheel of it; name its URL and sha256.",
        )
        return
    if _LOCAL.match(text) or re.match(r"[a-z]+://", text):
        refuse(
            "a path or URL has no name and no locked hash",
            "Write {url: …, sha256: …} under packages in the spec.",
        )
        return
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        refuse(f"not a requirement: {str(error).splitlines()[0]}", "Write NAME==VERSION (PEP 508).")
        return
    if requirement.url is not None:
        refuse(
            f"'{requirement.name}' comes from a URL", "Write {url: …, sha256: …} under packages in the spec."
        )
        return
    hashes = sorted(value.split(":", 1)[1].lower() for value in given if value.startswith("sha256:"))
    if any(not re.fullmatch(r"[0-9a-f]{64}", value) for value in hashes) or (given and not hashes):
        refuse(
            "a hash is not sha256: and 64 hex digits", "Use `pip hash` or `pip-compile --generate-hashes`."
        )
        return
    pin = _pin(requirement, tuple(hashes), source)
    if given and pin is None:
        refuse("a hash needs one exact version", f"Write {requirement.name}==VERSION --hash=….")
    elif as_constraints:
        collected.constraints.append(Listed(str(requirement), source))
    elif pin is not None:
        collected.pins.append(pin)
    else:
        collected.direct.append(Listed(str(requirement), source))


def _pin(requirement: Requirement, hashes: tuple[str, ...], source: str) -> Pin | None:
    specifiers = list(requirement.specifier)
    if len(specifiers) != 1 or specifiers[0].operator != "==" or specifiers[0].version.endswith(".*"):
        return None
    try:
        version = str(Version(specifiers[0].version))
    except InvalidVersion:
        return None
    return Pin(
        name=canonicalize_name(requirement.name),
        version=version,
        extras=tuple(sorted(canonicalize_name(extra) for extra in requirement.extras)),
        hashes=hashes,
        marker=str(requirement.marker or ""),
        source=source,
    )
