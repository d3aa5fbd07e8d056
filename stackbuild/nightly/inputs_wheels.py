"""Whether every locked wheel is still on its index, under its name and with its hash, and not withdrawn."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackbuild.counting import counted, share
from stackbuild.errors import InterruptedRunError, StackbuildError
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.model import LockedWheel, PlatformLock
from stackbuild.lock.wheels_target import Target
from stackbuild.nightly.inputs_gone import GoneWheels
from stackbuild.nightly.inputs_probe import Probe
from stackbuild.nightly.inputs_words import place
from stackbuild.nightly.outcome import finding_of_error
from stackbuild.resolution.wheels.index_metadata import MetadataReader
from stackbuild.resolution.wheels.index_page import IndexFile
from stackbuild.resolution.wheels.index_sources import URL_INDEX, Indexes, denied, unreachable
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import Platform
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.retry import RefusedError, TransferError
from stackbuild.urls import local_path

_AT_A_TIME = 8
# Pages of one index that may fail before it counts as down, and is asked no more tonight.
_FAILURES_OF_AN_INDEX = 3
_CHUNK = 1 << 20


@dataclass(frozen=True)
class _Wheel:
    """What was found of one wheel, and how much of it the index let us compare."""

    findings: tuple[Finding, ...] = ()
    compared: str = "hash"
    forbidden: bool = False  # the index answered 403 to its page


class WheelCheck:
    """The check of one platform's wheels; one request for each project's page.

    Args:
        lock: Its wheels are checked, and what locking them noticed is not told again.
        platform: The lock's platform.
        site: Whose hashes are trusted.
        indexes: The pages of the indexes; each is fetched once.
        metadata: Reads what the parent of a wheel that is gone asks for.
        probe: Asks for sizes where no hash can be compared.
        http: The client; it is stopped when the run is interrupted.
    """

    def __init__(
        self,
        lock: PlatformLock,
        platform: Platform,
        *,
        site: SiteConfig,
        indexes: Indexes,
        metadata: MetadataReader,
        probe: Probe,
        http: HttpClient,
    ) -> None:
        self._lock = lock
        self._site = site
        self._indexes = indexes
        self._probe = probe
        self._http = http
        target = Target.of(lock.python, lock.os, platform) if lock.python is not None else None
        self._gone = GoneWheels(lock.wheels, indexes, metadata, target)
        self._failures: Counter[str] = Counter()
        self._down: dict[str, StackbuildError] = {}
        self._guard = threading.Lock()

    def run(self) -> Iterator[Finding]:
        """Gates ``broken-upstream``, ``wheel-yanked``, ``artifact-changed``, ``index-hash-wrong``.

        An index that cannot be asked is one finding with the code of its error, however many wheels it has.
        """
        wheels = self._lock.wheels
        answers = self._with_refusals(in_parallel(self._check, wheels, http=self._http, jobs=_AT_A_TIME))
        unasked: dict[tuple[str, str], tuple[StackbuildError, list[str]]] = {}
        good: list[tuple[LockedWheel, str]] = []
        for wheel, answer in zip(wheels, answers, strict=True):
            if isinstance(answer, StackbuildError):
                unasked.setdefault((wheel.index, answer.code), (answer, []))[1].append(_name(wheel))
                continue
            yield from answer.findings
            if not answer.findings:
                good.append((wheel, answer.compared))
        for (index, _), (error, names) in unasked.items():
            finding = finding_of_error(error, subject=f"index {index}", details={"wheels": names})
            told = f"{finding.summary} {counted(len(names), 'wheel')} of it could not be checked."
            yield finding.model_copy(update={"summary": told})
        if good:
            yield _served(good, len(wheels))

    def _with_refusals(self, answers: Sequence[_Wheel | StackbuildError]) -> list[_Wheel | StackbuildError]:
        """Take back what is called gone from an index that says 403 to everything.

        The object store under torch's channels means "no such page" by it, a proxy that nobody gets through. Where
        the index gave any other page tonight it is the former.
        """
        wheels = self._lock.wheels
        open_indexes = {
            wheel.index
            for wheel, answer in zip(wheels, answers, strict=True)
            if isinstance(answer, _Wheel) and not answer.forbidden
        }
        return [
            denied(wheel.index, "", "403 to every page that was asked for")
            if isinstance(answer, _Wheel) and answer.forbidden and wheel.index not in open_indexes
            else answer
            for wheel, answer in zip(wheels, answers, strict=True)
        ]

    def _check(self, wheel: LockedWheel) -> _Wheel | StackbuildError:
        """What is found of a wheel; an index that cannot be asked is an answer too, so that others are heard."""
        with self._guard:
            if self._failures[wheel.index] >= _FAILURES_OF_AN_INDEX:
                return self._down[wheel.index]
        try:
            return self._judged(wheel)
        except InterruptedRunError:
            raise
        except StackbuildError as error:
            with self._guard:
                self._failures[wheel.index] += 1
                return self._down.setdefault(wheel.index, error)

    def _judged(self, wheel: LockedWheel) -> _Wheel:
        if wheel.index == URL_INDEX:
            # What a URL serves today has no page that would state a hash.
            return self._compared(wheel, IndexFile(wheel.file, str(wheel.url)), stated=None)
        page = self._indexes.page(wheel.index, wheel.name)
        file = next((file for file in page or () if file.name == wheel.file), None)
        if file is None:
            forbidden = self._indexes.refusal(wheel.index, wheel.name) == 403
            return _Wheel((self._gone.finding(wheel, page),), forbidden=forbidden)
        compared = self._compared(wheel, file, stated=file.sha256)
        if file.yanked is None:
            return compared
        return _Wheel((_yanked(wheel, file.yanked), *compared.findings))

    def _compared(self, wheel: LockedWheel, file: IndexFile, *, stated: str | None) -> _Wheel:
        local = local_path(file.url)
        if local is not None:
            if not local.is_file():
                return _Wheel((self._gone.finding(wheel, None),))
            found = _sha256(local)
            return _Wheel() if found == wheel.sha256 else _Wheel((_changed(wheel, f"sha256 {found}"),))
        if stated == wheel.sha256:
            return _Wheel()
        if stated is not None and self._site.trusts_hashes(wheel.index):
            return _Wheel((_changed(wheel, f"sha256 {stated}"),))
        size = file.size if file.size is not None else self._size(wheel, file.url)
        if size is None:
            return _Wheel((self._gone.finding(wheel, ()),))
        if size not in (-1, wheel.size):
            told = f"{size} bytes" + (f", stated sha256 {stated}" if stated else "")
            return _Wheel((_changed(wheel, told),))
        if stated is not None and not self._told_when_locked(wheel, stated):
            return _Wheel((_stated_otherwise(wheel, stated),))
        return _Wheel(compared="size" if size != -1 else "name")

    def _size(self, wheel: LockedWheel, url: str) -> int | None:
        try:
            return self._probe.size(url)
        except TransferError as error:
            mapped_in = self._site.mapped_in("indexes", wheel.index)
            raise unreachable(wheel.index, url, error, mapped_in) from error
        except RefusedError as error:
            raise denied(wheel.index, url, f"{wheel.file}: {error}") from error

    def _told_when_locked(self, wheel: LockedWheel, stated: str) -> bool:
        return any(
            finding.code == "index-hash-wrong"
            and finding.subject == wheel.name
            and finding.required == stated
            for finding in self._lock.findings
        )


def _yanked(wheel: LockedWheel, reason: str) -> Finding:
    return Finding(
        code="wheel-yanked",
        verdict=Verdict.FAIL,
        subject=_name(wheel),
        measured=reason or "no reason is given",
        required="a version that its publisher stands by",
        summary=f"{wheel.name} {wheel.version} was withdrawn by its publisher after it was locked"
        f" ({reason or 'no reason is given'}).",
        next_step=f"Lock again with --upgrade {wheel.name}, or require another version of it.",
        details={"index": wheel.index, "file": wheel.file},
    )


def _changed(wheel: LockedWheel, found: str) -> Finding:
    return Finding(
        code="artifact-changed",
        verdict=Verdict.FAIL,
        subject=_name(wheel),
        measured=found,
        required=f"sha256 {wheel.sha256} ({wheel.size} bytes)",
        summary=f"{wheel.file} has been replaced at {place(wheel)} under the same name: "
        f"{found}, locked sha256 {wheel.sha256} ({wheel.size} bytes).",
        next_step="Find out who changed it before anything is built from it; the lock stays as it is. Only if the"
        f" new file is wanted, lock again with --upgrade {wheel.name}.",
        details={"index": wheel.index, "file": wheel.file},
    )


def _stated_otherwise(wheel: LockedWheel, stated: str) -> Finding:
    return Finding(
        code="index-hash-wrong",
        verdict=Verdict.WARN,
        subject=_name(wheel),
        measured=stated,
        required=wheel.sha256,
        summary=f"The index {wheel.index} now states another hash for {wheel.file} than was locked; its size is the same.",
        next_step="A clean rebuild fetches and hashes the file, and says whether it is the file or the page that changed.",
        details={"index": wheel.index, "file": wheel.file},
    )


def _served(good: Sequence[tuple[LockedWheel, str]], total: int) -> Finding:
    by_index = Counter(wheel.index for wheel, _ in good)
    weaker = {kind: [wheel.file for wheel, compared in good if compared == kind] for kind in ("size", "name")}
    places = ", ".join(f"{number} of {index}" for index, number in sorted(by_index.items()))
    notes = "".join(
        f"; {len(files)} could be compared by {kind} alone" for kind, files in weaker.items() if files
    )
    return Finding(
        code="inputs-served",
        verdict=Verdict.PASS,
        subject="wheels",
        measured=f"{len(good)} of {total}",
        required=str(total),
        summary=f"{share(len(good), total, 'wheel').capitalize()} served as they were locked ({places}){notes}.",
        details={f"compared-by-{kind}": files for kind, files in weaker.items() if files},
    )


def _name(wheel: LockedWheel) -> str:
    return f"{wheel.name} {wheel.version}"


def _sha256(path: Path) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hashed.update(chunk)
    return hashed.hexdigest()
