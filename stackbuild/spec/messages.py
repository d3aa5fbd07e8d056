"""What the models refuse, as plain sentences with a suggestion.

pydantic says which value is wrong; this module says it in the words of a spec, at the place in the file, and
offers the closest thing that would have been right.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import ErrorDetails

from stackbuild.spec.model import StackSpec
from stackbuild.spec.yaml_tree import Path, Place, YamlTree
from stackbuild.spelling import closest

# What a value must look like, where a pattern alone would not help a person. Keyed by the spec's path, * for any.
_EXPECTED: Mapping[str, str] = {
    "name": "lower-case letters and digits, in parts joined by one of . _ - (torch-cu130)",
    "base.tag": "an image tag: letters, digits and . _ -, at most 128 characters",
    "base.digest": "sha256: and 64 hex digits",
    "base.suite": "a Debian suite such as bookworm",
    "frameworks.*.variant": "cpu, cu and three digits (cu126, cu130), or auto",
    "packages.*.url": "an http(s) or file URL of a .whl file",
    "packages.*.sha256": "64 lower-case hex digits",
    "indexes.*.url": "an http(s) or file URL",
    "apt-sources.*.uri": "an http(s) URL",
    "apt-sources.*.key-sha256": "64 lower-case hex digits (sha256sum of the key file)",
    "files.*.to": "an absolute path in the image",
    "files.*.mode": 'an octal mode in quotes, such as "0755"',
    "image.env.[key]": "a name of letters, digits and _ that does not begin with a digit",
    "image.workdir": "an absolute path in the image",
    "image.expose.*": "a port, such as 8080 or 53/udp",
    "image.volumes.*": "an absolute path in the image",
    "image.user.name": "a user name: lower-case letters, digits, _ and -, at most 32",
    "image.user.home": "an absolute path in the image",
    "target.driver": '>= and a driver version, such as ">=580.65"',
    "verify.torch-model": "FILE.py:FUNCTION",
    "verify.memory-margin": "a percentage such as 10%",
    "verify.shm-size": "a size such as 512m or 1g",
    "waivers.*.code": "a finding's code, such as arch-not-covered",
    "waivers.*.until": "a date such as 2027-03-01",
}
_TYPE_NAMES = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "date_type": "a date such as 2027-03-01",
}


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    return StackSpec.model_json_schema(by_alias=True)


def _branches(node: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    if "$ref" in node:
        yield from _branches(_schema()["$defs"][node["$ref"].rsplit("/", 1)[1]])
        return
    options = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if not options:
        yield node
    for option in options:
        yield from _branches(option)


def _schemas_at(path: Path) -> list[Mapping[str, Any]]:
    nodes = list(_branches(_schema()))
    for part in path:
        following: list[Mapping[str, Any]] = []
        for node in nodes:
            if isinstance(part, int):
                child = node.get("items")
            else:
                child = node.get("properties", {}).get(part) or node.get("additionalProperties")
            if isinstance(child, dict):
                following.extend(_branches(child))
        nodes = following
    return nodes


def known_keys(path: Path) -> list[str]:
    """Return the keys that a mapping at ``path`` of a spec may have."""
    return sorted({key for node in _schemas_at(path) for key in node.get("properties", {})})


@lru_cache(maxsize=1)
def _sections_of_keys() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    places: list[tuple[str, Path]] = [("the top level", ())]
    for key in known_keys(()):
        places += [(f"'{key}'", (key,)), (f"an entry of '{key}'", (key, 0))]
    for name, path in places:
        for key in known_keys(path):
            sections.setdefault(key, []).append(name)
    return sections


def dotted(path: Path) -> str:
    """Write a path as a person would: ``packages[1].from``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def locate(tree: YamlTree, location: tuple[int | str, ...]) -> tuple[Path, bool]:
    """Translate pydantic's location into a path of the file.

    Returns:
        The path, without the names of union branches, and whether it went through such a branch.
    """
    path: Path = ()
    branched = False
    for part in location:
        if (*path, part) in tree.values:
            path = (*path, part)
        elif part != "[key]":
            branched = True
    return path, branched


def place_of(tree: YamlTree, path: Path, *, key: bool = False) -> Place:
    """Return where ``path`` stands: its value, or its key; the nearest parent's when it is not there."""
    while path:
        found = (tree.keys.get(path) if key else None) or tree.values.get(path)
        if found is not None:
            return found
        path = path[:-1]
    return Place(1, 1)


def explain(error: ErrorDetails, tree: YamlTree) -> tuple[Place, str, str]:
    """Return the place, the sentence and the suggestion for one of pydantic's errors."""
    kind, location = error["type"], error["loc"]
    path, _ = locate(tree, location)
    name = dotted(path)
    place = place_of(tree, path)
    if kind == "extra_forbidden":
        return place_of(tree, path, key=True), *_unknown_key(path)
    if kind == "missing":
        subject = f"'{name}' needs '{location[-1]}'" if name else f"the key '{location[-1]}' is missing"
        return place_of(tree, path, key=True), subject, _missing_suggestion(str(location[-1]), path)
    if location and location[-1] == "[key]":
        place = place_of(tree, path, key=True)
        if kind == "literal_error":
            return place, f"'{path[-1]}' is not known here", _choices(error, str(path[-1]))
        return place, f"'{path[-1]}' is not a name that can be used here", _expected((*path[:-1], "[key]"))
    if kind == "value_error":
        reason = str(error.get("ctx", {}).get("error", error["msg"]))
        return place, f"'{name}' {reason}" if name else reason, ""
    if error["input"] is None:
        return place_of(tree, path, key=True), f"'{name}' is empty", "Give it a value, or remove the key."
    return place, *_wrong_value(error, path, place)


