"""Which debs make a bootstrapped base: resolved by this host's apt in a folder of its own.

The set is mmdebstrap's "minbase" (mmdebstrap(1), VARIANTS): Essential packages, those of priority
required, and apt; with ca-certificates, which fetching over TLS needs. Nothing is installed here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackbuild.deb822 import parse_stanzas
from stackbuild.errors import LockError, NotJudgedError, StackbuildError
from stackbuild.lock.model import LockedDeb
from stackbuild.progress import Observer
from stackbuild.resolution.debs.apt_output import (
    install_error,
    locked_debs,
    newest_date,
    parse_simulation,
    parse_uris,
    update_error,
)
from stackbuild.resolution.debs.apt_settings import CA_OPTION, LIMIT, OPTIONS, preferences
from stackbuild.resolution.debs.apt_sources import AptRepository, at_mirrors, sources_text
from stackbuild.site_config import SiteConfig
from stackbuild.store.scratch import scratch_folder

# usr-is-merged stands in for usrmerge, which needs perl (release notes of Debian 12, 5.1.2).
_ALSO = ("apt", "ca-certificates", "usr-is-merged")
_PASSED_ON = (
    "PATH",
    "HOME",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)


@dataclass(frozen=True)
class BootstrapResolution:
    """The debs of a bootstrapped base.

    Attributes:
        released: RFC 3339; the newest Date of the repositories' Release files.
    """

    debs: tuple[LockedDeb, ...]
    released: str


def resolve_bootstrap(
    suite: str,
    architecture: str,
    repositories: Sequence[AptRepository],
    *,
    site: SiteConfig,
    keep: Iterable[LockedDeb] = (),
    observer: Observer,
) -> BootstrapResolution:
    """Resolve the debs of a base.

    Args:
        suite: For example ``bookworm``.
        architecture: Debian's name: ``amd64``, ``arm64``.
        repositories: Where the suite lies; the site's mirrors take their places.
        site: Mirrors and certificates.
        keep: Debs of the previous lock, to stay at their versions while the repositories carry them.
        observer: Told of progress.

    Raises:
        LockError: ``no-such-apt-suite``, ``debs-unsolvable``, ``deb-without-hash``.
        NotJudgedError: ``apt-missing``, ``bootstrap-keyring-missing``, ``repository-unreachable``.
    """
    used = at_mirrors(repositories, site.repositories)
    names = {mirror.uri: original.name for original, mirror in zip(repositories, used, strict=True)}
    where = f"bootstrap {suite}"
    observer.stage("base", f"resolve {suite} for {architecture}")
    with scratch_folder() as scratch:
        apt = _HostApt(scratch.path, architecture, used, site.ca_bundle)
        updated = apt.run("apt-get", "update", "-q")
        if updated.returncode != 0:
            raise _update_error(updated.stdout + updated.stderr, where)
        wanted = _minbase(apt.run("apt-cache", "dumpavail").stdout)
        if len(wanted) <= len(_ALSO):
            raise LockError(
                f"the repositories have no essential packages of {suite} for {architecture}",
                code="no-such-apt-suite",
                where=where,
                do="Check 'base.suite' and the mirrors in stackbuild.toml.",
            )
        apt.pin(keep)
        done = apt.install("--simulate", wanted)
        if done.returncode != 0:
            apt.pin(())
            done = apt.install("--simulate", wanted)
        if done.returncode != 0:
            raise install_error(done.stdout + done.stderr, where)
        installations = parse_simulation(done.stdout).installations
        uris = parse_uris(apt.install("--print-uris", wanted).stdout)
        records = apt.run("apt-cache", "show", *(found.exact for found in installations)).stdout
        return BootstrapResolution(locked_debs(installations, records, uris, names), apt.released())


def _update_error(output: str, where: str) -> StackbuildError:
    error = update_error(output, where)
    if error.code != "apt-key-mismatch":
        return error
    # These are the distribution's own repositories, so it is this host that lacks their keys.
    return NotJudgedError(
        "this host does not have the keys of the distribution's repositories",
        code="bootstrap-keyring-missing",
        where=where,
        detail=error.detail,
        do="Run: apt-get install debian-archive-keyring (with sudo).",
    )


def _minbase(available: str) -> tuple[str, ...]:
    """The names of the packages to ask for, out of ``apt-cache dumpavail``."""
    stanzas = parse_stanzas(available)
    chosen = {
        stanza["Package"]
        for stanza in stanzas
        if stanza.get("Essential") == "yes" or stanza.get("Priority") == "required"
    }
    present = {stanza.get("Package") for stanza in stanzas}
    return tuple(sorted(chosen | {name for name in _ALSO if name in present}))


class _HostApt:
    """This host's apt with its state, cache and settings in a folder: nothing of the host's own is read but keys."""

    def __init__(
        self,
        folder: Path,
        architecture: str,
        repositories: Sequence[AptRepository],
        ca_bundle: Path | None,
    ) -> None:
        if shutil.which("apt-get") is None:
            raise NotJudgedError(
                "apt, which resolves the debs of a bootstrapped base, is not on this host",
                code="apt-missing",
                do="Lock this stack on Debian or Ubuntu, or give it an image as its base.",
            )
        for path in (
            "etc/apt/apt.conf.d",
            "etc/apt/preferences.d",
            "etc/apt/sources.list.d",
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "var/lib/dpkg",
        ):
            (folder / path).mkdir(parents=True)
        (folder / "var/lib/dpkg/status").touch()
        (folder / "etc/apt/sources.list").write_text(sources_text(repositories), encoding="utf-8")
        self._folder = folder
        self._config = folder / "apt.conf"
        settings: dict[str, str] = {
            "Dir": f"{folder}/",
            "Dir::State::status": f"{folder}/var/lib/dpkg/status",
            # The host's keyrings, as mmdebstrap trusts them.
            "Dir::Etc::Trusted": "/etc/apt/trusted.gpg",
            "Dir::Etc::TrustedParts": "/etc/apt/trusted.gpg.d",
            "APT::Architecture": architecture,
            "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
            **OPTIONS,
        }
        if ca_bundle is not None:
            settings[CA_OPTION] = str(ca_bundle)
        lines = [f'{name} "{value}";' for name, value in settings.items() if value]
        lines.append(f'APT::Architectures {{ "{architecture}"; }};')
        self._config.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def pin(self, debs: Iterable[LockedDeb]) -> None:
        """Prefer these versions over newer ones (apt_preferences(5)); without debs, nothing."""
        (self._folder / "etc/apt/preferences.d/stackbuild").write_text(preferences(debs), encoding="utf-8")

    def install(self, mode: str, names: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return self.run("apt-get", "install", "-y", "-q", mode, *names)

    def released(self) -> str:
        lists = self._folder / "var/lib/apt/lists"
        lines: list[str] = []
        for path in sorted(lists.glob("*Release")):
            text = path.read_text(encoding="utf-8", errors="replace")
            lines.extend(line for line in text.splitlines() if line.startswith("Date:"))
        return newest_date("\n".join(lines))

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        environment: Mapping[str, str] = {
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            "APT_CONFIG": str(self._config),
            "LC_ALL": "C.UTF-8",
        }
        try:
            return subprocess.run(
                argv,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                env=environment,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NotJudgedError(
                f"{argv[0]} {argv[1]} did not end within {LIMIT:.0f} seconds",
                code="repository-unreachable",
                do="Check the network, or map the repository to a mirror under 'repositories' in stackbuild.toml.",
            ) from error
