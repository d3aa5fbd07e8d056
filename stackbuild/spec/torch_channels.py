"""torch's own channels: one index per variant below one root (pytorch.org, "Get started")."""

from __future__ import annotations

from urllib.parse import urlsplit

from packaging.version import Version

from stackbuild.site_config import PYTORCH_CHANNELS


def is_root_channel(url: str) -> bool:
    """Return whether a URL is torch's channel root, which lists every variant at once (case B03)."""
    parts = urlsplit(url)
    return parts.hostname == "download.pytorch.org" and parts.path.rstrip("/") in (
        "",
        "/whl",
        "/whl/nightly",
        "/whl/test",
        "/whl/torch_stable.html",
    )


def suggested_channel(version: str | None, variant: str | None) -> str:
    """Return the channel of a variant; without one, the newest CUDA channel known for that torch release."""
    if variant is None or variant == "auto":
        from stackbuild.facts.tables import Facts  # only a mistaken spec pays for reading the tables

        numbers = (*Version(version).release, 0, 0)[:3] if version else ()
        release = Facts().torch_release(".".join(str(number) for number in numbers))
        cuda = [channel for channel in (release.channels if release else ()) if channel.startswith("cu")]
        variant = max(cuda, key=lambda channel: int(channel[2:]), default="cuXXX")
    return f"{PYTORCH_CHANNELS}/{variant}"
