"""URLs as they are shown, and those that name a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackbuild.urls import local_path, without_credentials


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:p@ss@index.example/simple/", "https://index.example/simple/"),
        ("https://token@index.example:8443/a%20b?q=1#f", "https://index.example:8443/a%20b?q=1#f"),
        ("https://index.example/a@b", "https://index.example/a@b"),
        ("/srv/wheels/a.whl", "/srv/wheels/a.whl"),
    ],
)
def test_nothing_secret_is_shown(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_files_of_this_machine_are_told_from_urls() -> None:
    assert local_path("file:///srv/a%20b.whl") == Path("/srv/a b.whl")
    assert local_path("wheels/a.whl") == Path("wheels/a.whl")
    assert local_path("https://index.example/a.whl") is None
