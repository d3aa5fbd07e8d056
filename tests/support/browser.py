"""A headless Chromium, to see a page as people do: screenshots, and the page after it was laid out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

# Debian's name first; Ubuntu's own package is a snap, so that there it is most often Chrome.
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
_DARK = "--blink-settings=preferredColorScheme=0"
_LIMIT = 120  # seconds


def screenshot(
    page: Path, target: Path, *, dark: bool = False, width: int = 1000, height: int = 2000
) -> None:
    """Write a picture (PNG) of a page."""
    _browse(page, f"--screenshot={target}", f"--window-size={width},{height}", *((_DARK,) if dark else ()))
    assert target.read_bytes().startswith(b"\x89PNG"), "no picture was made"


def laid_out(page: Path, *, dark: bool = False) -> str:
    """The page's HTML after it was loaded and its scripts, if it has any, have run."""
    return _browse(page, "--dump-dom", *((_DARK,) if dark else ()))


def console(page: Path) -> list[str]:
    """What the browser's console says of a page: errors of scripts, and what a policy kept from being used."""
    _, log = _run(page, "--dump-dom", "--enable-logging=stderr")
    return [line for line in log.splitlines() if ":CONSOLE" in line]


def _browse(page: Path, *arguments: str) -> str:
    return _run(page, *arguments)[0]


def _run(page: Path, *arguments: str) -> tuple[str, str]:
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    assert program is not None, "these tests need Chromium: scripts/setup.sh test installs it"
    profile = page.parent / f"profile-{os.urandom(4).hex()}"
    profile.mkdir()
    done = subprocess.run(
        [program, *_FLAGS, f"--user-data-dir={profile}", *arguments, page.absolute().as_uri()],
        capture_output=True,
        timeout=_LIMIT,
        check=False,
    )
    shutil.rmtree(profile, ignore_errors=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode(), done.stderr.decode(errors="replace")
