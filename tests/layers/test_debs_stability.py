"""Comparing two layers of the same debs."""

from __future__ import annotations

import io
import tarfile

from stackbuild.layers.debs_stability import unstable_debs

LIST = ("var/lib/dpkg/info/tool.list", b"/.\n/etc\n/etc/tool.conf\n", 0o644)


def _layer(*files: tuple[str, bytes, int]) -> io.BytesIO:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content, mode in files:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    raw.seek(0)
    return raw


def test_equal_layers_do_not_differ() -> None:
    assert unstable_debs(_layer(LIST), _layer(LIST)) == {}


def test_content_mode_and_absence_count_and_owners_are_named() -> None:
    first = _layer(LIST, ("etc/tool.conf", b"1", 0o644), ("etc/made", b"1", 0o644), ("etc/same", b"1", 0o644))
    second = _layer(
        LIST,
        ("etc/tool.conf", b"2", 0o644),
        ("etc/made", b"1", 0o600),
        ("etc/same", b"1", 0o644),
        ("a", b"", 0o644),
    )
    assert unstable_debs(first, second) == {
        "a": "made by a package's script",
        "etc/made": "made by a package's script",
        "etc/tool.conf": "tool",
    }
