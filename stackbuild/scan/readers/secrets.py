"""Keys, tokens and passwords in files, by their form. What is found is named, never kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A larger file is no configuration or key file.
LARGEST = 512 << 10


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of secret: a text that every one of them has, and the whole form."""

    kind: str
    literal: bytes
    pattern: re.Pattern[bytes]


def _form(kind: str, literal: bytes, pattern: bytes) -> _Form:
    return _Form(kind, literal, re.compile(pattern))


_LITERALS_IN_CODE = (b"PRIVATE KEY-----",)

# Forms as their issuers document them (prefix and alphabet); a form without a prefix gives too many false alarms.
_FORMS = (
    _form(
        "private key",
        b"PRIVATE KEY-----",
        rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=:,\- \r\n]{60}",
    ),
    _form("AWS access key", b"AKIA", rb"(?<![A-Za-z0-9/+])AKIA[A-Z2-7]{16}(?![A-Za-z0-9/+])"),
    _form("GitHub token", b"ghp_", rb"(?<![A-Za-z0-9_])ghp_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _form("GitHub token", b"github_pat_", rb"(?<![A-Za-z0-9_])github_pat_[A-Za-z0-9_]{60,}"),
    _form("GitLab token", b"glpat-", rb"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_\-]{20,}"),
    _form("Hugging Face token", b"hf_", rb"(?<![A-Za-z0-9_])hf_[A-Za-z]{34}(?![A-Za-z0-9])"),
    _form("package index token", b"pypi-AgE", rb"pypi-AgE[A-Za-z0-9_\-]{50,}"),
    _form("Slack token", b"xox", rb"(?<![A-Za-z0-9])xox[abpr]-[0-9]{8,}-[A-Za-z0-9\-]{10,}"),
    _form("registry login", b'"auth"', rb'"auth"\s*:\s*"[A-Za-z0-9+/]{8,}={0,2}"'),
    _form(
        "password in an index URL",
        b"index-url",
        rb"(?m)^\s*(?:--)?(?:extra-)?index-url\b[^\n#]*https?://[^\s/:@<>{}$%]+:[^\s/:@<>{}$%]+@",
    ),
    _form("password", b"machine ", rb"(?m)^\s*machine\s+\S+\s+login\s+\S+\s+password\s+\S+"),
)


# Installed packages are most of an image's text, and no place where configuration files lie.
_FORMS_IN_CODE = tuple(form for form in _FORMS if form.literal in _LITERALS_IN_CODE)


def secret_kinds(data: bytes, *, code: bool = False) -> list[str]:
    """The kinds of secret in a file's content, each once.

    Args:
        data: The content.
        code: True for a file of an installed package, in which only keys are looked for.
    """
    found: list[str] = []
    for form in _FORMS_IN_CODE if code else _FORMS:
        if form.literal in data and form.kind not in found and form.pattern.search(data) is not None:
            found.append(form.kind)
    return found
