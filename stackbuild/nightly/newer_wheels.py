"""Newer wheels within the spec's ranges: the resolution that ``lock --upgrade`` would do, without its downloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from packaging.version import Version

from stackbuild.compat.contents import Distribution
from stackbuild.errors import LockError
from stackbuild.findings import Verdict
from stackbuild.lock.model import LockedWheel, PlatformLock
from stackbuild.nightly.model import NewerVersion
from stackbuild.nightly.newer_judge import LockJudge
from stackbuild.progress import Observer
from stackbuild.resolution.wheels.index_bindings import TORCH_FAMILY
from stackbuild.resolution.wheels.index_sources import PageCache
from stackbuild.resolution.wheels.request import wanted_wheels
from stackbuild.resolution.wheels.resolution import Chosen, WheelResolution, wheel_resolution
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import Platform
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store


def newer_wheels(
    stack: LoadedSpec,
    platform: Platform,
    lock: PlatformLock,
    *,
    site: SiteConfig,
    store: Store,
    judge: LockJudge,
    http: HttpClient,
    observer: Observer,
    pages: PageCache | None = None,
) -> Iterator[NewerVersion]:
    """Resolve anew and judge what moved.

    The whole is judged first. Only where that is worse than the lock as it is, each package is resolved and
    judged by itself, to say which of them it is.

    Raises:
        LockError: There is no solution any more, or the judge's own question cannot be put.
        NotJudgedError: An index does not answer.
    """
    if lock.python is None:
        return
    wanted = wanted_wheels(stack.spec, stack.folder)
    resolution = wheel_resolution(
        wanted.spec,
        wanted.requirements,
        python=lock.python,
        os=lock.os,
        platform=platform,
        site=site,
        store=store,
        previous=lock.wheels,
        observer=observer,
        http=http,
        pages=pages,
    )
    locked = {wheel.name: wheel for wheel in lock.wheels}
    whole = resolution.chosen("all")
    verdict, reason = judge.of_wheels(platform, _distributions(whole))
    for item in whole:
        wheel = locked.get(item.package)
        if wheel is None or Version(item.version) <= Version(wheel.version):
            continue
        answer = (verdict, reason)
        newer = item
        if verdict is not Verdict.PASS:
            newer, answer = _alone(resolution, platform, wheel, item, judge, answer)
        yield NewerVersion(
            kind=_kind(item.package),
            name=item.package,
            locked=wheel.version,
            newer=newer.version,
            verdict=answer[0],
            reason=answer[1],
        )


def _alone(
    resolution: WheelResolution,
    platform: Platform,
    wheel: LockedWheel,
    together: Chosen,
    judge: LockJudge,
    whole: tuple[Verdict, str],
) -> tuple[Chosen, tuple[Verdict, str]]:
    """The answer on one package alone, with what it drags along; on all together where it cannot move alone."""
    try:
        chosen = resolution.chosen(frozenset({wheel.name}))
    except LockError:
        return together, whole
    alone = next((item for item in chosen if item.package == wheel.name), None)
    if alone is None or Version(alone.version) <= Version(wheel.version):
        verdict, reason = whole
        return together, (verdict, f"it moves only together with others: {reason}")
    return alone, judge.of_wheels(platform, _distributions(chosen))


def _distributions(chosen: Sequence[Chosen]) -> tuple[Distribution, ...]:
    return tuple(
        Distribution(item.package, item.version, item.file.name, item.index)
        for item in sorted(chosen, key=lambda item: item.package)
    )


def _kind(package: str) -> Literal["python", "torch", "onnxruntime"]:
    if package in TORCH_FAMILY:
        return "torch"
    return "onnxruntime" if package.startswith("onnxruntime") else "python"
