"""A stack whose registry, indexes and apt repository are the test's own, locked against them as they were."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding
from stackbuild.lock.model import Lock, LockedDeb, OsLock, PlatformLock, PythonLock
from stackbuild.nightly.inputs import check_inputs
from stackbuild.nightly.newer import Newer, newer_versions
from stackbuild.progress import SilentObserver
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.bases.image_base import lock_image_base
from stackbuild.resolution.debs.apt_sources import repository_name
from stackbuild.resolution.wheels.index_sources import PageCache
from stackbuild.resolution.wheels.locking import WheelsResult, lock_wheels
from stackbuild.site_config import IndexLocation, SiteConfig
from stackbuild.spec.load import LoadedSpec, load_spec
from stackbuild.spec.model import ImageBaseSpec
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RetryPolicy
from stackbuild.store.store import Store
from tests.registry.memory_registry import MemoryRegistry
from tests.support.debs import AptRepository, make_deb
from tests.support.index_server import IndexServer
from tests.support.loopback import LoopbackServer
from tests.support.wheels import make_wheel

TODAY = date(2026, 11, 30)
IMAGE = "nvidia/cuda"
TAG = "12.6.3-base-ubuntu24.04"
CREATED = "2026-01-02T03:04:05Z"


@dataclass
class Scene:
    """What a night asks; ``lock_now`` locks a stack against it, tests then change it and ``check``.

    Attributes:
        resolved: What the resolver answered before, in other tests.
        waits: Seconds that the registry's client was asked to wait.
    """

    root: Path
    registry: MemoryRegistry
    indexes: IndexServer
    apt: AptRepository
    repository: LoopbackServer
    site: SiteConfig
    client: RegistryClient
    resolved: dict[str, WheelsResult]
    waits: list[float]
    stack: LoadedSpec | None = None
    lock: Lock | None = None

    @property
    def http(self) -> HttpClient:
        """A client that loses no time."""
        return HttpClient(retry=RetryPolicy(attempts=3, first_delay=0.01), timeout=60)

    def wheel(self, name: str, version: str, *requires: str, index: str = "default", **more: Any) -> Path:
        """Put a wheel on an index."""
        return make_wheel(self.root / index, name, version, requires=requires, **more)

    def deb(self, name: str, version: str, text: str = "") -> Path:
        """Put a deb into the repository and its lists."""
        files = {f"/usr/share/{name}": text or version}
        deb = make_deb(self.root / f"debs{text}", name, version, files=files, architecture="amd64")
        self.apt.add(deb)
        self.apt.write()
        return deb

    def image(
        self,
        *architectures: str,
        created: str = CREATED,
        tag: str = TAG,
        layers: tuple[str, ...] = ("sha256:" + "1" * 64,),
        **env: str,
    ) -> str:
        """Push an image under a tag; returns the index's digest."""
        config = {"Env": [f"{name}={value}" for name, value in {"CUDA_VERSION": "12.6.3", **env}.items()]}
        children = {
            architecture: self.registry.add_image(
                architecture, created=created, config=config, rootfs={"diff_ids": list(layers)}
            )
            for architecture in architectures or ("amd64", "arm64")
        }
        return self.registry.add_index(tag, **children)

    def lock_now(self, *packages: str, **spec: Any) -> None:
        """Write a spec and lock it against everything as it is now, as ``stackbuild lock`` would."""
        document = {
            "schema": 1,
            "name": "t",
            "base": {"image": IMAGE, "tag": TAG},
            "python": "3.12",
            "packages": list(packages),
            "apt-sources": [{"uri": self.repository.url, "suite": "stable", "key-sha256": "0" * 64}],
            **spec,
        }
        path = self.root / "t.yaml"
        with path.open("w") as file:
            YAML().dump(document, file)
        self.stack = load_spec(path)
        base = self.stack.spec.base
        assert isinstance(base, ImageBaseSpec)
        python = PythonLock(version="3.12.3", executable="/usr/bin/python3.12", tag="cp312")
        system = OsLock(id="ubuntu", version_id="24.04", codename="noble", glibc="2.39")
        key = self._question(document)
        wheels = self.resolved.get(key) or lock_wheels(
            self.stack.spec,
            [item for item in self.stack.spec.packages if isinstance(item, str)],
            python=python,
            os=system,
            platform="linux/amd64",
            site=self.site,
            store=Store(self.root / "locking"),
            observer=SilentObserver(),
            http=self.http,
        )
        self.resolved[key] = wheels
        platform_lock = PlatformLock(
            base=lock_image_base(base, "linux/amd64", client=self.client),
            os=system,
            python=python,
            debs=tuple(self._locked_debs()),
            wheels=wheels.wheels,
            created=CREATED,
            findings=wheels.findings,
        )
        self.lock = Lock(stack="t", spec_sha256="5" * 64, platforms={"linux/amd64": platform_lock})

    def _question(self, document: dict[str, Any]) -> str:
        """The spec without what differs in every test, and all wheels that there are with what is stated of them."""
        asked = {name: value for name, value in document.items() if name != "apt-sources"}
        wheels = sorted(path.relative_to(self.root) for path in self.root.glob("*/*.whl"))
        hashed = [f"{path} {hashlib.sha256((self.root / path).read_bytes()).hexdigest()}" for path in wheels]
        urls = [self.indexes.server.url] if "url" in str(document["packages"]) else []
        return repr((asked, hashed, self.indexes.stated, self.indexes.hashes, urls))

    def _locked_debs(self) -> Iterator[LockedDeb]:
        pool = self.root / "apt" / "pool" / "main"
        for path in sorted(pool.glob("*.deb")):
            name, version, architecture = path.stem.split("_")
            content = path.read_bytes()
            yield LockedDeb(
                name=name,
                version=version,
                architecture=architecture,
                repository=repository_name(self.repository.url),
                path=f"pool/main/{path.name}",
                sha256=hashlib.sha256(content).hexdigest(),
                size=len(content),
            )

    def check(self, *, pages: PageCache | None = None, **site: Any) -> tuple[Finding, ...]:
        """Ask for the inputs; keywords are further settings of the site."""
        return self.check_external("", pages=pages, **site)

    def check_external(
        self, known_digest: str, *, pages: PageCache | None = None, **site: Any
    ) -> tuple[Finding, ...]:
        """Ask for the inputs, of an external stack with what was known of it."""
        assert self.stack is not None
        return check_inputs(
            self.stack,
            self.lock,
            site=self.site.model_copy(update=site),
            store=Store(self.root / "store"),
            observer=SilentObserver(),
            known_digest=known_digest,
            pages=pages,
            http=self.http,
            registry=self.client,
        )

    def newer(self, *, pages: PageCache | None = None) -> Newer:
        """Ask what is newer."""
        assert self.stack is not None
        assert self.lock is not None
        return newer_versions(
            self.stack,
            self.lock,
            site=self.site,
            store=Store(self.root / "store"),
            facts=Facts(),
            today=TODAY,
            observer=SilentObserver(),
            pages=pages,
            http=self.http,
            registry=self.client,
        )


