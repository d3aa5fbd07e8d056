"""Digests: of bytes, and as people read them."""

from __future__ import annotations

import re
from pathlib import Path

from stackbuild.digests import digest_of, short_digest, short_hex

HEX = "0123456789abcdef" * 4


def test_twelve_digits_tell_images_apart() -> None:
    assert short_digest(f"sha256:{HEX}") == "sha256:0123456789ab"
    assert short_digest(f"sha512:{HEX}{HEX}") == "sha512:0123456789ab"
    assert short_digest("") == ""
    assert short_hex(f"sha256:{HEX}") == short_hex(HEX) == "0123456789ab"
    assert short_hex("") == ""


def test_nobody_cuts_digests_by_hand() -> None:
    by_hand = re.compile(r"\[:(12|19)\]|removeprefix\([\"']sha256:[\"']\)\[")
    package = Path(__file__).parents[1] / "stackbuild"
    found = [
        f"{path.relative_to(package)}:{number}"
        for path in package.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if by_hand.search(line) and "uuid" not in line and path.name != "digests.py"
    ]
    assert found == []


def test_a_digest_is_that_of_the_bytes() -> None:
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_of(b"") == digest_of(bytearray()) == empty
