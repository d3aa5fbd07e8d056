"""What a night works with, and how it is to be run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from stackbuild.engine.docker_engine import Engine
from stackbuild.facts.tables import Facts
from stackbuild.progress import Observer
from stackbuild.registry.answers import RegistryAnswers
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.wheels.index_sources import PageCache
from stackbuild.site_config import SiteConfig
from stackbuild.store.http import HttpClient
from stackbuild.store.outages import Outages
from stackbuild.store.store import Store
from stackbuild.verification.gpus import GpuSelection

# Writes the reports of a stack: name → content, and gives name → where it lies.
Keep = Callable[[str, Mapping[str, bytes]], Mapping[str, str]]


@dataclass(frozen=True)
class NightOptions:
    """How to run a night.

    Attributes:
        rebuild: Build each stack anew; False for a quick night that judges the image that is there.
        gpus: GPUs to reserve for verifying; None for what each stack promises.
        strict: A WARN fails.
        published: Where stacks are published, as ``PUBLISHED/STACK``; empty to ask no registry for that.
        accept: Take a rebuild that differs as what the next nights are held against.
        retries: How often stacks that infrastructure kept from being judged are tried again, at the end.
        pause: Seconds to wait before that.
        work_dir: Where the empty stores of the rebuilds are made; None for a folder of the user's store.
    """

    rebuild: bool = True
    gpus: GpuSelection | None = None
    strict: bool = False
    published: str = ""
    accept: bool = False
    retries: int = 1
    pause: float = 60.0
    work_dir: Path | None = None


@dataclass(frozen=True)
class Ground:
    """What a night works with.

    Attributes:
        site: Mirrors, indexes, severities.
        store: The user's store: remembers scanned layers and earlier locks. No rebuild uses it.
        connect: Connects to the engine; raises NotJudgedError when none answers.
        environ: The process's environment, for SOURCE_DATE_EPOCH.
        observer: Told what is going on.
        facts: The compatibility data.
        today: Waivers and facts are held against it.
        keep: Writes the reports of a stack.
        pages: Pages of indexes, so that the stacks of a night ask for each once.
        answers: Documents of registries, so that the stacks of one base ask for it once.
        outages: Servers that are down, so that no stack waits again for what another did in vain.
    """

    site: SiteConfig
    store: Store
    connect: Callable[[], Engine]
    environ: Mapping[str, str]
    observer: Observer
    facts: Facts
    today: date
    keep: Keep
    pages: PageCache = field(default_factory=PageCache)
    answers: RegistryAnswers = field(default_factory=RegistryAnswers)
    outages: Outages = field(default_factory=Outages)

    def http(self) -> HttpClient:
        """A client that leaves alone what is down."""
        return HttpClient(self.site.ca_bundle, outages=self.outages)

    def registry(self) -> RegistryClient:
        """A client of registries that leaves alone what is down; use it as a context manager."""
        return RegistryClient(
            self.site.registries, ca_bundle=self.site.ca_bundle, outages=self.outages, answers=self.answers
        )


def stores_area(store: Store, options: NightOptions) -> Path:
    """The folder that the empty stores of the rebuilds are made in."""
    return options.work_dir or store.root / "rebuilds"
