"""The Docker engines that tests start: the installed one, and a newer one of Debian fetched beside it.

CDI and the containerd image store need engine 25 or newer; Debian 12 has 20.10. Debian trixie's runs on
bookworm with bookworm's runc (its C library is new enough, that of trixie's runc is not).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.cache import cached

_SUITE = "trixie"
_PACKAGES = ("docker.io", "containerd")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_NEWER = 25
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class EngineProgram:
    """A dockerd, and the PATH on which it finds containerd and runc."""

    dockerd: str
    path: str


def installed_engine() -> EngineProgram:
    """The machine's own dockerd."""
    path = f"{os.environ['PATH']}:{_SBIN}"
    dockerd = shutil.which("dockerd", path=path)
    assert dockerd, "dockerd is not installed; `make test` installs docker.io"
    return EngineProgram(dockerd, path)


def newer_engine() -> EngineProgram:
    """The machine's own dockerd where it is new enough, else Debian trixie's, kept in the cache."""
    installed = installed_engine()
    version = subprocess.run([installed.dockerd, "--version"], capture_output=True, text=True).stdout
    major = re.search(r"version (\d+)", version)
    if major and int(major[1]) >= _NEWER:
        return installed
    folder = cached(f"engine-{_SUITE}/complete", _fetch).parent
    return EngineProgram(
        str(folder / "usr/sbin/dockerd"), f"{folder}/usr/sbin:{folder}/usr/bin:{installed.path}"
    )


def _fetch(marker: Path) -> None:
    """Download the packages from the mirror that the machine's own apt uses, and unpack them beside ``marker``."""
    work = marker.parent / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "lists/partial").mkdir(parents=True)
    (work / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_debian_mirror()} {_SUITE} main\n")
    options = [
        *("-o", f"Dir::Etc::sourcelist={work / 'sources.list'}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", f"Dir::State::lists={work / 'lists'}", "-o", f"Dir::Cache={work}"),
        # Downloads go to a folder of this user, which apt's own user may not enter.
        *("-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"),
    ]
    _run(["apt-get", "-qq", *options, "update"], work)
    _run(["apt-get", "-qq", *options, "download", *_PACKAGES], work)
    for deb in work.glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(deb), str(marker.parent)], work)
    shutil.rmtree(work)
    marker.touch()


def _debian_mirror() -> str:
    listed = _run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"],
        Path.cwd(),
    )
    mirrors = [line.split(" ", 2)[2] for line in listed.splitlines() if line.startswith("Debian Debian ")]
    assert mirrors, (
        "apt has no Debian mirror; install docker.io 25 or newer to test CDI and the containerd store here"
    )
    return mirrors[0]


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