def _unknown_key(path: Path) -> tuple[str, str]:
    key, parent = str(path[-1]), path[:-1]
    where = f" in '{dotted(parent)}'" if parent else ""
    message = f"unknown key '{key}'{where}"
    near = closest(key, known_keys(parent))
    if near is not None:
        return message, f"Did you mean '{near}'?"
    sections = _sections_of_keys().get(key.replace("_", "-"))
    if sections:
        return message, f"'{key}' belongs in {' or '.join(sections[:3])}."
    keys = known_keys(parent)
    return message, f"Known here: {', '.join(keys)}." if keys else ""


def _missing_suggestion(key: str, path: Path) -> str:
    if path == () and key == "schema":
        return "Begin the file with `schema: 1`."
    expected = _EXPECTED.get(_pattern((*path, key)))
    return f"Give {key}: {expected}." if expected else ""


def _pattern(path: Path) -> str:
    parts = ["*" if isinstance(part, int) else part for part in path]
    if len(parts) > 1 and parts[0] in ("frameworks", "indexes"):
        parts[1] = "*"
    return ".".join(parts)


def _expected(path: Path) -> str:
    expected = _EXPECTED.get(_pattern(path))
    if expected is None:
        descriptions = [node["description"] for node in _schemas_at(path) if "description" in node]
        expected = descriptions[0] if descriptions else None
    return f"Expected: {expected}." if expected else ""


def _choices(error: ErrorDetails, given: str) -> str:
    text = str(error.get("ctx", {}).get("expected", ""))
    near = closest(given, [word for word in text.split("'")[1::2] if word.strip()])
    return f"Did you mean '{near}'?" if near else f"Known: {text}." if text else ""


def _wrong_value(error: ErrorDetails, path: Path, place: Place) -> tuple[str, str]:
    kind, value, name = error["type"], error["input"], dotted(path)
    written = place.written or str(value)
    if len(written) > 60:
        written = written[:57] + "..."
    context = error.get("ctx", {})
    if kind in _TYPE_NAMES:
        return f"'{name}' must be {_TYPE_NAMES[kind]}, and is {_described(value, written)}", _retyped(
            kind, value, written, path
        )
    if kind == "literal_error":
        if path == ("schema",):
            return f"schema {written} is not known", "This version of stackbuild reads `schema: 1`."
        return f"'{name}' cannot be {written}", _choices(error, str(value))
    if kind == "too_short":
        return f"'{name}' needs at least {context.get('min_length', 1)} entry", ""
    if kind in ("string_too_short", "string_too_long"):
        return f"'{name}' is too {'short' if kind.endswith('short') else 'long'}", _expected(path)
    if kind.startswith(("greater_than", "less_than")):
        limit = context.get("ge", context.get("gt", context.get("le", context.get("lt"))))
        word = "at least" if kind.startswith("greater") else "at most"
        return f"'{name}' must be {word} {limit}, and is {written}", ""
    return f"'{name}' cannot be {written}", _expected(path)


def _described(value: Any, written: str) -> str:
    if isinstance(value, bool):
        return f"the truth value {written}"
    if isinstance(value, (int, float)):
        return f"the number {written}"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    return f"the text {written}"


def _retyped(kind: str, value: Any, written: str, path: Path) -> str:
    last = path[-1] if path else ""
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        if _pattern(path) in _EXPECTED:
            return _expected(path)
        reason = ", because YAML reads 3.10 as the number 3.1" if isinstance(value, float) else ""
        return f'Quote it{reason}: "{written}".'
    if path in (("image", "cmd"), ("image", "entrypoint")) and isinstance(value, str):
        return f"Write its words as a list: [{', '.join(_words(value))}]."
    if path == ("image", "user") and isinstance(value, str):
        return "Write {name: app, uid: 1001}."
    if kind == "tuple_type" and isinstance(value, (str, int, float)):
        return f"Write it as a list: [{written}]."
    if kind.startswith("bool") and isinstance(value, str):
        wanted = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
        meant = wanted.get(value.lower())
        return f"Write {meant}." if meant else ""
    if path[:1] == ("frameworks",) and isinstance(value, (str, float)) and len(path) == 2:
        return f'Write {last}: {{version: "{value}"}}.'
    if path[:1] == ("frameworks",) and isinstance(value, list):
        return 'Write one key per framework: torch: {version: "2.9.1", variant: cu130}.'
    if path == ("base",) and isinstance(value, str):
        image, _, tag = value.rpartition(":")
        return f"Write {{image: {image or value}, tag: {tag if image else 'TAG'}}}."
    if path[:2] == ("image", "env") and isinstance(value, list):
        return "Write one key per variable: NAME: value."
    return ""


def _words(command: str) -> list[str]:
    """The words of a command line as entries of a YAML list, in quotes where they need them."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that is not closed
        words = command.split()
    plain = re.compile(r"(?!(?:true|false|null)$)[A-Za-z/][\w./-]*", re.IGNORECASE)
    return [word if plain.fullmatch(word) else json.dumps(word) for word in words]
