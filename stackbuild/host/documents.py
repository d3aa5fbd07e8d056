"""JSON and YAML as plain data in which numbers stay as they were written: 580.65 is a version here."""

from __future__ import annotations

import json
from typing import Any

from stackbuild.errors import UsageError

_MAX_YAML_BYTES = 4 * 1024 * 1024  # some 10,000 hosts by hand; longer lists are JSON
_MAX_DEPTH = 50


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
    """Parse YAML; every scalar becomes its text, or None. A text that is no YAML, or no more than one
    scalar, gives None: it is no document of ours.

    Raises:
        UsageError: ``host-unreadable``: anchors, tags, duplicate keys, more than 4 MiB, or nested too deep.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

    if len(text) > _MAX_YAML_BYTES:
        return None
    try:
        depth = 0
        # The events need no recursion; composing what they refuse would.
        for event in YAML(typ="safe", pure=True).parse(text):
            depth += isinstance(event, CollectionStartEvent)
            depth -= isinstance(event, CollectionEndEvent)
            if depth > _MAX_DEPTH:
                raise _unreadable(f"is nested deeper than {_MAX_DEPTH} levels")
            if isinstance(event, NodeEvent) and (isinstance(event, AliasEvent) or event.anchor is not None):
                raise _unreadable("uses anchors or aliases; write the values out")
        node = YAML(typ="safe", pure=True).compose(text)
    except (YAMLError, ValueError, OverflowError):
        return None
    return _plain(node)


def _plain(node: Any) -> Any:
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            written = str(key.value)
            if written in found:
                raise _unreadable(f"has the key {written!r} twice, in line {key.start_mark.line + 1}")
            found[written] = _plain(value)
        return found
    if isinstance(node, SequenceNode):
        return [_plain(item) for item in node.value]
    if node is None or str(node.tag).endswith(":null"):
        return None
    return str(node.value)


def _unreadable(what: str) -> UsageError:
    return UsageError(f"The file {what}.", code="host-unreadable", do="docs/hosts.md shows what is read.")