@contextmanager
def scene(
    root: Path, resolved: dict[str, WheelsResult], *, indexes: tuple[str, ...] = (), hashes: bool = True
) -> Iterator[Scene]:
    """Start everything.

    Args:
        root: An empty folder.
        resolved: The fixture of that name.
        indexes: Names of indexes besides ``default``.
        hashes: Whether the indexes state hashes.
    """
    names = ("default", *indexes)
    for name in names:
        (root / name).mkdir()
    registry = MemoryRegistry()
    server = IndexServer({name: root / name for name in names}, hashes=hashes)
    apt = AptRepository(root / "apt")
    repository = apt.server()
    waits: list[float] = []
    with ExitStack() as running:
        for one in (registry.server, server, repository):
            running.enter_context(one)
        apt.write()
        site = SiteConfig(
            indexes={name: IndexLocation(url=server.url(name)) for name in names},
            registries={"docker.io": registry.server.url},
        )
        client = running.enter_context(RegistryClient(site.registries, sleep=waits.append))
        made = Scene(root, registry, server, apt, repository, site, client, resolved, waits)
        made.image()
        yield made


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    """Verdict, code and subject of what is not a PASS, in order."""
    return [
        (str(finding.verdict), finding.code, finding.subject)
        for finding in findings
        if finding.verdict != "PASS"
    ]


def passed(findings: tuple[Finding, ...]) -> dict[str, str]:
    """Summary of the PASS findings by subject."""
    return {finding.subject: finding.summary for finding in findings if finding.verdict == "PASS"}


def one(findings: tuple[Finding, ...], code: str) -> Finding:
    """The one finding of that code."""
    (found,) = [finding for finding in findings if finding.code == code]
    return found
