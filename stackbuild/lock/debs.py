"""Which debs a stack needs on top of its base: apt's own answer, in a throwaway container of the base.

Apt resolves with the base's sources, or the site's mirrors of them; nothing is installed. The debs are
recorded with the SHA256 of the signed lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ExecResult
from stackbuild.errors import LockError
from stackbuild.layers.container_files import put_files
from stackbuild.lock.apt_keys import AptKey
from stackbuild.lock.apt_output import (
    Simulation,
    install_error,
    locked_debs,
    newest_date,
    parse_simulation,
    parse_uris,
    update_error,
    without_complaints,
)
from stackbuild.lock.apt_sources import AptRepository, at_mirrors, read_base_sources, replaced_uris
from stackbuild.lock.image_files import ImageFiles
from stackbuild.lock.model import LockedDeb, PythonLock
from stackbuild.progress import Observer
from stackbuild.registry.reference import is_loopback
from stackbuild.site_config import SiteConfig

_UPDATE_LIMIT = 900.0  # seconds
_SOURCES = "/etc/apt/sources.list"
_SOURCES_FOLDER = "/etc/apt/sources.list.d"
_PREFERENCES = "/etc/apt/preferences.d/stackbuild"
_CA_BUNDLE = "/.stackbuild-ca.pem"
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
# apt_preferences(5): between 990 and 1000 a version wins over newer ones and never downgrades.
_PIN_PRIORITY = 995


@dataclass(frozen=True)
class DebRequest:
    """What is wanted on top of a base.

    Attributes:
        packages: As under ``apt`` in the spec.
        python: ``3.12``, or empty for none.
        keys: The spec's further repositories with their checked keys.
    """

    packages: tuple[str, ...] = ()
    python: str = ""
    keys: tuple[AptKey, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What apt is asked for."""
        return (*((f"python{self.python}",) if self.python else ()), *self.packages)


@dataclass(frozen=True)
class DebResolution:
    """What apt answered.

    Attributes:
        released: RFC 3339; the newest Date of the repositories' Release files.
    """

    debs: tuple[LockedDeb, ...] = ()
    base_upgrades: tuple[str, ...] = ()
    python: PythonLock | None = None
    released: str = ""


def resolve_debs(
    request: DebRequest,
    image: str,
    *,
    engine: Engine,
    site: SiteConfig,
    keep: Iterable[LockedDeb] = (),
    proxies: Mapping[str, str] | None = None,
    observer: Observer,
) -> DebResolution:
    """Ask apt what must be installed on a base.

    Args:
        request: What is wanted.
        image: The base, as the engine knows it.
        engine: Runs the throwaway container, with network.
        site: Mirrors of repositories, certificates.
        keep: Debs of the previous lock, to stay at their versions while the repositories carry them.
        proxies: The environment to take ``http_proxy`` and its kin from.
        observer: Told of base packages that are upgraded.

    Raises:
        LockError: ``deb-removes-package``, ``no-such-deb``, ``debs-unsolvable``, ``python-not-in-distribution``,
            ``apt-key-mismatch``, ``no-such-apt-suite``, ``base-without-apt``, ``deb-without-hash``.
        NotJudgedError: ``repository-unreachable``.
    """
    if not request.names:
        return DebResolution()
    with _apt(request, image, engine, site, proxies or {}) as apt:
        observer.stage("debs", ", ".join(request.names))
        apt.update()
        if request.python:
            apt.require_python(request.python)
        simulation = apt.simulate_keeping(request.names, tuple(keep))
        _refuse_removals(simulation, request.names)
        debs = apt.locked(request.names, simulation)
        upgrades = tuple(found.name for found in simulation.installations if found.replaces)
        for found in simulation.installations:
            if found.replaces:
                observer.note(
                    f"{found.name} of the base is upgraded from {found.replaces} to {found.version}"
                )
        return DebResolution(
            debs=debs,
            base_upgrades=upgrades,
            python=apt.python(request.python, debs) if request.python else None,
            released=apt.released() if debs else "",
        )


def python_lock(series: str, deb_version: str) -> PythonLock:
    """The Python that a distribution's ``pythonX.Y`` package holds.

    Args:
        series: ``3.12``.
        deb_version: The package's version, for example ``3.12.3-1ubuntu0.8``.
    """
    upstream = deb_version.partition(":")[2] or deb_version
    upstream = re.split(r"[-+]", upstream)[0].replace("~", "")
    return PythonLock(
        version=upstream, executable=f"/usr/bin/python{series}", tag=f"cp{series.replace('.', '')}"
    )


