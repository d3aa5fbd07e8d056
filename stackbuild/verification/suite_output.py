"""Reads the marked stream that the suite writes, a chunk at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from stackbuild.verification.model import GateResult

MARK = b"@stackbuild@ "
# A line longer than this is no result: a gate's answer has at most 8 MiB.
_LONGEST_LINE = 16 * 1024 * 1024
_LOG_KEPT = 64 * 1024


class SuiteOutput:
    """Takes what the container prints; keeps results, and the rest as a log of bounded size.

    Args:
        on_begin: Called with a gate's name when it begins.

    Attributes:
        bound: What the run says it was of; empty for one that was started here.
    """

    def __init__(self, on_begin: Callable[[str], None] | None = None) -> None:
        self.results: dict[str, GateResult] = {}
        self.python = ""
        self.python_too_old = ""
        self.bound: dict[str, Any] = {}
        self.finished = False
        self.log_bytes = 0
        self._on_begin = on_begin
        self._log = b""
        self._line = b""

    def feed(self, stdout: bytes, stderr: bytes = b"") -> None:
        """Take the next bytes of both streams."""
        if stderr:
            self._keep(stderr)
        *lines, self._line = (self._line + stdout).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._line) > _LONGEST_LINE:
            self._keep(self._line)
            self._line = b""

    def close(self) -> None:
        """The streams have ended: what is left without a line end is log."""
        if self._line:
            self._take(self._line)
            self._line = b""

    @property
    def log(self) -> str:
        """The last part of what was no result."""
        return self._log.decode("utf-8", "replace")

    def _keep(self, data: bytes) -> None:
        self.log_bytes += len(data)
        self._log = (self._log + data)[-_LOG_KEPT:]

    def _take(self, line: bytes) -> None:
        if not line.startswith(MARK):
            self._keep(line + b"\n")
            return
        try:
            self._event(json.loads(line[len(MARK) :]))
        except (ValueError, KeyError, TypeError, ValidationError):
            # A line cut by the container's end; what it was to say is then missing, which is judged.
            self._keep(line + b"\n")

    def _event(self, event: Any) -> None:
        if not isinstance(event, dict):
            raise TypeError("an event is an object")
        kind = event.pop("event")
        if kind == "suite":
            self.python = event["python"]
            self.bound = dict(event.get("bound") or {})
        elif kind == "python-too-old":
            self.python_too_old = event["version"]
        elif kind == "begin" and self._on_begin is not None:
            self._on_begin(event["name"])
        elif kind == "gate":
            event.pop("signal", None)
            result = GateResult.model_validate(event)
            self.results[result.name] = result
        elif kind == "end":
            self.finished = True
