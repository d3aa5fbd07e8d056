"""What a lock made today with ``--upgrade`` would have instead, and the judge's answer on taking it.

Nothing is written, downloaded to be hashed, or built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date

from stackbuild.counting import counted
from stackbuild.digests import short_digest
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import InterruptedRunError, LockError, StackbuildError
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.model import ImageBaseLock, Lock, PlatformLock
from stackbuild.nightly.inputs_deb_lists import all_debs, read_deb_lists
from stackbuild.nightly.model import NewerVersion
from stackbuild.nightly.newer_judge import LockJudge
from stackbuild.nightly.newer_wheels import newer_wheels
from stackbuild.nightly.outcome import finding_of_error
from stackbuild.progress import Observer
from stackbuild.registry.answers import RegistryAnswers
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.bases.image_base import lock_image_base
from stackbuild.resolution.wheels.index_sources import PageCache
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import ImageBaseSpec, Platform
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store


@dataclass(frozen=True)
class Newer:
    """What is newer.

    Attributes:
        versions: Each version that the spec's ranges allow and the lock does not have, with the judge's answer.
        findings: ``newer-version`` for what should not be taken as it is and for the count of the rest; and why
            a part of the question has no answer tonight.
    """

    versions: tuple[NewerVersion, ...] = ()
    findings: tuple[Finding, ...] = ()


def newer_versions(
    stack: LoadedSpec,
    lock: Lock,
    *,
    site: SiteConfig,
    store: Store,
    facts: Facts,
    today: date,
    observer: Observer,
    engine: Engine | None = None,
    pages: PageCache | None = None,
    answers: RegistryAnswers | None = None,
    http: HttpClient | None = None,
    registry: RegistryClient | None = None,
) -> Newer:
    """Find newer wheels, debs and base images within the spec's ranges, and judge taking each.

    What cannot be resolved any more is a WARN with the resolver's reason; an index, registry or repository that
    does not answer is an ERROR. Neither is raised.

    Args:
        stack: The spec.
        lock: Its lock.
        site: Mirrors, indexes, certificates, and the policy that the judge applies.
        store: Keeps lists and metadata.
        facts: What the judge knows.
        today: The day to judge for.
        observer: Told of the progress.
        engine: Reads an image base's own apt sources; without it its debs are left out.
        pages: As for ``check_inputs``.
        answers: As for ``check_inputs``.
        http: The client; one with the site's CA bundle when None.
        registry: The registry client; one of the site's mirrors when None.

    Raises:
        SpecError: The target names an unknown GPU (``unknown-gpu``).
        InterruptedRunError: The person stopped the run.
    """
    own = (http or HttpClient(site.ca_bundle)).scoped()
    client = registry or RegistryClient(
        site.registries, ca_bundle=site.ca_bundle, outages=own.outages, answers=answers
    )
    judge = LockJudge(stack, lock, facts, site.policy, today)
    try:
        search = _Search(stack, site, store, observer, engine, own, client, judge, pages)
        for platform, platform_lock in sorted(lock.platforms.items()):
            if platform in stack.spec.platforms:
                search.platform(platform, platform_lock)
    finally:
        if registry is None:
            client.transport.close()
    # Platforms mostly move alike; the gravest answer stands for all.
    versions: dict[tuple[str, str, str, str], NewerVersion] = {}
    for version in sorted(search.versions, key=lambda version: _ORDER.index(version.verdict)):
        versions.setdefault((version.kind, version.name, version.locked, version.newer), version)
    ordered = tuple(versions[key] for key in sorted(versions))
    return Newer(ordered, (*search.findings, *_told(stack.spec.name, ordered, search)))


_ORDER = (Verdict.FAIL, Verdict.ERROR, Verdict.WARN, Verdict.SKIP, Verdict.PASS)


@dataclass
class _Search:
    stack: LoadedSpec
    site: SiteConfig
    store: Store
    observer: Observer
    engine: Engine | None
    http: HttpClient
    client: RegistryClient
    judge: LockJudge
    pages: PageCache | None
    versions: list[NewerVersion] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)

    def platform(self, platform: Platform, lock: PlatformLock) -> None:
        self._guarded(f"base image on {platform}", lambda: self._base(platform, lock))
        self._guarded(
            f"wheels for {platform}",
            lambda: newer_wheels(
                self.stack,
                platform,
                lock,
                site=self.site,
                store=self.store,
                judge=self.judge,
                http=self.http,
                observer=self.observer,
                pages=self.pages,
            ),
        )
        self._guarded(f"debs for {platform}", lambda: self._debs(platform, lock))

    def _guarded(self, subject: str, search: Callable[[], Iterator[NewerVersion]]) -> None:
        try:
            self.versions += search()
        except InterruptedRunError:
            raise
        except LockError as error:
            self.findings.append(_unsolved(error, subject))
        except StackbuildError as error:
            self.findings.append(finding_of_error(error, subject=subject))
            self.unasked.append(subject)

    def _base(self, platform: Platform, lock: PlatformLock) -> Iterator[NewerVersion]:
        spec, locked = self.stack.spec.base, lock.base
        if not isinstance(spec, ImageBaseSpec) or not isinstance(locked, ImageBaseLock):
            return
        if spec.digest is not None:
            return  # the spec allows this one image and no newer one
        now = lock_image_base(spec, platform, client=self.client, previous=locked, upgrade=True)
        if now.platform_digest == locked.platform_digest:
            return
        verdict, reason = self.judge.of_lock(platform, lock.model_copy(update={"base": now}))
        yield NewerVersion(
            kind="base",
            name=f"{locked.image}:{locked.tag}",
            locked=short_digest(locked.index_digest),
            newer=short_digest(now.index_digest),
            verdict=verdict,
            reason=reason,
        )

    def _debs(self, platform: Platform, lock: PlatformLock) -> Iterator[NewerVersion]:
        if not all_debs(lock):
            return
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
        for deb, _ in all_debs(lock):
            newer = lists.superseding(deb)
            if newer is not None:
                yield NewerVersion(
                    kind="deb",
                    name=deb.name,
                    locked=deb.version,
                    newer=newer.version,
                    # No gate judges debs but those about Python and glibc, whose series a suite keeps.
                    verdict=Verdict.PASS,
                    reason=f"listed by {newer.repository} {newer.suite}",
                )
        for error in lists.failed.values():
            raise error


def _unsolved(error: LockError, subject: str) -> Finding:
    """Locking anew fails, and says nothing of the lock that there is: a warning of what comes."""
    finding = finding_of_error(error, subject=subject, verdict=Verdict.WARN)
    return finding.model_copy(
        update={"summary": f"A lock made today with --upgrade would fail: {error.what.rstrip('.')}."}
    )


def _told(stack: str, versions: tuple[NewerVersion, ...], search: _Search) -> Iterator[Finding]:
    """Gate ``newer-version``: one finding for each that should not be taken, and one that counts the rest.

    Where nothing is known to be newer and a part could not be asked, that is no answer: SKIP.
    """
    refused = [version for version in versions if version.verdict in (Verdict.FAIL, Verdict.WARN)]
    for version in refused:
        yield Finding(
            code="newer-version",
            verdict=Verdict.WARN,
            subject=version.name,
            measured=version.newer,
            required=version.locked,
            summary=f"{version.name} {version.newer} is within the spec's ranges, and the judge says "
            f"{version.verdict} to taking it: {version.reason}",
            next_step=f"Keep {version.locked}: bound the range in the spec, so that lock --upgrade does not take it.",
            details={"kind": version.kind, "verdict": str(version.verdict)},
        )
    rest = [version for version in versions if version not in refused]
    named = [f"{version.name} {version.newer}" for version in rest if version.kind != "deb"]
    debs = sum(version.kind == "deb" for version in rest)
    parts = [*named, *([counted(debs, "deb")] if debs else [])]
    if not versions and search.unasked:
        yield Finding(
            code="newer-version",
            verdict=Verdict.SKIP,
            subject=stack,
            summary=f"Whether anything is newer is not known: {', '.join(search.unasked)} could not be asked for.",
        )
        return
    whole = not search.findings
    nothing = "Nothing else is newer" if refused else "Nothing is newer"
    told = (
        f"Newer within the spec's ranges: {', '.join(parts)}"
        if parts
        else f"{nothing} within the spec's ranges"
    )
    yield Finding(
        code="newer-version",
        verdict=Verdict.PASS,
        subject=stack,
        measured=", ".join(parts) or "nothing newer",
        summary=f"{told}{'' if whole else ', as far as could be asked'}.",
        next_step=f"stackbuild lock {stack} --upgrade, when they are wanted." if parts else "",
    )
