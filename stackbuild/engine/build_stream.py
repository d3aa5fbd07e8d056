"""Reading the stream of a classic build: which step failed, with its own last lines, and why.

An engine answers 200 and reports the failure inside the stream; the reason that pip or apt gave is in
the lines before it (docker-notes, "Build").
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stackbuild.engine.build_failure import build_failure
from stackbuild.errors import NotJudgedError, StackbuildError

LAST_LINES = 25

_STEP = re.compile(r"^Step (\d+)/(\d+) : (.*)$")
_LAYER = re.compile(r"^ ---> ([0-9a-f]{12,64})$")
_BUILT = re.compile(r"^Successfully built ([0-9a-f]{12,64})$")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass
class BuildStream:
    """Collects one build's stream.

    Attributes:
        made: Short ids of the images this build made itself, oldest first (cached steps are not in it).
        image: The short id of the built image once the engine said so.
    """

    on_line: Callable[[str], None] | None = None
    made: list[str] = field(default_factory=list)
    image: str = ""
    _step: str = ""
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=400))
    _cached: bool = False

    def feed(self, chunk: Mapping[str, Any]) -> None:
        """Take one decoded chunk of the stream.

        Raises:
            StackbuildError: The chunk reports the failure of the build.
        """
        if "errorDetail" in chunk or "error" in chunk:
            detail = chunk.get("errorDetail") or {}
            raise self.failure(str(detail.get("message") or chunk.get("error") or ""))
        if "aux" in chunk and isinstance(chunk["aux"], Mapping) and chunk["aux"].get("ID"):
            self.image = str(chunk["aux"]["ID"])
        for line in _ANSI.sub("", str(chunk.get("stream") or chunk.get("status") or "")).splitlines():
            self._take(line)

    def _take(self, line: str) -> None:
        if not line.strip():
            return
        if _STEP.match(line):
            self._step, self._cached = line.strip(), False
            self._lines.clear()
        elif line.strip() == "---> Using cache":
            self._cached = True
        elif match := _LAYER.match(line):
            if not self._cached and not self._step.partition(" : ")[2].upper().startswith("FROM "):
                self.made.append(match[1])
        elif match := _BUILT.match(line):
            self.image = self.image or match[1]
        else:
            self._lines.append(line.rstrip())
        if self.on_line is not None:
            self.on_line(line.rstrip())

    def finish(self) -> str:
        """The built image's id.

        Raises:
            NotJudgedError: ``build-stream-truncated``: neither a success nor an error came.
        """
        if not self.image:
            raise NotJudgedError(
                "The engine's build stream ended with neither success nor error.",
                code="build-stream-truncated",
                where=self._step,
                detail="\n".join(list(self._lines)[-LAST_LINES:]),
                do="The engine may have been stopped: see whether it runs, then build again.",
            )
        return self.image

    def failure(self, message: str) -> StackbuildError:
        """The error for a build that ended with the engine's ``message``."""
        lines = [*self._lines, message.strip()]
        return build_failure(lines, self._step, "\n".join(lines[-LAST_LINES:]))
