"""The draft of a spec for an image: what a spec can say of it, and as comments what it cannot."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from ruamel.yaml import YAML

from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.counting import counted
from stackbuild.importing.apt_part import AptPart, apt_part
from stackbuild.importing.base import RecognisedBase, pins_below, recognise_base
from stackbuild.importing.image_part import ImagePart, image_part
from stackbuild.importing.python_part import PythonPart, python_part
from stackbuild.scan.scan import Scan
from stackbuild.spec.model import Platform
from stackbuild.spec.rules import violations
from stackbuild.spec.schema import SCHEMA_FILE
from stackbuild.spec.validate import validate

_OCI = "org.opencontainers.image"
_AN_ID = re.compile(r"(sha256:)?[0-9a-f]{12,64}")
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")
# Where distributions and packages put no files of their own.
_OWN_FOLDERS = ("app", "srv", "home", "root", "workspace", "work", "data", "models", "code", "src", "opt")
_LONGEST_NAME = 100
_MOST_ROUNDS = 100  # each takes one value out; the bound is for safety alone


def draft_spec(scan: Scan, *, name: str = "") -> str:
    """Draft a spec, as YAML that loads.

    Packages are given with exact versions. What a spec cannot say, or what has to be checked, is in comments.

    Args:
        scan: The image.
        name: The stack's name; empty for ``stack_name``.
    """
    base = recognise_base(scan)
    if base.spec is None:
        return _external(scan, name or stack_name(scan))
    python = python_part(scan)
    apt = apt_part(scan, base.layers, python.python)
    image = image_part(scan, base)
    data = _data(scan, name or stack_name(scan), base, python, apt, image)
    data, refused = _without_invalid(data)
    notes = [*base.notes, *python.notes, *apt.notes, *image.notes, *_further_notes(scan, base), *refused]
    return "\n".join([*_head(scan), *_body(data, python), *_comments(notes)]) + "\n"


def stack_name(scan: Scan) -> str:
    """A stack's name for an image: as it is called; of its pin list only where that holds for exactly its layers.

    An image built on a stack inherits the stack's labels. Under the stack's name it would move the stack's tags.
    """
    description = scan.files.description
    pins = pins_that_hold(description.labels, description.diff_ids)
    last = scan.name.rstrip("/").rpartition("/")[2]
    called = "" if _AN_ID.fullmatch(last) else last.partition("@")[0].partition(":")[0]
    called = re.sub(r"\.(tar|tar\.gz|tgz|tar\.zst)$", "", called)
    title = "" if PINS_LABEL in description.labels else description.labels.get(f"{_OCI}.title", "")
    for text in (pins.stack if pins else "", called, title):
        found = _NOT_A_NAME.sub("-", text.lower()).strip("-")[:_LONGEST_NAME].strip("-")
        if found:
            return found
    return "imported"


def _summary(scan: Scan) -> str:
    """What the image says of itself; nothing where a stack below may have said it."""
    description = scan.files.description
    below = pins_below(scan)
    inherited = below is not None and pins_that_hold(description.labels, description.diff_ids) is None
    return "" if inherited else description.labels.get(f"{_OCI}.description", "")


def _data(
    scan: Scan,
    name: str,
    base: RecognisedBase,
    python: PythonPart,
    apt: AptPart,
    image: ImagePart,
) -> dict[str, Any]:
    platform = scan.files.description.platform
    data: dict[str, Any] = {
        "schema": 1,
        "name": name,
        "summary": _summary(scan),
        "base": dict(base.spec or {}),
        "python": python.python,
        "pip": bool(python.pip),
        "frameworks": {key: dict(value) for key, value in python.frameworks.items()},
        "packages": [*python.packages, *python.needed],
        "constraints": [f"pip=={python.pip}"] if python.pip else [],
        "apt": list(apt.packages),
        "image": dict(image.block),
        "platforms": [platform] if platform in get_args(Platform) else [],
    }
    return {key: value for key, value in data.items() if value not in ("", [], {}, False)}


def _without_invalid(data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What the spec's own models and rules accept, and a note for each value that they do not."""
    notes: list[str] = []
    for _ in range(_MOST_ROUNDS):
        spec, errors = validate(data)
        if spec is not None:
            found = [(violation.path, violation.message) for violation in violations(spec)]
        else:
            found = [(error["loc"], error["msg"]) for error in errors]
        removed = False
        for path, message in found:
            taken = _remove(data, path)
            if taken is not None:
                where, value = taken
                notes.append(f"{where[0]}: left out {'.'.join(map(str, where))} = {value!r}: {message}.")
                removed = True
                break
        if not removed:
            break
    return data, notes


