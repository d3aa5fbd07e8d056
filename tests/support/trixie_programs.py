"""Programs of Debian trixie that run on bookworm too, fetched beside the installed packages and kept in the cache."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.support.cache import cached

_SUITE = "trixie"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def trixie_program(name: str) -> Path:
    """The program of the package of the same name: the installed one, else that of Debian trixie.

    Args:
        name: A package with one program in ``/usr/bin``, such as ``oras`` or ``cosign``.
    """
    installed = shutil.which(name)
    if installed:
        return Path(installed)
    return cached(f"{_SUITE}/{name}", lambda target: _fetch(name, target))


def _fetch(name: str, target: Path) -> None:
    """Download the package from the mirror that the machine's own apt uses, and unpack its program."""
    with tempfile.TemporaryDirectory(prefix="stackbuild-trixie-") as folder:
        work = Path(folder)
        (work / "lists/partial").mkdir(parents=True)
        (work / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {_SUITE} main\n")
        options = [
            *("-o", f"Dir::Etc::sourcelist={work / 'sources.list'}", "-o", "Dir::Etc::sourceparts=-"),
            *("-o", f"Dir::State::lists={work / 'lists'}", "-o", f"Dir::Cache={work}"),
            *("-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"),
        ]
        _run(["apt-get", "-qq", *options, "update"], work)
        _run(["apt-get", "-qq", *options, "download", name], work)
        (deb,) = work.glob("*.deb")
        _run(["dpkg-deb", "--extract", str(deb), str(work / "root")], work)
        shutil.copy2(work / "root/usr/bin" / name, target)


def _mirror() -> str:
    listed = _run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"],
        Path.cwd(),
    )
    mirrors = [line.split(" ", 2)[2] for line in listed.splitlines() if line.startswith("Debian Debian ")]
    assert mirrors, "apt has no Debian mirror"
    return mirrors[0]


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
