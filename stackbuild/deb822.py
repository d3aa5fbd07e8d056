"""Debian's stanzas: sources, package lists, Release files and control fields are written in them."""

from __future__ import annotations

import re


def parse_stanzas(text: str) -> list[dict[str, str]]:
    """Read stanzas of ``Field: value`` lines (deb822(5)); continuation lines keep their line breaks."""
    stanzas: list[dict[str, str]] = []
    for block in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        last = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t"):
                if last:
                    fields[last] += "\n" + line.strip()
                continue
            name, colon, value = line.partition(":")
            if colon:
                last = name.strip()
                fields[last] = value.strip()
        if fields:
            stanzas.append(fields)
    return stanzas
