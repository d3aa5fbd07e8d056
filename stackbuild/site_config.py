"""The site file: where this site finds indexes, registries and repositories (``stackbuild.toml``).

It maps *names*, as locks record them, to mirrors, so that a lock made at one site builds at another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, field_validator, model_validator

from stackbuild.errors import UsageError
from stackbuild.frozen_model import FrozenModel
from stackbuild.site_policy import Policy
from stackbuild.site_problems import site_problems

SITE_FILE = "stackbuild.toml"
# Where PyTorch publishes one channel per build variant (pytorch.org, "Get started").
PYTORCH_CHANNELS = "https://download.pytorch.org/whl"
PYTORCH_PREFIX = "pytorch-"
DEFAULT_INDEX = "default"

# A machine without a GPU, or with GPUs of one compute capability; amd64 unless it says otherwise.
RunnerKind = Annotated[str, Field(pattern=r"^(cpu|sm_[0-9]{2,3})(-arm64)?$")]
RunnerLabel = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$")]

_TABLES = {"indexes", "registries", "repositories"}


class IndexLocation(FrozenModel):
    """Where one named package index is: a URL of the simple API, or a folder of wheels."""

    url: str | None = Field(default=None, pattern=r"^https?://")
    folder: Path | None = None
    trusted_hashes: bool | None = Field(
        default=None,
        description="whether its sha256 values are recorded unread; only for 'default' unless said",
    )

    @model_validator(mode="after")
    def _one_place(self) -> IndexLocation:
        if (self.url is None) == (self.folder is None):
            raise ValueError("exactly one of 'url' and 'folder' is needed")
        return self


class SiteConfig(FrozenModel):
    """What the site file and the ``STACKBUILD_*`` variables say."""

    indexes: dict[str, IndexLocation] = Field(
        default_factory=dict,
        description="index name to a URL, a folder, or a table of url/folder and trusted-hashes",
    )
    registries: dict[str, str] = Field(
        default_factory=dict, description="registry to its mirror as HOST[:PORT]; http is spoken on loopback"
    )
    repositories: dict[str, str] = Field(
        default_factory=dict,
        description="apt repository name (debian, debian-security, ubuntu, …) to its URL",
    )
    snapshot: str | None = Field(
        default=None, pattern=r"^https?://", description="snapshot archive of apt repositories"
    )
    ca_bundle: Path | None = Field(default=None, description="PEM file used in place of the system's")
    store: Path | None = Field(default=None, description="folder of the store")
    layer_cache: str | None = Field(
        default=None, description="repository of a registry that has layers by the hash of what made them"
    )
    runners: dict[RunnerKind, tuple[RunnerLabel, ...]] = Field(
        default_factory=dict,
        description="kind of machine (cpu, sm_90, with -arm64 behind it there) to the labels of its CI runners",
    )
    policy: Policy = Field(
        default_factory=Policy.model_construct,
        description="what this site allows and how grave it takes things",
    )

    # (table, name) → the file or variable that maps the name.
    _mapped_in: dict[tuple[str, str], str] = PrivateAttr(default_factory=dict)

    def mapped_in(self, table: str, name: str) -> str:
        """The site file or variable that maps a name of ``indexes``, ``registries`` or ``repositories``; else empty."""
        return self._mapped_in.get((table, name), "")

    @field_validator("indexes", mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: _location(place) if isinstance(place, str) else place for name, place in value.items()}

    @field_validator("runners", mode="before")
    @classmethod
    def _one_label(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {kind: (labels,) if isinstance(labels, str) else labels for kind, labels in value.items()}

    def index(self, name: str, *, url: str | None = None) -> IndexLocation | None:
        """Return where the index ``name`` is.

        Args:
            name: ``default``, ``pytorch-VARIANT`` or a name of the spec's own.
            url: The URL the spec gives that name; the site file goes first.

        Returns:
            The location, or None when nothing says where it is; ``default`` is then the resolver's own.
        """
        if name in self.indexes:
            return self.indexes[name]
        if url is not None:
            return _location(url)
        if name.startswith(PYTORCH_PREFIX):
            return IndexLocation(url=f"{PYTORCH_CHANNELS}/{name.removeprefix(PYTORCH_PREFIX)}")
        return None

    def trusts_hashes(self, name: str) -> bool:
        """True when the sha256 values of this index are recorded without reading the file."""
        location = self.indexes.get(name)
        if location is not None and location.trusted_hashes is not None:
            return location.trusted_hashes
        return name == DEFAULT_INDEX


def load_site_config(start: Path, environ: Mapping[str, str] | None = None) -> SiteConfig:
    """Read the site file and lay the ``STACKBUILD_*`` variables over it.

    The file is ``$STACKBUILD_CONFIG`` or the nearest ``stackbuild.toml`` in ``start`` and the folders above.
    ``STACKBUILD_INDEXES``, ``STACKBUILD_REGISTRIES`` and ``STACKBUILD_REPOSITORIES`` hold ``NAME=PLACE``
    pairs separated by white space; ``STACKBUILD_SNAPSHOT``, ``STACKBUILD_CA_BUNDLE``,
    ``STACKBUILD_STORE`` and ``STACKBUILD_LAYER_CACHE`` hold one value.
    Paths in the file are relative to the file, paths in variables to ``start``.

    Args:
        start: The folder to begin at.
        environ: The environment; the process's own when None.

    Raises:
        UsageError: The file or a variable cannot be understood (code ``site-config-invalid``).
    """
    environ = os.environ if environ is None else environ
    data: dict[str, Any] = {}
    path = site_file(start, environ)
    if path is not None:
        data = _anchored(_read(path), path.parent)
    overlay = _anchored(_from_environment(environ), start)
    mapped = {**_mapped(data, lambda _table: str(path)), **_mapped(overlay, _variable)}
    for key, value in overlay.items():
        data[key] = {**data.get(key, {}), **value} if key in _TABLES else value
    if not data:
        return SiteConfig.model_construct()  # nothing to validate, so the model's validator need not be made
    try:
        site = SiteConfig.model_validate(data)
        site._mapped_in.update(mapped)
        return site
    except ValidationError as error:
        where = str(path) if path else "STACKBUILD_* variables"
        text = path.read_text(encoding="utf-8") if path else ""
        tables: dict[tuple[str, ...], type[BaseModel]] = {
            (): SiteConfig,
            ("indexes", "*"): IndexLocation,
            ("policy",): Policy,
        }
        problems = [str(found) for found in site_problems(error.errors(), where, text, tables)]
        raise UsageError(
            "the site configuration is not valid",
            code="site-config-invalid",
            where=where,
            detail="\n".join(problems),
            do="Correct the named keys.",
        ) from error


def site_file(start: Path, environ: Mapping[str, str]) -> Path | None:
    """The site file that holds in a folder: ``$STACKBUILD_CONFIG``, or the nearest ``stackbuild.toml`` upwards.

    Args:
        start: The folder to begin at.
        environ: The environment.

    Returns:
        Its path; None when there is none.

    Raises:
        UsageError: ``site-config-invalid``: the file that the variable names does not exist.
    """
    named = environ.get("STACKBUILD_CONFIG")
    if named:
        path = Path(named)
        if not path.is_file():
            raise UsageError(
                "the site file that STACKBUILD_CONFIG names does not exist",
                code="site-config-invalid",
                where=named,
            )
        return path.absolute()
    start = start.absolute()
    return next(
        (folder / SITE_FILE for folder in (start, *start.parents) if (folder / SITE_FILE).is_file()), None
    )


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # most commands run where there is no site file

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the site file cannot be read: {error}", code="site-config-invalid", where=str(path)
        ) from error


def _mapped(data: Mapping[str, Any], place: Callable[[str], str]) -> dict[tuple[str, str], str]:
    """The names that the tables of a file or of the environment map, each with that place."""
    tables = {table: data[table] for table in _TABLES if isinstance(data.get(table), dict)}
    return {(table, name): place(table) for table, names in tables.items() for name in names}


def _variable(key: str) -> str:
    return "STACKBUILD_" + key.upper().replace("-", "_")


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in ("snapshot", "ca-bundle", "store", "layer-cache"):
        value = environ.get(_variable(key))
        if value:
            found[key] = value
    for key in sorted(_TABLES):
        variable = _variable(key)
        pairs = environ.get(variable, "").split()
        wrong = [pair for pair in pairs if not all(pair.partition("=")[::2])]
        if wrong:
            raise UsageError(
                f"{variable} holds {wrong[0]!r}, which is not NAME=PLACE",
                code="site-config-invalid",
                do=f"Write {variable}='NAME=PLACE NAME=PLACE'.",
            )
        if pairs:
            found[key] = dict(pair.split("=", 1) for pair in pairs)
    return found


def _anchored(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make every path absolute; what has the wrong type is left for the validation to report."""
    result = dict(data)
    for key in ("ca-bundle", "store"):
        if isinstance(result.get(key), str):
            result[key] = _absolute(result[key], folder)
    indexes = result.get("indexes")
    if isinstance(indexes, dict):
        result["indexes"] = {name: _anchored_index(place, folder) for name, place in indexes.items()}
    return result


def _anchored_index(place: Any, folder: Path) -> Any:
    if isinstance(place, str) and not _is_url(place):
        return {"folder": _absolute(_path(place), folder)}
    if isinstance(place, dict) and isinstance(place.get("folder"), str):
        return {**place, "folder": _absolute(place["folder"], folder)}
    return place


def _absolute(value: str, folder: Path) -> Path:
    return (folder / Path(value).expanduser()).absolute()


def _is_url(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _location(place: str) -> IndexLocation:
    if _is_url(place):
        return IndexLocation(url=place)
    return IndexLocation(folder=Path(_path(place)))


def _path(place: str) -> str:
    return unquote(urlsplit(place).path) if place.startswith("file://") else place
