"""Words of a Dockerfile (docs.docker.com, "Dockerfile reference"): quoted so that nothing is expanded."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from stackbuild.errors import SpecError

_PLAIN_PATH = re.compile(r"^[A-Za-z0-9._/@+=,:~-]+$")


def assignment(name: str, value: str) -> str:
    """``NAME="value"`` for ENV and LABEL.

    Raises:
        SpecError: A line break, which the classic builder cannot take in a value.
    """
    if "\n" in value or "\r" in value:
        raise SpecError(
            f"the value of {name} has a line break, which a Dockerfile cannot hold",
            code="dockerfile-line-break",
            do="Take it out, or build with --builder assemble, which can.",
        )
    key = name if re.fullmatch(r"[A-Za-z0-9._/-]+", name) else _quoted(name)
    return f"{key}={_quoted(value)}"


def words(arguments: Sequence[str]) -> str:
    """The JSON form of CMD, ENTRYPOINT, SHELL and VOLUME, where nothing is expanded."""
    return json.dumps(list(arguments), ensure_ascii=False)


def path(value: str) -> str:
    """A path for WORKDIR."""
    return value.replace("\\", "\\\\").replace("$", "\\$")


def copy_words(source: str, target: str) -> str:
    """Source and target of COPY: plain where that is safe, else in the JSON form."""
    if _PLAIN_PATH.match(source) and _PLAIN_PATH.match(target):
        return f"{source} {target}"
    return words([source, path(target)])


def shell(value: str) -> str:
    """One word of a RUN step."""
    return shlex.quote(value)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'
