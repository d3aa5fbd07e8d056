"""What every reader of a requirements file takes and gives."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict, ValidationError

from stackbuild.errors import SpecError, SpecProblem
from stackbuild.sizes import size_text
from stackbuild.spec.requirement_files.environment import TargetEnvironments

MAX_BYTES = 32_000_000  # the largest uv.lock seen in public repositories is about 5 MB


@dataclass(frozen=True)
class Pin:
    """One distribution at exactly one version.

    Attributes:
        name: Normalised name.
        version: The version, with its local label where the file has one.
        extras: Extras of it that are wanted, normalised.
        hashes: sha256 in hex of the wheels that the file allows; empty when it gives none.
        marker: Environment marker that decides whether it applies; empty for always.
        source: Where it stands, as ``file:line`` or ``file``.
    """

    name: str
    version: str
    extras: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()
    marker: str = ""
    source: str = ""

    @property
    def requirement(self) -> str:
        """The pin as a PEP 508 requirement."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        marker = f" ; {self.marker}" if self.marker else ""
        return f"{self.name}{extras}=={self.version}{marker}"


@dataclass(frozen=True)
class Listed:
    """A requirement or constraint that is not an exact pin, and where it stands."""

    text: str
    source: str


@dataclass(frozen=True)
class FileContent:
    """What one requirements file asks for, the files it includes in it."""

    direct: tuple[Listed, ...] = ()
    constraints: tuple[Listed, ...] = ()
    pins: tuple[Pin, ...] = ()


@dataclass(frozen=True)
class Selection:
    """Which part of a file to take, for which environments."""

    groups: tuple[str, ...]
    extras: tuple[str, ...]
    environments: TargetEnvironments


class Reader(Protocol):
    """Reads one format."""

    def __call__(self, path: Path, selection: Selection) -> FileContent:
        """Read the file.

        Raises:
            SpecError: The file is missing, is not of its format or holds what cannot be honoured.
        """


def refusal(
    file: Path | str, message: str, suggestion: str = "", *, line: int = 0, text: str = ""
) -> SpecError:
    """Make the error for one thing in a requirements file."""
    problem = SpecProblem(
        "requirements-invalid", str(file), line, 1 if line else 0, message, suggestion, text[:160]
    )
    return SpecError.of(str(file), [problem])


def read_text(path: Path) -> str:
    """Return the file's text.

    Raises:
        SpecError: It is missing, too large, or not UTF-8 text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SpecError("there is no such file", code="requirements-not-found", where=str(path)) from None
    except OSError as error:
        raise SpecError(
            f"cannot be read: {error.strerror}", code="requirements-not-found", where=str(path)
        ) from error
    if len(content) > MAX_BYTES:
        raise refusal(path, f"the file is larger than {size_text(MAX_BYTES)}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise refusal(
            path, f"byte 0x{content[error.start]:02x} is not UTF-8", "Save the file as UTF-8.", line=line
        ) from None
    if "\0" in text:
        raise refusal(path, "the file holds NUL bytes, so it is no text")
    return text


def read_toml(path: Path) -> Mapping[str, Any]:
    """Return the file's TOML document.

    Raises:
        SpecError: It is missing or is not TOML.
    """
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise refusal(path, f"this is not TOML: {error}") from None


class LockPart(BaseModel):
    """Base of the parts of a lock that are read; what else it holds is left alone."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, alias_generator=lambda name: name.replace("_", "-")
    )


class LockedFile(LockPart):
    """A file of a distribution, as uv.lock (``url`` or ``path``) and poetry.lock (``file``) name it."""

    file: str = ""
    url: str = ""
    path: str = ""
    hash: str = ""

    @property
    def is_wheel(self) -> bool:
        """Whether the name is that of a wheel."""
        return (self.file or self.url or self.path).split("#")[0].endswith(".whl")


L = TypeVar("L", bound=LockPart)


def read_lock(path: Path, shape: type[L], kind: str) -> L:
    """Read a lock in TOML.

    Args:
        path: The file.
        shape: What it must look like.
        kind: Its format's name, for the error.

    Raises:
        SpecError: It is missing, is not TOML, or does not look like that.
    """
    try:
        return shape.model_validate(read_toml(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise refusal(path, f"this is not a {kind} that can be read: {place}: {first['msg']}") from None


def exact_version(value: str, path: Path, name: str) -> str:
    """Return a lock's version in its normal form.

    Raises:
        SpecError: It is none (PEP 440).
    """
    try:
        return str(Version(value))
    except InvalidVersion:
        raise refusal(path, f"'{name}' has the version {value[:80]!r}, which is none") from None


def wheel_hashes(files: Iterable[LockedFile], path: Path, name: str) -> tuple[str, ...]:
    """Return the sha256 sums, in hex, of the wheels among a lock's files.

    Raises:
        SpecError: A wheel's hash is not ``sha256:`` and 64 hex digits.
    """
    hashes = set()
    for file in files:
        if file.is_wheel and file.hash:
            match = re.fullmatch(r"sha256:([0-9a-fA-F]{64})", file.hash)
            if match is None:
                raise refusal(path, f"'{name}': the hash {file.hash[:80]!r} is not a sha256")
            hashes.add(match[1].lower())
    return tuple(sorted(hashes))
