"""What the manifests and scripts have in common."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from stackbuild.errors import UsageError
from stackbuild.verification.elsewhere import ElsewhereRun

# What a job may take beside the suite's own limit: an image of many gigabytes is pulled first.
PULL_SECONDS = 1800


def each_string(value: Any, change: Callable[[str], str]) -> Any:
    """The same lists and mappings with every text changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: each_string(inner, change) for key, inner in value.items()}
    return [each_string(inner, change) for inner in value] if isinstance(value, list) else value


def head(run: ElsewhereRun, steps: list[str], output: str = "output.txt") -> str:
    """A comment that says what to do with the file.

    Args:
        run: The run.
        steps: Commands that run it and keep its output.
        output: The file that holds the output then.
    """
    lines = [
        f"Runs stackbuild's verification suite in {run.bound.image}, and prints the result as marked lines.",
        *(f"  {step}" for step in steps),
        f"  stackbuild verify {run.asked} --collect {output}",
    ]
    return "".join(f"# {_one_line(line)}\n" for line in lines)


def _one_line(text: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", text)


def yaml_text(document: dict[str, Any]) -> str:
    """A document as YAML that a person can read."""
    writer = YAML()
    writer.width = 1_000_000_000  # a long line of base64 stays one
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    writer.dump(
        each_string(document, lambda text: LiteralScalarString(text) if "\n" in text else text), stream
    )
    return stream.getvalue()


def too_large(run: ElsewhereRun, what: str, do: str) -> UsageError:
    """The error that the stack's own files do not fit.

    Args:
        run: The run.
        what: What they do not fit in.
        do: What to do.
    """
    size = sum(len(content) for content in run.files.values())
    return UsageError(
        f"The suite with the stack's own files has {size} bytes, which {what} cannot hold.",
        code="emit-too-large",
        where=run.bound.image,
        do=do,
    )
