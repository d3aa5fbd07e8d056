"""Apt in a throwaway container of a base: it resolves, and nothing is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ExecResult
from stackbuild.errors import LockError
from stackbuild.layers.container_files import put_files
from stackbuild.lock.model import LockedDeb
from stackbuild.registry.reference import is_loopback
from stackbuild.resolution.debs.apt_keys import AptKey
from stackbuild.resolution.debs.apt_output import (
    Simulation,
    install_error,
    locked_debs,
    newest_date,
    parse_simulation,
    parse_uris,
    update_error,
    without_complaints,
)
from stackbuild.resolution.debs.apt_settings import CA_OPTION, LIMIT, OPTIONS, preferences
from stackbuild.resolution.debs.apt_sources import AptRepository, at_mirrors, read_base_sources, replaced_uris
from stackbuild.resolution.image_files import ImageFiles
from stackbuild.site_config import SiteConfig

_SOURCES = "/etc/apt/sources.list"
_SOURCES_FOLDER = "/etc/apt/sources.list.d"
_PREFERENCES = "/etc/apt/preferences.d/stackbuild"
_CA_BUNDLE = "/.stackbuild-ca.pem"
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")


class ContainerApt:
    """Apt inside a running container of a base; ``container_apt`` makes it."""

    def __init__(
        self, container: Container, where: str, options: Sequence[str], names: Mapping[str, str]
    ) -> None:
        self._container = container
        self._where = where
        self._options = tuple(options)
        self._names = names

    def update(self) -> None:
        """Fetch the package lists.

        Raises:
            LockError: ``base-without-apt``, ``apt-key-mismatch``, ``no-such-apt-suite``.
            NotJudgedError: ``repository-unreachable``.
        """
        done = self._container.exec(["apt-get", "update", "-q", *self._options], user="0", limit=LIMIT)
        if done.exit_code in (126, 127):
            raise LockError(
                "the base has no apt, so debs cannot be installed on it",
                code="base-without-apt",
                where=self._where,
                do="Choose a Debian or Ubuntu base, or leave 'apt' out and set 'python: none'.",
            )
        if done.exit_code != 0:
            raise update_error(done.text, self._where)

    def require_python(self, series: str) -> None:
        """Refuse a Python that the repositories have not.

        Raises:
            LockError: ``python-not-in-distribution``, naming those that there are.
        """
        found = self._run("apt-cache", "search", "--names-only", r"^python3\.[0-9]+$").text
        available = sorted(
            {
                line.split()[0].removeprefix("python")
                for line in without_complaints(found).splitlines()
                if line
            },
            key=lambda version: [int(part) for part in version.split(".")],
        )
        if series not in available:
            has = f"it has {', '.join(available)}" if available else "it has none"
            raise LockError(
                f"the distribution of the base has no Python {series}; {has}",
                code="python-not-in-distribution",
                where=self._where,
                do="Set 'python' to one that it has, or choose a base whose distribution has yours.",
            )

    def simulate_keeping(self, names: Sequence[str], keep: Sequence[LockedDeb]) -> Simulation:
        """Simulate an installation with the kept debs pinned, and without when that cannot be solved.

        Raises:
            LockError: ``no-such-deb``, ``debs-unsolvable``.
        """
        if keep:
            put_files(self._container, [(_PREFERENCES, preferences(keep).encode())])
            done = self._install("--simulate", names)
            if done.exit_code == 0:
                return parse_simulation(done.text)
            self._run("rm", _PREFERENCES)
        done = self._install("--simulate", names)
        if done.exit_code != 0:
            raise install_error(done.text, self._where)
        return parse_simulation(done.text)

    def locked(self, names: Sequence[str], simulation: Simulation) -> tuple[LockedDeb, ...]:
        """What a simulation would install, with the hashes of the signed lists.

        Raises:
            LockError: ``deb-without-hash``.
        """
        if not simulation.installations:
            return ()
        uris = parse_uris(self._install("--print-uris", names).text)
        exact = [found.exact for found in simulation.installations]
        records = self._run("apt-cache", "show", "--no-all-versions", *exact).text
        return locked_debs(simulation.installations, records, uris, self._names)

    def installed_version(self, package: str) -> str:
        """The version of a package that the base has."""
        return self._run("dpkg-query", "--show", "--showformat=${Version}", package).text.strip()

    def released(self) -> str:
        """RFC 3339; the newest Date of the repositories' Release files."""
        lines = self._run("sh", "-c", "cat /var/lib/apt/lists/*Release | grep -a '^Date:'").text
        return newest_date(lines)

    def _install(self, mode: str, names: Sequence[str]) -> ExecResult:
        arguments = ["install", "-y", "-q", mode, *self._options, *names]
        return self._run("apt-get", *arguments)

    def _run(self, *argv: str) -> ExecResult:
        return self._container.exec(argv, user="0", limit=LIMIT)


