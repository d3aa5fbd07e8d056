"""Image names, and where a registry's content is really fetched from."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from stackbuild.errors import UsageError

DEFAULT_REGISTRY = "docker.io"
# Docker's default registry answers its API under another name (distribution/reference, `normalize.go`).
_DEFAULT_API_HOST = "registry-1.docker.io"
_DEFAULT_ALIASES = (DEFAULT_REGISTRY, "index.docker.io", _DEFAULT_API_HOST)
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")


@dataclass(frozen=True)
class Repository:
    """A repository as people name it: ``docker.io`` and ``nvidia/cuda``."""

    registry: str
    name: str

    def __str__(self) -> str:
        return self.name if self.registry == DEFAULT_REGISTRY else f"{self.registry}/{self.name}"


@dataclass(frozen=True)
class Endpoint:
    """Where a repository is read: its own registry or the mirror that the site maps it to."""

    scheme: str
    host: str
    name: str
    registry: str

    @property
    def url(self) -> str:
        """The repository's root in the distribution API, without a trailing slash."""
        host = _DEFAULT_API_HOST if self.host == DEFAULT_REGISTRY else self.host
        return f"{self.scheme}://{host}/v2/{self.name}"

    @property
    def reference(self) -> str:
        """What an engine pulls from here, without tag or digest."""
        if self.host != DEFAULT_REGISTRY:
            return f"{self.host}/{self.name}"
        return self.name.removeprefix("library/")

    @property
    def may_carry_credentials(self) -> bool:
        """False where a password would cross a network in the clear."""
        return self.scheme == "https" or is_loopback(self.host)


def parse_repository(image: str) -> Repository:
    """Read an image's repository as Docker does (distribution/reference, "familiar names").

    Args:
        image: For example ``debian``, ``nvidia/cuda`` or ``registry.example:5000/team/app``; no tag.

    Raises:
        UsageError: ``bad-image-name``. One in a spec is refused when the spec is read.
    """
    first, slash, rest = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry, name = first, rest
    else:
        registry, name = DEFAULT_REGISTRY, image
    if registry in _DEFAULT_ALIASES:
        registry = DEFAULT_REGISTRY
        if "/" not in name:
            name = f"library/{name}"
    if not _REPOSITORY.fullmatch(name):
        raise UsageError(
            f"{image!r} is not the name of an image repository",
            code="bad-image-name",
            do="Write the repository alone, in lower case, such as nvidia/cuda; its tag goes into 'tag'.",
        )
    return Repository(registry, name)


def endpoint_of(repository: Repository, mirrors: Mapping[str, str]) -> Endpoint:
    """Where to read a repository.

    Args:
        repository: The repository.
        mirrors: Registry → mirror, as the site says: ``host[:port][/prefix]``, with or without a scheme.
            Without one it is https, and http on loopback, as engines do.

    Raises:
        UsageError: The mirror is not a host.
    """
    mirror = mirrors.get(repository.registry)
    if mirror is None:
        return Endpoint(
            _default_scheme(repository.registry), repository.registry, repository.name, repository.registry
        )
    parts = urlsplit(mirror if "://" in mirror else f"//{mirror}")
    if not parts.netloc or parts.scheme not in ("", "http", "https"):
        raise UsageError(
            f"the mirror {mirror!r} of {repository.registry} is not a host",
            code="bad-site-config",
            do="Write host:port, with a path where the mirror needs one, such as mirror.example:5000/hub.",
        )
    prefix = parts.path.strip("/")
    return Endpoint(
        scheme=parts.scheme or _default_scheme(parts.netloc),
        host=parts.netloc,
        name=f"{prefix}/{repository.name}" if prefix else repository.name,
        registry=repository.registry,
    )


def is_loopback(host: str) -> bool:
    """True for localhost and loopback addresses, with or without a port."""
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _default_scheme(host: str) -> str:
    return "http" if is_loopback(host) else "https"
