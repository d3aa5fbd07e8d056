"""YAML text to plain data that remembers where every key and value stands.

Everything a hostile or unlucky file can hold ends in a sentence: binary, other encodings, tabs, duplicate
keys, alias bombs, custom tags, endless nesting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from stackbuild.errors import SpecProblem

MAX_BYTES = 262_144  # the longest spec in use is a few kilobytes
MAX_DEPTH = 40
MAX_EVENTS = 20_000

Path = tuple[str | int, ...]
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Place:
    """Where a value stands: line and column from 1, and its text as written (scalars only)."""

    line: int
    column: int
    written: str = ""


@dataclass
class YamlTree:
    """Plain data with the place of each key and value, and what was wrong with the text."""

    data: Any = None
    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)
    problems: list[SpecProblem] = field(default_factory=list)


class YamlReader:
    """Reads one file's bytes; ``problem`` makes problems that show its source lines."""

    def __init__(self, content: bytes, file: str) -> None:
        self._file = file
        self._content = content
        self._lines: list[str] = []
        self._tree = YamlTree()

    def read(self) -> YamlTree:
        """Return the tree; with ``problems`` when the text is not usable YAML."""
        text = self._decode()
        if text is None:
            return self._tree
        self._lines = text.split("\n")
        try:
            if self._shape_is_sane(text):
                root = YAML(typ="safe", pure=True).compose(text)
                self._read_root(root)
        except MarkedYAMLError as error:
            self._report_yaml_error(error)
        except (YAMLError, ValueError, OverflowError) as error:
            self._report(0, 0, f"this is not YAML: {str(error).splitlines()[0]}")
        return self._tree

    def problem(
        self, place: Place, message: str, suggestion: str = "", code: str = "spec-invalid"
    ) -> SpecProblem:
        """Make a problem at ``place`` that shows its source line."""
        text = self._lines[place.line - 1].rstrip("\r") if 0 < place.line <= len(self._lines) else ""
        if len(text) > 160:  # a caret under an endless line helps nobody
            text = ""
        return SpecProblem(code, self._file, place.line, place.column, message, suggestion, text)

    def _report(self, line: int, column: int, message: str, suggestion: str = "") -> None:
        self._tree.problems.append(self.problem(Place(line, column), message, suggestion, "spec-not-yaml"))

    def _decode(self) -> str | None:
        content = self._content
        if len(content) > MAX_BYTES:
            self._report(0, 0, f"the file has {len(content)} bytes; a spec has at most {MAX_BYTES}")
            return None
        if b"\0" in content:
            self._report(0, 0, "the file holds NUL bytes, so it is binary or UTF-16, not UTF-8 text")
            return None
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = content[: error.start]
            line = before.count(b"\n") + 1
            column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
            self._report(
                line, column, f"byte 0x{content[error.start]:02x} is not UTF-8", "Save the file as UTF-8."
            )
            return None
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _shape_is_sane(self, text: str) -> bool:
        """Walk the events, which needs no recursion, to refuse what composing could not survive."""
        depth = 0
        for number, event in enumerate(YAML(typ="safe", pure=True).parse(text)):
            if number > MAX_EVENTS:
                self._report(0, 0, f"more than {MAX_EVENTS} keys and values")
                return False
            if isinstance(event, CollectionStartEvent):
                depth += 1
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                mark = event.start_mark
                self._report(mark.line + 1, mark.column + 1, f"nested deeper than {MAX_DEPTH} levels")
                return False
            if isinstance(event, NodeEvent) and (isinstance(event, AliasEvent) or event.anchor is not None):
                mark = event.start_mark
                self._report(
                    mark.line + 1,
                    mark.column + 1,
                    "anchors and aliases are not part of a spec",
                    "Write the value out where it is needed.",
                )
                return False
        return True

    def _report_yaml_error(self, error: MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        what = " ".join(str(part) for part in (error.context, error.problem) if part) or "cannot be read"
        source = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        suggestion = ""
        if "\t" in source[:column] or "'\\t'" in what:
            suggestion = "Indent with spaces: YAML does not allow tabs there."
        elif "could not find expected ':'" in what:
            suggestion = "Write `key: value`, with a space after the colon."
        elif "mapping values are not allowed" in what:
            suggestion = "Put quotes around a value that holds `: `, or check the indentation."
        elif "found character" in what:
            suggestion = "Put quotes around a value that begins with that character."
        self._report(line, column, f"this is not YAML: {what}", suggestion)

    def _read_root(self, root: Node | None) -> None:
        if root is None:
            self._report(0, 0, "the file is empty", "`stackbuild init NAME` writes a spec to start from.")
        elif not isinstance(root, MappingNode):
            kind = "a list" if isinstance(root, SequenceNode) else "a single text"
            self._report(
                root.start_mark.line + 1,
                root.start_mark.column + 1,
                f"a spec is a mapping of keys to values, and this is {kind}",
                "`stackbuild init NAME` writes a spec to start from.",
            )
        else:
            self._tree.data = self._convert(root, ())

    def _convert(self, node: Node, path: Path) -> Any:
        mark = node.start_mark
        written = mark.buffer[mark.index : node.end_mark.index] if isinstance(node, ScalarNode) else ""
        self._tree.values[path] = Place(mark.line + 1, mark.column + 1, written.strip())
        if isinstance(node, MappingNode):
            return self._convert_mapping(node, path)
        if isinstance(node, SequenceNode):
            self._check_tag(node, "seq")
            return [self._convert(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._convert_scalar(node, path)

    def _convert_mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        self._check_tag(node, "map")
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            mark = key_node.start_mark
            place = Place(mark.line + 1, mark.column + 1)
            if not isinstance(key_node, ScalarNode):
                self._report(place.line, place.column, "a key must be a plain text")
                continue
            # A key is always text: `3.10: x` or `null: x` cannot mean anything else in a spec.
            key = str(key_node.value)
            if _has_surrogate(key):
                self._report(place.line, place.column, "a key holds half of a character (a lone surrogate)")
                continue
            if key in result:
                first = self._tree.keys[(*path, key)]
                self._report(
                    place.line,
                    place.column,
                    f"the key '{key}' is given twice (first in line {first.line})",
                    "Keep one of the two.",
                )
                continue
            self._tree.keys[(*path, key)] = place
            result[key] = self._convert(value_node, (*path, key))
        return result

    def _convert_scalar(self, node: Node, path: Path) -> Any:
        place = self._tree.values[path]
        text = str(node.value)
        kind = str(node.tag).removeprefix(_TAG)
        if _has_surrogate(text):
            self._report(place.line, place.column, "the value holds half of a character (a lone surrogate)")
            return None
        if kind in ("str", "timestamp"):
            return text
        try:
            value: Any = None
            if kind == "null":
                return None
            if kind == "bool":
                return text.lower() == "true"
            if kind == "int":
                value = _integer(text)
                # JSON, through which the models are checked, has no use for more.
                if abs(value) > 2**63:
                    raise OverflowError
                return value
            if kind == "float":
                value = float(text.replace("_", ""))
                if not math.isfinite(value):
                    raise OverflowError
                return value
        except (ValueError, OverflowError):
            # What YAML takes for a number but is none we can use is left to the models as text.
            return text
        self._check_tag(node, "str")
        return text

    def _check_tag(self, node: Node, expected: str) -> None:
        if str(node.tag) != _TAG + expected:
            mark = node.start_mark
            tag = str(node.tag).replace(_TAG, "!!")
            self._report(
                mark.line + 1, mark.column + 1, f"the YAML tag {tag} is not part of a spec", "Remove the tag."
            )


def _integer(text: str) -> int:
    plain = text.replace("_", "")
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-")
    return sign * (int(digits, 0) if digits[:2].lower() in ("0x", "0o", "0b") else int(digits))


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
