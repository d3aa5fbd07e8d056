"""The environment in an image's configuration."""

from __future__ import annotations

from collections.abc import Mapping


def environment_of(config: Mapping[str, object]) -> dict[str, str]:
    """The variables that a container of an image starts with, in the configuration's order.

    Args:
        config: An image's configuration, or the part ``config`` of it (OCI image specification 1.1, config.md: ``Env``
            is a list of ``NAME=VALUE``). What is no such entry is passed over.
    """
    inner = config.get("config")
    listed = inner.get("Env") if isinstance(inner, Mapping) else config.get("Env")
    entries = listed if isinstance(listed, list | tuple) else ()
    pairs = (entry.partition("=") for entry in entries if isinstance(entry, str))
    return {name: value for name, equals, value in pairs if equals}