def _remove(data: dict[str, Any], path: Sequence[str | int]) -> tuple[tuple[str | int, ...], Any] | None:
    """Take out the value at a path, or the nearest one around it; names of model variants in it are passed over."""
    node: Any = data
    holders: list[tuple[Any, Any]] = []
    for part in path:
        if _has(node, part):
            holders.append((node, part))
            node = node[part]
    needed = ("schema", "name", "base")
    if not holders or holders[0][1] in needed:
        return None
    holder, key = holders[-1]
    value = holder[key]
    del holder[key]
    return tuple(part for _, part in holders), value


def _has(node: Any, part: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(part, int) and part < len(node)
    return isinstance(node, dict) and part in node


def _further_notes(scan: Scan, base: RecognisedBase) -> Iterator[str]:
    platform = scan.files.description.platform
    if platform not in get_args(Platform):
        yield f"platforms: {platform} is not one a stack can be built for."
    conda = sum(package.kind == "conda" for package in scan.packages)
    if conda:
        yield f"packages: {counted(conda, 'package')} of conda; a stack takes them from a package index."
    for folder, count in _own_files(scan, base.layers).items():
        yield (
            f"files: /{folder} has {counted(count, 'file')} from layers above the base; copy them out and list them "
            "under files."
        )
    loose = sum(
        path.startswith("usr/local/") and placed.entry.kind == "file" and placed.layer >= base.layers
        and path not in scan.python.owners
        for path, placed in scan.files.placed()
    )  # fmt: skip
    if loose:
        yield f"files: /usr/local has {counted(loose, 'file')} that no Python package brings; a stack has no steps to make them."
    if any(
        path.startswith("etc/apt/sources.list.d/") and placed.layer >= base.layers
        for path, placed in scan.files.placed()
    ):
        yield "apt-sources: the image has further ones in /etc/apt/sources.list.d; each needs its key's sha256."
    yield "target: an image does not say what it must run on: gpus and driver."
    yield "indexes: an image does not say which index a package came from."


def _own_files(scan: Scan, base_layers: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for path, placed in scan.files.placed():
        if placed.layer < base_layers or placed.entry.kind != "file" or path in scan.python.owners:
            continue
        parts = path.split("/")
        if parts[0] not in _OWN_FOLDERS or len(parts) == 1 or path.startswith(("opt/venv/", "opt/nvidia/")):
            continue
        folder = "/".join(parts[: 2 if parts[0] in ("srv", "home", "opt") else 1])
        counts[folder] = counts.get(folder, 0) + 1
    return dict(sorted(counts.items()))


def _head(scan: Scan) -> Iterator[str]:
    yield f"# yaml-language-server: $schema={SCHEMA_FILE}"
    yield f"# Drafted from {_one_line(scan.name)}; what could not be expressed is at the end."


def _body(data: Mapping[str, Any], python: PythonPart) -> Iterator[str]:
    for key, value in data.items():
        if key == "packages":
            yield from _packages(value, python)
        elif key == "apt":
            yield "# Exact, as in the image. Mirrors drop what was superseded: then take away =VERSION."
            yield _yaml({key: value})
        else:
            yield _yaml({key: value})


def _packages(entries: Sequence[Any], python: PythonPart) -> Iterator[str]:
    needed = [entry for entry in entries if entry in python.needed]
    first = [entry for entry in entries if entry not in needed]
    yield "packages:"
    yield from (f"  {line}" for line in (_yaml(first).splitlines() if first else ()))
    if needed:
        yield "  # Needed by the others; here so that the lock takes the image's versions."
        yield from (f"  {line}" for line in _yaml(needed).splitlines())


def _comments(notes: Sequence[str]) -> Iterator[str]:
    yield ""
    yield "# To be checked or added by hand:"
    yield from (f"# * {_one_line(note)}" for note in dict.fromkeys(notes))


def _external(scan: Scan, name: str) -> str:
    """A spec of the image as others built it, where a stack cannot be built like it."""
    reference = scan.name if re.fullmatch(r"[a-z0-9][\w./:@-]*", scan.name) else f"{name}:latest"
    kinds = sorted({package.kind for package in scan.packages}) or ["none that is known"]
    notes = [
        f"base: a stack is built on Debian or Ubuntu; this is {scan.os.pretty_name or 'an unknown distribution'} "
        f"(packages: {', '.join(kinds)}). As an external stack it can be checked, scanned and verified.",
        "external: the reference must be one that the engine can pull.",
    ]
    data, _ = _without_invalid({"schema": 1, "name": name, "external": reference})
    return "\n".join([*_head(scan), _yaml(data), *_comments(notes)]) + "\n"


def _yaml(value: Any) -> str:
    writer = YAML()
    writer.width = 110
    writer.default_flow_style = False
    stream = io.StringIO()
    writer.dump(value, stream)
    return stream.getvalue().rstrip("\n")


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
