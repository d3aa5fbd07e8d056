"""Whether a stack's locked inputs can still be had as they were locked; nothing is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import InterruptedRunError, StackbuildError
from stackbuild.findings import Finding
from stackbuild.lock.model import ImageBaseLock, Lock, PlatformLock
from stackbuild.nightly.inputs_base import check_external_image, check_image_base
from stackbuild.nightly.inputs_deb_lists import all_debs, read_deb_lists
from stackbuild.nightly.inputs_debs import DebCheck
from stackbuild.nightly.inputs_probe import Probe
from stackbuild.nightly.inputs_wheels import WheelCheck
from stackbuild.nightly.outcome import finding_of_error
from stackbuild.progress import Observer
from stackbuild.registry.answers import RegistryAnswers
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.wheels.index_metadata import MetadataReader
from stackbuild.resolution.wheels.index_sources import Indexes, PageCache
from stackbuild.resolution.wheels.uv import default_index_url
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import ImageBaseSpec, Platform
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store


def check_inputs(
    stack: LoadedSpec,
    lock: Lock | None,
    *,
    site: SiteConfig,
    store: Store,
    observer: Observer,
    engine: Engine | None = None,
    known_digest: str = "",
    pages: PageCache | None = None,
    answers: RegistryAnswers | None = None,
    http: HttpClient | None = None,
    registry: RegistryClient | None = None,
) -> tuple[Finding, ...]:
    """Ask registries, indexes and repositories for everything that a stack's lock names.

    Trouble of one of them is an ERROR finding of its own and hides no answer of the others; nothing is raised
    for it. What was asked and is as it was locked is counted in findings ``inputs-served`` (PASS).

    Args:
        stack: The spec.
        lock: Its lock; None for an external stack.
        site: Mirrors, indexes, snapshot archive, certificates.
        store: Keeps package lists and metadata; nothing of it counts as served.
        observer: Told of the progress and of waits.
        engine: Reads an image base's own apt sources; without it, debs of repositories that neither the site
            nor the spec places are a SKIP.
        known_digest: Of an external stack: the digest its tag had the last time (``external_digest``).
        pages: Pages that other stacks of the same night have fetched; what this one fetches is added. None for none.
        answers: What registries answered other stacks of the same night; None for nothing.
        http: The client; one with the site's CA bundle when None.
        registry: The registry client; one of the site's mirrors when None.

    Returns:
        The findings; ``details["platform"]`` names the platform. ``outcome_of_inputs`` says what they mean.

    Raises:
        InterruptedRunError: The person stopped the run.
    """
    own = (http or HttpClient(site.ca_bundle)).scoped()
    client = registry or RegistryClient(
        site.registries, ca_bundle=site.ca_bundle, outages=own.outages, answers=answers
    )
    try:
        if stack.spec.external is not None:
            return check_external_image(
                stack.spec.external, stack.spec.platforms, client=client, known_digest=known_digest
            )
        assert lock is not None, "only an external stack has no lock"
        indexes = Indexes(
            site,
            stack.spec.indexes,
            default_url=default_index_url,
            http=own,
            observer=observer,
            pages=pages,
        )
        asking = _Asking(stack, site, store, observer, engine, own, client, indexes, Probe(own, observer))
        return tuple(
            finding.model_copy(update={"details": {"platform": platform, **finding.details}})
            for platform, platform_lock in sorted(lock.platforms.items())
            for finding in asking.platform(platform, platform_lock)
        )
    finally:
        if registry is None:
            client.transport.close()


@dataclass(frozen=True)
class _Asking:
    stack: LoadedSpec
    site: SiteConfig
    store: Store
    observer: Observer
    engine: Engine | None
    http: HttpClient
    client: RegistryClient
    indexes: Indexes
    probe: Probe

    def platform(self, platform: Platform, lock: PlatformLock) -> Iterator[Finding]:
        base = lock.base
        if isinstance(base, ImageBaseLock):
            where = f"{base.image}:{base.tag}"
            self.observer.stage("inputs", where)
            spec = self.stack.spec.base
            pinned = isinstance(spec, ImageBaseSpec) and spec.digest is not None
            yield from _guarded(
                where, lambda: check_image_base(base, platform, client=self.client, pinned=pinned)
            )
        if lock.wheels:
            self.observer.stage("inputs", f"{len(lock.wheels)} wheels")
            yield from _guarded("wheels", lambda: self._wheels(platform, lock))
        if all_debs(lock):
            self.observer.stage("inputs", f"{len(all_debs(lock))} debs")
            yield from _guarded("debs", lambda: self._debs(platform, lock))

    def _wheels(self, platform: Platform, lock: PlatformLock) -> Iterable[Finding]:
        metadata = MetadataReader(http=self.http, store=self.store, observer=self.observer)
        return WheelCheck(
            lock,
            platform,
            site=self.site,
            indexes=self.indexes,
            metadata=metadata,
            probe=self.probe,
            http=self.http,
        ).run()

    def _debs(self, platform: Platform, lock: PlatformLock) -> Iterable[Finding]:
        lists = read_deb_lists(
            self.stack.spec,
            lock,
            platform,
            site=self.site,
            store=self.store,
            engine=self.engine,
            http=self.http,
            observer=self.observer,
        )
        check = DebCheck(lock, lists, site=self.site, probe=self.probe, http=self.http)
        return check.run()


def _guarded(subject: str, ask: Callable[[], Iterable[Finding]]) -> tuple[Finding, ...]:
    """The findings of one kind of input; an error that stops the kind as a whole is its finding."""
    try:
        return tuple(ask())
    except InterruptedRunError:
        raise
    except StackbuildError as error:
        return (finding_of_error(error, subject=subject),)
