"""JSON and YAML as plain data in which numbers stay as they were written: 580.65 is a version here; and lines."""

from __future__ import annotations

import json
import re
from typing import Any

from stackbuild.errors import UsageError
from stackbuild.sizes import size_text

UNDERSTOOD = (
    "Understood are: the JSON of 'stackbuild host --format json', JSON or YAML by hand, nvidia-smi (the "
    "table, -q, -q -x, -L, --query-gpu with a header), 'kubectl get nodes -o json', 'scontrol show node' and "
    "'sinfo -N -o \"%N %G\"'; docs/hosts.md shows each."
)
_MAX_YAML_BYTES = 2_000_000  # thousands of hosts by hand; longer lists are JSON
_MAX_EVENTS = 200_000
_MAX_DEPTH = 50
_NULLS = ("", "~", "null", "Null", "NULL")
# After comments and blank lines: a key with its colon, a dash, or a document's beginning.
_BEGINNING = re.compile(
    r"(?:[ \t]*(?:#[^\n]*)?\n|%[^\n]*\n)*+[ \t]*(?:-(?:[ \t\n]|--)|[\w\"'.][^\n:]{0,80}:(?:\s|$))"
)


def filled_lines(text: str, longest: int) -> list[str]:
    """The lines that have something in them and are no longer than a tool's lines are."""
    return [line for line in text.splitlines() if line.strip() and len(line) <= longest]


def parse_json(text: str) -> Any:
    """Parse JSON; numbers become the texts they were written as.

    Raises:
        UsageError: ``host-unreadable``: not JSON, or nested without end.
    """
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise _unreadable(f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise _unreadable("is JSON nested without end") from error


def parse_yaml(text: str) -> Any:
    """Parse YAML; every scalar becomes its text, or None. The events are read in one pass, which no nesting
    and no alias can blow up.

    Args:
        text: What may be YAML; a text whose first line cannot begin a mapping or list gives None.

    Raises:
        UsageError: ``host-unreadable``: not YAML, anchors, duplicate keys, more than 2 MB, nested too deep.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if not _BEGINNING.match(text):
        return None
    if len(text) > _MAX_YAML_BYTES:
        raise _unreadable(
            f"is YAML of more than {size_text(_MAX_YAML_BYTES)}; write a fleet of that size as JSON"
        )
    document = _Document()
    try:
        for number, event in enumerate(YAML(typ="safe", pure=True).parse(text)):
            if number > _MAX_EVENTS:
                raise _unreadable("has too many keys and values for YAML; write a fleet of that size as JSON")
            document.add(event)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise _unreadable(f"is not YAML: {error.problem or 'it cannot be read'}{line}") from error
    except (YAMLError, ValueError, OverflowError) as error:
        raise _unreadable(f"is not YAML: {str(error).splitlines()[0]}") from error
    return document.root


class _Document:
    """Plain data, as it grows from YAML's events."""

    def __init__(self) -> None:
        self.root: Any = None
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []  # the key that waits for its value, one for each open collection
        self._begun = False

    def add(self, event: Any) -> None:
        """Take one event."""
        from ruamel.yaml.events import (
            AliasEvent,
            CollectionEndEvent,
            DocumentStartEvent,
            MappingStartEvent,
            NodeEvent,
            ScalarEvent,
        )

        line = event.start_mark.line + 1
        if isinstance(event, DocumentStartEvent):
            if self._begun:
                raise _unreadable(f"has a second YAML document in line {line}; write one list")
            self._begun = True
        elif isinstance(event, CollectionEndEvent):
            self._open.pop()
            self._keys.pop()
        elif isinstance(event, NodeEvent):
            if isinstance(event, AliasEvent) or event.anchor is not None:
                raise _unreadable(f"uses an anchor or alias in line {line}; write the value out")
            if isinstance(event, ScalarEvent):
                null = event.style is None and event.value in _NULLS
                self._put(event.value, None if null else event.value, line)
                return
            value: dict[str, Any] | list[Any] = {} if isinstance(event, MappingStartEvent) else []
            self._put("", value, line)
            self._open.append(value)
            self._keys.append(None)
            if len(self._open) > _MAX_DEPTH:
                raise _unreadable(f"is nested deeper than {_MAX_DEPTH} levels in line {line}")

    def _put(self, written: str, value: Any, line: int) -> None:
        if not self._open:
            self.root = value
            return
        parent = self._open[-1]
        if isinstance(parent, list):
            parent.append(value)
            return
        key = self._keys[-1]
        if key is not None:
            parent[key] = value
            self._keys[-1] = None
        elif isinstance(value, dict | list):
            raise _unreadable(f"has a key that is no text in line {line}")
        elif written in parent:
            raise _unreadable(f"has the key {written!r} twice, in line {line}")
        else:
            self._keys[-1] = written


def _unreadable(what: str) -> UsageError:
    return UsageError(f"The file {what}.", code="host-unreadable", do=UNDERSTOOD)
