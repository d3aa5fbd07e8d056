"""Real debs of Debian bookworm, fetched once from apt's own default mirror and kept in the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

from stackbuild.lock.model import LockedDeb
from tests.support.cache import cached

# Further packages, each set with what it needs on top of the base.
SETS = {
    "python": ("python3", "python3-venv", "libgomp1"),
    "ping": ("iputils-ping", "libcap2-bin"),
    "nginx": ("nginx-light",),
}
_MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr"


def bookworm_debs(folder: Path) -> Path:
    """Unpack the debs below ``folder``: ``base`` (minbase with certificates) and one folder for each of ``SETS``."""
    with tarfile.open(cached("bookworm-debs.tar", _fetch)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def lock_debs(folder: Path) -> tuple[tuple[LockedDeb, Path], ...]:
    """The debs of a folder as a lock records them, in name order."""
    return tuple(sorted((lock_deb(path) for path in folder.glob("*.deb")), key=lambda pair: pair[0].name))


def lock_deb(path: Path) -> tuple[LockedDeb, Path]:
    """One deb as a lock records it."""
    shown = subprocess.run(
        ["dpkg-deb", "--show", "--showformat=${Package}\n${Version}\n${Architecture}", path],
        check=True,
        capture_output=True,
        text=True,
    )
    name, version, architecture = shown.stdout.split("\n")
    content = path.read_bytes()
    locked = LockedDeb(
        name=name,
        version=version,
        architecture=architecture,
        repository="debian",
        path=f"pool/main/{path.name}",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
    )
    return locked, path


def _fetch(target: Path) -> None:
    program = shutil.which("mmdebstrap")
    assert program, "mmdebstrap is not installed; `make test` installs it"
    folder = target.parent / f"{target.name}.debs"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "base").mkdir(parents=True)
    hooks = [f'--customize-hook=cp "$1"/var/cache/apt/archives/*.deb {folder}/base/']
    for name, packages in SETS.items():
        (folder / name / "partial").mkdir(parents=True)
        hooks.append(
            '--customize-hook=APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get --yes --no-install-recommends '
            f"-o Dir::Cache::Archives={folder / name} --download-only install {' '.join(packages)}"
        )
    done = subprocess.run(
        [
            *(program, "--mode=root", "--variant=minbase", f"--hook-dir={_MERGED_USR}"),
            *("--include=ca-certificates,usr-is-merged", "--skip=essential/unlink,cleanup", *hooks),
            *("bookworm", "/dev/null"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with tarfile.open(target, "w") as archive:
        for deb in sorted(folder.glob("*/*.deb")):
            archive.add(deb, arcname=str(deb.relative_to(folder)))
    shutil.rmtree(folder)