@contextmanager
def container_apt(
    image: str,
    keys: Sequence[AptKey],
    *,
    engine: Engine,
    site: SiteConfig,
    proxies: Mapping[str, str],
    where: str = "",
) -> Iterator[ContainerApt]:
    """Start a throwaway container of a base, with network, whose apt knows the site's mirrors and further keys.

    Args:
        image: The base, as the engine knows it.
        keys: Further repositories with their checked keys.
        engine: Runs the container.
        site: Mirrors of repositories, certificates.
        proxies: The environment to take ``http_proxy`` and its kin from.
        where: What errors name as their place, such as the spec's file; the base when empty.
    """
    environment = {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    for name in _PROXIES:
        value = proxies.get(name) or proxies.get(name.upper())
        if value:
            environment[name] = value
    extra = tuple(key.repository for key in keys)
    with engine.container(image, ["/"]) as container:
        files = ImageFiles(container)
        own = (*read_base_sources(files), *extra)
        changed = _mirrored_sources(files, site.repositories)
    used = at_mirrors(own, site.repositories)
    names = {mirror.uri: original.name for original, mirror in zip(own, used, strict=True)}
    local = any(is_loopback(urlsplit(repository.uri).netloc) for repository in used)
    with engine.container(
        image,
        ["sleep", "infinity"],
        # A repository on this machine's loopback can only be reached from its own network.
        network="host" if local else "bridge",
        environment=environment,
        user="0",
    ) as container:
        container.start()
        put_files(container, [*changed, *_further_sources(keys, site)])
        yield ContainerApt(container, where or image, _options(container, site.ca_bundle), names)


def _options(container: Container, ca_bundle: Path | None) -> list[str]:
    options = {**OPTIONS, "APT::Sandbox::User": "root"}
    if ca_bundle is not None:
        put_files(container, [(_CA_BUNDLE, ca_bundle)])
        options[CA_OPTION] = _CA_BUNDLE
    return [f"-o{name}={value}" for name, value in options.items()]


def _mirrored_sources(files: ImageFiles, mirrors: Mapping[str, str]) -> list[tuple[str, bytes]]:
    if not mirrors:
        return []
    found = {
        f"{_SOURCES_FOLDER}/{name}": content for name, content in files.read_folder(_SOURCES_FOLDER).items()
    }
    main = files.read(_SOURCES)
    if main is not None:
        found[_SOURCES] = main
    return [
        (
            path,
            replaced_uris(
                content.decode(errors="replace"), deb822=path.endswith(".sources"), mirrors=mirrors
            ).encode(),
        )
        for path, content in sorted(found.items())
    ]


def _further_sources(keys: Sequence[AptKey], site: SiteConfig) -> list[tuple[str, bytes | Path]]:
    files: list[tuple[str, bytes | Path]] = []
    repositories: list[AptRepository] = []
    for number, key in enumerate(keys):
        path = f"/etc/apt/keyrings/stackbuild-{number}.{'asc' if key.armored else 'gpg'}"
        files.append((path, key.path))
        (repository,) = at_mirrors([key.repository], site.repositories)
        repositories.append(
            AptRepository(repository.uri, repository.suite, repository.components, (f"signed-by={path}",))
        )
    if repositories:
        text = "".join(f"{repository.line()}\n" for repository in repositories)
        files.append((f"{_SOURCES_FOLDER}/stackbuild.list", text.encode()))
    return files
