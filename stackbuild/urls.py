"""URLs as they are shown, and those that name a file of this machine."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit


def without_credentials(url: str) -> str:
    """The URL without user and password: nothing secret is shown, nor goes into an image or a Dockerfile."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def local_path(place: str) -> Path | None:
    """The file that a path or a ``file://`` URL names; None for a URL of another scheme."""
    if place.startswith("file://"):
        return Path(unquote(urlsplit(place).path))
    return None if "://" in place else Path(place)
