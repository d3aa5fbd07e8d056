"""Whether every locked deb can still be had: listed, in a mirror's pool, on the snapshot archive, or nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal
from urllib.parse import urlsplit

from stackbuild.counting import counted, share
from stackbuild.errors import NotJudgedError, StackbuildError
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.file import INVALID
from stackbuild.lock.model import LockedDeb, PlatformLock
from stackbuild.nightly.inputs_apt_lists import ListedDeb
from stackbuild.nightly.inputs_deb_lists import DebLists, all_debs
from stackbuild.nightly.inputs_probe import Probe
from stackbuild.nightly.outcome import finding_of_error
from stackbuild.resolution.debs.apt_sources import repository_uris
from stackbuild.resolution.debs.deb_files import SUPERSEDED, deb_candidates
from stackbuild.site_config import SiteConfig
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.retry import RefusedError, TransferError, next_step

_AT_A_TIME = 8


class DebCheck:
    """The check of one platform's debs.

    Args:
        lock: Its debs are checked.
        lists: The repositories, and what they list today.
        site: Mirrors and snapshot archive.
        probe: Asks pools and snapshot for what is not listed.
        http: The client; it is stopped when the run is interrupted.
    """

    def __init__(
        self,
        lock: PlatformLock,
        lists: DebLists,
        *,
        site: SiteConfig,
        probe: Probe,
        http: HttpClient,
    ) -> None:
        self._debs = all_debs(lock)
        self._uris = repository_uris(lists.repositories, site.repositories)
        self._lists = lists
        self._site = site
        self._probe = probe
        self._http = http

    def run(self) -> Iterator[Finding]:
        """Gates ``deb-superseded``, ``artifact-changed``, and the error of each repository that cannot be asked."""
        answers = in_parallel(self._check, self._debs, http=self._http, jobs=_AT_A_TIME)
        unasked: dict[tuple[str, str], tuple[StackbuildError, list[str]]] = {}
        unplaced: dict[str, list[str]] = {}
        good: list[LockedDeb] = []
        for (deb, _), answer in zip(self._debs, answers, strict=True):
            if isinstance(answer, StackbuildError):
                unasked.setdefault((deb.repository, answer.code), (answer, []))[1].append(_name(deb))
            elif answer == "unplaced":
                unplaced.setdefault(deb.repository, []).append(_name(deb))
            elif answer == "listed":
                good.append(deb)
            else:
                yield answer
        for (repository, _), (error, names) in unasked.items():
            finding = finding_of_error(error, subject=f"repository {repository}", details={"debs": names})
            told = f"{finding.summary} {counted(len(names), 'deb')} of it could not be checked."
            yield finding.model_copy(update={"summary": told})
        for repository, error in self._lists.failed.items():
            if not any(name == repository for name, _ in unasked):
                yield finding_of_error(error, subject=f"repository {repository}", verdict=Verdict.WARN)
        for repository, names in unplaced.items():
            yield _unplaced(repository, names)
        if good:
            yield _served(good, len(self._debs))

    def _check(
        self, item: tuple[LockedDeb, str]
    ) -> Finding | StackbuildError | Literal["listed", "unplaced"]:
        deb, created = item
        same = [
            found
            for found in self._lists.listed.get(deb.name, ())
            if (found.version, found.architecture) == (deb.version, deb.architecture)
            and found.repository == deb.repository
        ]
        if any(found.sha256 == deb.sha256 for found in same):
            return "listed"
        candidates = deb_candidates(deb, self._uris, created=created, snapshot=self._site.snapshot)
        if same:
            return self._with_archived(_changed(deb, same[0]), deb, candidates)
        renamed = next(
            (found for found in self._lists.listed.get(deb.name, ()) if found.sha256 == deb.sha256), None
        )
        if renamed is not None and renamed.repository == deb.repository:
            return _misnamed(deb, renamed)
        failure = self._lists.failed.get(deb.repository)
        if isinstance(failure, NotJudgedError):
            return failure
        if not candidates:
            return "unplaced"
        return self._probed(deb, candidates)

    def _probed(
        self, deb: LockedDeb, candidates: Sequence[str]
    ) -> Finding | StackbuildError | Literal["listed"]:
        trouble: StackbuildError | None = None
        snapshot = self._site.snapshot is not None
        for number, url in enumerate(candidates):
            try:
                size = self._probe.size(url)
            except (TransferError, RefusedError) as error:
                trouble = trouble or _unreachable(deb.repository, url, error)
                continue
            if size is None:
                continue
            if size not in (-1, deb.size):
                return self._with_archived(_other_size(deb, url, size), deb, candidates)
            archived = snapshot and number == len(candidates) - 1
            if not archived and deb.repository not in self._lists.read:
                # Nobody knows its suite, so what a mirror's pool has is all there is to ask.
                return "listed"
            return _superseded(deb, self._lists.superseding(deb), "snapshot" if archived else "pool")
        return trouble or _superseded(deb, self._lists.superseding(deb), "nowhere")

    def _with_archived(self, finding: Finding, deb: LockedDeb, candidates: Sequence[str]) -> Finding:
        """What was found of a deb that was replaced, and whether the snapshot archive has the locked file."""
        if self._site.snapshot is None:
            return finding
        try:
            size = self._probe.size(candidates[-1])
        except (TransferError, RefusedError):
            return finding
        if size not in (-1, deb.size):
            return finding
        told = f"{finding.summary} The snapshot archive has the locked file."
        return finding.model_copy(
            update={"summary": told, "details": {**finding.details, "found": "snapshot"}}
        )


def _unreachable(repository: str, url: str, error: TransferError | RefusedError) -> NotJudgedError:
    limiting = isinstance(error, TransferError) and error.limiting
    return NotJudgedError(
        f"the repository {repository} {'limits its clients' if limiting else 'cannot be asked'}: {error}",
        code="index-rate-limited" if limiting else "repository-unreachable",
        where=str(urlsplit(url).hostname),
        do=next_step(error, f"the repository {repository}")
        if isinstance(error, TransferError)
        else f"Map the repository {repository} to a mirror that lets you in, in the site file.",
    )


def _changed(deb: LockedDeb, listed: ListedDeb) -> Finding:
    return Finding(
        code="artifact-changed",
        verdict=Verdict.FAIL,
        subject=_name(deb),
        measured=f"sha256 {listed.sha256}",
        required=f"sha256 {deb.sha256} ({deb.size} bytes)",
        summary=f"The repository {deb.repository} now lists another file as {_name(deb)}: sha256 {listed.sha256}, "
        f"locked sha256 {deb.sha256}.",
        next_step="Find out who changed it before anything is built from it. Only if the new file is wanted, lock"
        f" again with --upgrade {deb.name}.",
        details={"repository": deb.repository, "path": deb.path},
    )


def _misnamed(deb: LockedDeb, listed: ListedDeb) -> Finding:
    return Finding(
        code=INVALID,
        verdict=Verdict.FAIL,
        subject=_name(deb),
        measured=f"{listed.name} {listed.version} for {listed.architecture}",
        required=f"{_name(deb)} for {deb.architecture}",
        summary=f"The lock calls {_name(deb)} for {deb.architecture} what the repository {deb.repository} has as "
        f"{listed.version} for {listed.architecture}; was it edited by hand?",
        next_step="Take back the lock that was committed, or lock again.",
        details={"repository": deb.repository, "path": deb.path},
    )


def _other_size(deb: LockedDeb, url: str, size: int) -> Finding:
    return Finding(
        code="artifact-changed",
        verdict=Verdict.FAIL,
        subject=_name(deb),
        measured=f"{size} bytes",
        required=f"sha256 {deb.sha256} ({deb.size} bytes)",
        summary=f"{urlsplit(url).hostname} has {size} bytes as {_name(deb)}, and {deb.size} are locked.",
        next_step="Find out who changed it before anything is built from it; a mirror that is being filled is right"
        " again within the hour.",
        details={"repository": deb.repository, "path": deb.path},
    )


def _superseded(
    deb: LockedDeb, newer: ListedDeb | None, where: Literal["pool", "snapshot", "nowhere"]
) -> Finding:
    by = f", superseded by {newer.version}" if newer is not None else ""
    still = {
        "pool": "is listed no more{by}; its file is still in the mirror's pool, for a while",
        "snapshot": "is gone from the mirror{by}; the snapshot archive has it",
        "nowhere": "can be had nowhere any more{by}: neither the mirror nor a snapshot archive has it",
    }[where].format(by=by)
    return Finding(
        code=SUPERSEDED,
        verdict=Verdict.FAIL if where == "nowhere" else Verdict.WARN,
        subject=_name(deb),
        measured=newer.version if newer is not None else "not listed",
        required=deb.version,
        summary=f"{deb.name} {deb.version} of the repository {deb.repository} {still}.",
        next_step=f"Lock again with --upgrade {deb.name}"
        + (
            ", or name a snapshot archive in the site file."
            if where == "nowhere"
            else "; until then it is fetched from there."
            if where == "snapshot"
            else " before the mirror drops it, or name a snapshot archive in the site file."
        ),
        details={
            "repository": deb.repository,
            "path": deb.path,
            "found": where,
            "superseded-by": newer.version if newer is not None else "",
        },
    )


def _unplaced(repository: str, names: Sequence[str]) -> Finding:
    return Finding(
        code="inputs-unplaced",
        verdict=Verdict.SKIP,
        subject=f"repository {repository}",
        measured=counted(len(names), "deb"),
        summary=f"Nothing says where the repository {repository} is, so {counted(len(names), 'deb')} of it were not asked for.",
        next_step=f"Write [repositories] {repository} = URL in the site file, or let an engine read the base's sources.",
        details={"debs": list(names)},
    )


def _served(good: Sequence[LockedDeb], total: int) -> Finding:
    places = Counter(deb.repository for deb in good)
    told = ", ".join(f"{number} of {repository}" for repository, number in sorted(places.items()))
    return Finding(
        code="inputs-served",
        verdict=Verdict.PASS,
        subject="debs",
        measured=f"{len(good)} of {total}",
        required=str(total),
        summary=f"{share(len(good), total, 'deb').capitalize()} served as they were locked ({told}).",
    )


def _name(deb: LockedDeb) -> str:
    return f"{deb.name} {deb.version}"
