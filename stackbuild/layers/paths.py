"""Which paths an input may have."""

from __future__ import annotations

from stackbuild.errors import BuildError

WHITEOUT_PREFIX = ".wh."  # OCI image-spec v1.1, layer.md: such a name deletes NAME of the layers below


def check_path(path: str, owner: str = "") -> None:
    """Refuse a path that could land anywhere but below the root, or that an engine would take as a command.

    Args:
        path: As an input gives it; relative, without leading slash.
        owner: The input, named in the message.

    Raises:
        BuildError: ``path-escape`` or ``whiteout-refused``.
    """
    source = f"{owner}: " if owner else ""
    parts = path.split("/")
    if not path or path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise BuildError(
            f"{source}the path {path!r} is absolute, empty or leaves its folder",
            code="path-escape",
            do="Do not use this input; report it to whoever made it.",
        )
    if any(part.startswith(WHITEOUT_PREFIX) for part in parts):
        raise BuildError(
            f"{source}the path {path!r} has a name that begins with {WHITEOUT_PREFIX!r}: engines would "
            "delete a file of the base",
            code="whiteout-refused",
            do="Do not use this input; report it to whoever made it.",
        )
