"""Which debs a stack needs on top of its base: apt's own answer, in a throwaway container of the base.

Apt resolves with the base's sources, or the site's mirrors of them; nothing is installed. The debs are
recorded with the SHA256 of the signed lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import LockError
from stackbuild.lock.model import LockedDeb, PythonLock
from stackbuild.progress import Observer
from stackbuild.resolution.debs.apt_container import ContainerApt, container_apt
from stackbuild.resolution.debs.apt_keys import AptKey
from stackbuild.resolution.debs.apt_output import Simulation
from stackbuild.site_config import SiteConfig


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
    where: str = "",
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
        where: What errors name as their place, such as the spec's file; the base when empty.

    Raises:
        LockError: ``deb-removes-package``, ``no-such-deb``, ``debs-unsolvable``, ``python-not-in-distribution``,
            ``apt-key-mismatch``, ``no-such-apt-suite``, ``base-without-apt``, ``deb-without-hash``.
        NotJudgedError: ``repository-unreachable``.
    """
    if not request.names:
        return DebResolution()
    with container_apt(
        image, request.keys, engine=engine, site=site, proxies=proxies or {}, where=where
    ) as apt:
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
            python=_python(request.python, debs, apt) if request.python else None,
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


def _refuse_removals(simulation: Simulation, names: Sequence[str]) -> None:
    if simulation.removals:
        removed = ", ".join(simulation.removals)
        raise LockError(
            f"installing {', '.join(names)} would remove {removed} from the base",
            code="deb-removes-package",
            do="Leave out the package that conflicts, or choose a base without what it conflicts with.",
        )


def _python(series: str, debs: Sequence[LockedDeb], apt: ContainerApt) -> PythonLock:
    package = f"python{series}"
    locked = next((deb.version for deb in debs if deb.name == package), "")
    return python_lock(series, locked or apt.installed_version(package))
