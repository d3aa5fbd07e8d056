"""Reading the stream of a classic build: which step failed, with its own last lines, and why.

An engine answers 200 and reports the failure inside the stream; the reason that pip or apt gave is in
the lines before it (docker-notes, "Build").
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stackbuild.engine.translate import disk_full
from stackbuild.errors import BuildError, LockError, NotJudgedError, StackbuildError

LAST_LINES = 25

_STEP = re.compile(r"^Step (\d+)/(\d+) : (.*)$")
_LAYER = re.compile(r"^ ---> ([0-9a-f]{12,64})$")
_BUILT = re.compile(r"^Successfully built ([0-9a-f]{12,64})$")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class _Signature:
    pattern: re.Pattern[str]
    code: str
    what: str
    do: str
    error: type[StackbuildError] = BuildError


# In order: the first that matches a line of the failed step names the failure.
_SIGNATURES = (
    _Signature(
        re.compile(r"No matching distribution found for |Could not find a version that satisfies", re.I),
        "wheel-not-found",
        "A wheel of the lock is not on the indexes that the build reached.",
        "Lock again, or map the index to a mirror that has it in stackbuild.toml.",
    ),
    _Signature(
        re.compile(r"DO NOT MATCH THE HASHES|hashes? (?:are|is) required|Expected sha256", re.I),
        "artifact-changed",
        "A file has another hash than the lock says.",
        "Do not build from it: find out who changed it, then lock again.",
        LockError,
    ),
    _Signature(
        re.compile(
            r"CERTIFICATE_VERIFY_FAILED|certificate verif(?:y|ication) failed|unknown authority", re.I
        ),
        "certificate-not-trusted",
        "The build container does not trust the certificate of an index; a proxy may inspect TLS.",
        "Build with --builder assemble, which needs no network inside, or name the CA in stackbuild.toml.",
        NotJudgedError,
    ),
    _Signature(
        re.compile(
            r"Version '[^']+' for '[^']+' was not found|Unable to locate package|\b404 +Not Found\b.*\.deb",
            re.I,
        ),
        "deb-superseded",
        "A Debian package of the lock is no longer on the mirror.",
        "Lock again; or name a snapshot archive in stackbuild.toml.",
        LockError,
    ),
    _Signature(
        re.compile(
            r"Temporary failure (?:in name resolution|resolving)|Name or service not known"
            r"|Network is unreachable|Connection refused|Connection timed out|Read timed out"
            r"|Max retries exceeded",
            re.I,
        ),
        "index-unreachable",
        "The build container could not reach an index or mirror.",
        "Check the network of the engine; or build with --builder assemble, which needs none inside.",
        NotJudgedError,
    ),
    _Signature(
        re.compile(r"toomanyrequests|rate limit", re.I),
        "registry-rate-limited",
        "The registry limits how often this machine may pull.",
        "Wait, log in, or map the registry to a mirror in stackbuild.toml.",
        NotJudgedError,
    ),
    _Signature(
        re.compile(r"requires BuildKit", re.I),
        "needs-buildkit",
        "The Dockerfile uses syntax that only BuildKit knows; the Docker SDK talks to the classic builder.",
        "Build it with docker buildx, or take the BuildKit syntax out.",
    ),
)


def classify_build_failure(lines: Iterable[str]) -> tuple[str, str]:
    """Name the cause of a failed step.

    Args:
        lines: Output of the failed step, oldest first.

    Returns:
        (code, the line that shows it); code is ``build-step-failed`` when nothing known is in the lines.
    """
    text = list(lines)
    for signature in _SIGNATURES:
        for line in text:
            if signature.pattern.search(line):
                return signature.code, line.strip()
    return "build-step-failed", ""


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
        detail = "\n".join(lines[-LAST_LINES:])
        if any("no space left on device" in line.lower() for line in lines):
            return disk_full(self._step, detail)
        code, _ = classify_build_failure(lines)
        for signature in _SIGNATURES:
            if signature.code == code:
                return signature.error(
                    signature.what, code=code, where=self._step, detail=detail, do=signature.do
                )
        return BuildError(
            "A step of the Dockerfile failed.",
            code=code,
            where=self._step,
            detail=detail,
            do="Its last lines are above; -v shows the whole build.",
        )