class _Apt:
    """Apt inside a running container."""

    def __init__(
        self, container: Container, image: str, options: Sequence[str], names: Mapping[str, str]
    ) -> None:
        self._container = container
        self._image = image
        self._options = tuple(options)
        self._names = names

    def update(self) -> None:
        done = self._container.exec(
            ["apt-get", "update", "-q", *self._options], user="0", limit=_UPDATE_LIMIT
        )
        if done.exit_code in (126, 127):
            raise LockError(
                "the base has no apt, so debs cannot be installed on it",
                code="base-without-apt",
                where=self._image,
                do="Choose a Debian or Ubuntu base, or leave 'apt' out and set 'python: none'.",
            )
        if done.exit_code != 0:
            raise update_error(done.text, self._image)

    def require_python(self, series: str) -> None:
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
                where=self._image,
                do="Set 'python' to one that it has, or choose a base whose distribution has yours.",
            )

    def simulate_keeping(self, names: Sequence[str], keep: Sequence[LockedDeb]) -> Simulation:
        """Simulate with the kept debs pinned, and without when that cannot be solved."""
        if keep:
            pins = "\n".join(
                f"Package: {deb.name}\nPin: version {deb.version}\nPin-Priority: {_PIN_PRIORITY}\n"
                for deb in keep
            )
            put_files(self._container, [(_PREFERENCES, pins.encode())])
            done = self._install("--simulate", names)
            if done.exit_code == 0:
                return parse_simulation(done.text)
            self._run("rm", _PREFERENCES)
        done = self._install("--simulate", names)
        if done.exit_code != 0:
            raise install_error(done.text, self._image)
        return parse_simulation(done.text)

    def locked(self, names: Sequence[str], simulation: Simulation) -> tuple[LockedDeb, ...]:
        if not simulation.installations:
            return ()
        uris = parse_uris(self._install("--print-uris", names).text)
        exact = [found.exact for found in simulation.installations]
        records = self._run("apt-cache", "show", "--no-all-versions", *exact).text
        return locked_debs(simulation.installations, records, uris, self._names)

    def python(self, series: str, debs: Sequence[LockedDeb]) -> PythonLock:
        package = f"python{series}"
        version = next((deb.version for deb in debs if deb.name == package), "")
        if not version:
            version = self._run("dpkg-query", "--show", "--showformat=${Version}", package).text.strip()
        return python_lock(series, version)

    def released(self) -> str:
        lines = self._run("sh", "-c", "cat /var/lib/apt/lists/*Release | grep -a '^Date:'").text
        return newest_date(lines)

    def _install(self, mode: str, names: Sequence[str]) -> ExecResult:
        arguments = ["install", "-y", "-q", "--no-install-recommends", mode, *self._options, *names]
        return self._run("apt-get", *arguments)

    def _run(self, *argv: str) -> ExecResult:
        return self._container.exec(argv, user="0", limit=_UPDATE_LIMIT)


@contextmanager
def _apt(
    request: DebRequest, image: str, engine: Engine, site: SiteConfig, proxies: Mapping[str, str]
) -> Iterator[_Apt]:
    environment = {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    for name in _PROXIES:
        value = proxies.get(name) or proxies.get(name.upper())
        if value:
            environment[name] = value
    extra = tuple(key.repository for key in request.keys)
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
        put_files(container, [*changed, *_further_sources(request.keys, site)])
        yield _Apt(container, image, _options(container, site.ca_bundle), names)


def _options(container: Container, ca_bundle: Path | None) -> list[str]:
    options = {
        "Acquire::Retries": "3",
        "Acquire::Languages": "none",
        "Acquire::http::Timeout": "30",
        "Acquire::https::Timeout": "30",
        # Without it a repository that cannot be read is only a warning.
        "APT::Update::Error-Mode": "any",
        "APT::Sandbox::User": "root",
    }
    if ca_bundle is not None:
        put_files(container, [(_CA_BUNDLE, ca_bundle)])
        options["Acquire::https::CAInfo"] = _CA_BUNDLE
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


def _refuse_removals(simulation: Simulation, names: Sequence[str]) -> None:
    if simulation.removals:
        removed = ", ".join(simulation.removals)
        raise LockError(
            f"installing {', '.join(names)} would remove {removed} from the base",
            code="deb-removes-package",
            do="Leave out the package that conflicts, or choose a base without what it conflicts with.",
        )
