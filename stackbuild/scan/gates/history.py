"""Gates over the commands that made an image, as its history tells them (case H03)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from stackbuild.findings import Finding, Verdict
from stackbuild.scan.readers.text import plain
from stackbuild.scan.scan import Scan

_LONGEST = 8_000  # characters of one step that are looked at
# The builders put |NUMBER and that many build arguments before a command that sees them.
_BUILD_ARGUMENTS = re.compile(r"^\|\d{1,4} (?:[A-Za-z_]\w{0,200}=\S* )*")
_URL = r"(?P<url>https?://[^\s\"'|;)>]{1,500})"
_FETCH = r"\b(?:curl|wget)\b[^|;&]{0,400}?" + _URL
_PATH = r"(?:[^\s|]{0,60}/)?"
_SHELL = rf"(?:{_PATH}env\s+(?:\S+=\S*\s+)*)?{_PATH}(?:(?:ba|da|z|k)?sh|python[0-9.]*|perl)\b"
# What fetches a program and runs it unseen; and ADD of a URL, as BuildKit's history has it (the classic builder's
# history has the content's hash in place of the URL).
_RUNS_WHAT_IT_FETCHES = (
    re.compile(rf"{_FETCH}[^|;&]{{0,200}}\|\s*(?:sudo\s+(?:-\S+\s+)*)?(?:{_SHELL})"),
    re.compile(rf"\b(?:ba|da|z|k)?sh\s+(?:-\w+\s+)*[\"']?(?:<\(|\$\(|`)\s*{_FETCH}"),
    re.compile(rf"^ADD\s+(?:--\S+\s+)*{_URL}"),
)
# A version, or a commit or hash, somewhere in the URL keeps it from moving.
_PINNED = re.compile(r"\d+\.\d+|(?<![0-9a-f])[0-9a-f]{7,64}(?![0-9a-f])")
_CHECKED = re.compile(r"^ADD\s+(?:--\S+\s+)*--checksum=|\bsha(?:256|512)sum\b[^|;&]{0,200}(?:-c|--check)\b")


def judge_installers(scan: Scan) -> Iterator[Finding]:
    """Gate ``unpinned-installer``: a step fetched a program from a URL without a version and ran it or kept it.

    Args:
        scan: The image.
    """
    for number, command in enumerate(_commands(scan), start=1):
        for url in unpinned_urls(command):
            yield Finding(
                code="unpinned-installer",
                verdict=Verdict.WARN,
                subject=url,
                measured=command[:200],
                required="a version or commit in the URL, or a checksum",
                summary=f"Step {number} of the history takes {url} as it is on the day: a rebuild may get another program.",
                next_step="Name a version in the URL and check its sha256, or take the program from a package.",
                details={"step": number, "command": command[:2000]},
            )


def has_history(scan: Scan) -> bool:
    """Whether the image says which commands made it."""
    return bool(_commands(scan))


def unpinned_urls(command: str) -> tuple[str, ...]:
    """The URLs without a version that one build step fetches programs from, in order.

    Args:
        command: A ``RUN`` command or an ``ADD`` instruction.
    """
    if _CHECKED.search(command):
        return ()
    found = [
        (match.start("url"), match["url"])
        for pattern in _RUNS_WHAT_IT_FETCHES
        for match in pattern.finditer(command)
    ]
    return tuple(dict.fromkeys(url for _, url in sorted(found) if not _PINNED.search(_path(url))))


def _path(url: str) -> str:
    """What comes after the host: the digits of an address say nothing of a version."""
    return url.split("/", 3)[3] if url.count("/") > 2 else ""


def _commands(scan: Scan) -> Sequence[str]:
    history = scan.files.description.config.get("history")
    steps = [step for step in history if isinstance(step, Mapping)] if isinstance(history, Sequence) else []
    return [_instruction(plain(str(step.get("created_by") or ""))[:_LONGEST]) for step in steps]


def _instruction(created_by: str) -> str:
    """The command or instruction without what builders put around it."""
    text = " ".join(created_by.split()).removesuffix("# buildkit").removeprefix("RUN ")
    text = _BUILD_ARGUMENTS.sub("", text).removeprefix("/bin/sh -c ")
    return text.removeprefix("#(nop) ").strip()
