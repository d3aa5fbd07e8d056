"""Chooses the best of a repository's images for a host or a fleet, and says why the others lost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import Literal

from packaging.version import InvalidVersion, Version
from pydantic import Field

from stackbuild.annotate.inspect import inspect_image
from stackbuild.annotate.pin_list import PinList
from stackbuild.compat.check import check
from stackbuild.compat.judge import worst
from stackbuild.compat.subject import HostOffer
from stackbuild.compat.subjects import subject_of_image
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.frozen_model import FrozenModel
from stackbuild.publish.remote_image import RemoteImage, read_remote
from stackbuild.publish.staging import is_internal
from stackbuild.registry.client import RegistryClient
from stackbuild.site_policy import Policy

_AT_A_TIME = 8
_GRAVITY = (Verdict.PASS, Verdict.SKIP, Verdict.WARN, Verdict.ERROR, Verdict.FAIL)

_SERVES = (Verdict.PASS, Verdict.WARN)


class Candidate(FrozenModel):
    """One image of a repository, as it was judged."""

    tags: tuple[str, ...]
    digest: str
    verdict: Verdict = Field(description="the gravest over all hosts")
    pins: PinList | None = None
    reason: str = Field(description="why it was chosen, or why it lost")
    findings: tuple[Finding, ...] = Field(default=(), description="what is not simply well, on any host")


class Choice(FrozenModel):
    """The answer of ``stackbuild pick``."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    repository: str
    hosts: tuple[str, ...]
    chosen: str | None = Field(description="REPOSITORY@DIGEST; None when no image serves every host")
    chosen_tag: str | None = None
    candidates: tuple[Candidate, ...] = Field(description="the chosen one first, then by how near they came")


@dataclass(frozen=True)
class _Image:
    tags: tuple[str, ...]
    remote: RemoteImage
    pins: PinList | None
    created: str


def pick(
    client: RegistryClient,
    repository: str,
    hosts: Sequence[HostOffer],
    facts: Facts,
    policy: Policy,
    today: date,
) -> Choice:
    """Judge every image of a repository on every host and choose.

    Of what serves every host, the best uses the GPU where there is one, and then has the least grave verdict; among
    equals the newest torch wins, then ONNX Runtime, then CUDA, then the image that was made last.

    Args:
        client: Reads the registry.
        repository: Without tag.
        hosts: All of them must be served.
        facts: The fact tables.
        policy: The site's.
        today: For ends of life.

    Raises:
        LockError: ``no-such-repository``, ``no-image-to-pick``.
        NotJudgedError: The registry cannot be used.
    """
    images = _images(client, repository)
    if not images:
        raise LockError(
            "the repository has no image to pick from",
            code="no-image-to-pick",
            where=repository,
            do="Publish one: stackbuild publish IMAGE REPOSITORY.",
        )
    judged = [(image, *_judge(repository, image, hosts, facts, policy, today)) for image in images]
    with_gpu = any(host.gpus or host.driver for host in hosts)
    judged.sort(
        key=lambda entry: (
            entry[1] not in _SERVES,
            with_gpu and not _uses_gpu(entry[0]),
            _GRAVITY.index(entry[1]),
            *_preference(entry[0]),
        )
    )
    best_image, best_verdict, _ = judged[0]
    serves = best_verdict in _SERVES
    candidates = []
    for image, verdict, findings in judged:
        if serves and image is best_image:
            reason = _why_chosen(image, findings)
        elif verdict not in _SERVES:
            decisive = worst(findings)
            reason = decisive.summary if decisive else "nothing is known of it"
        elif with_gpu and _uses_gpu(best_image) and not _uses_gpu(image):
            reason = "would run, but leaves the GPU unused"
        else:
            reason = _why_behind(image, verdict, best_image, best_verdict, findings)
        candidates.append(
            Candidate(
                tags=image.tags,
                digest=image.remote.digest,
                verdict=verdict,
                pins=image.pins,
                reason=reason,
                findings=tuple(f for f in findings if f.verdict not in (Verdict.PASS, Verdict.SKIP)),
            )
        )
    return Choice(
        repository=repository,
        hosts=tuple(host.name for host in hosts),
        chosen=f"{repository}@{best_image.remote.digest}" if serves else None,
        chosen_tag=_telling_tag(best_image.tags) if serves else None,
        candidates=tuple(candidates),
    )


def _images(client: RegistryClient, repository: str) -> list[_Image]:
    """The repository's images, each once with all its tags."""
    tags = [tag for tag in client.tags(repository) if not is_internal(tag)]
    with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="pick") as pool:
        read = list(pool.map(lambda tag: read_remote(client, repository, tag), tags))
    by_digest: dict[str, tuple[RemoteImage, list[str]]] = {}
    for tag, remote in zip(tags, read, strict=True):
        if remote is not None and remote.children:
            by_digest.setdefault(remote.digest, (remote, []))[1].append(tag)
    return [
        _Image(
            tuple(sorted(names)),
            remote,
            _pins(remote),
            max(str(config.get("created") or "") for config in remote.configs.values()),
        )
        for remote, names in by_digest.values()
    ]


def _pins(remote: RemoteImage) -> PinList | None:
    child = remote.children[0]
    try:
        return inspect_image(child.digest, child.labels, child.diff_ids).pins
    except NotJudgedError:
        return None


def _judge(
    repository: str, image: _Image, hosts: Sequence[HostOffer], facts: Facts, policy: Policy, today: date
) -> tuple[Verdict, tuple[Finding, ...]]:
    """The gravest verdict over all hosts, and all findings on them."""
    findings: list[Finding] = []
    verdicts: list[Verdict] = []
    for host in hosts:
        child = image.remote.child(host.platform) if host.platform else image.remote.children[0]
        if child is None:
            have = ", ".join(entry.platform for entry in image.remote.children)
            verdicts.append(Verdict.FAIL)
            findings.append(
                Finding(
                    code="platform-mismatch",
                    verdict=Verdict.FAIL,
                    subject=host.name,
                    summary=f"it is for {have}, and {host.name} is {host.platform}",
                    measured=have,
                    required=host.platform or "",
                )
            )
            continue
        if image.pins is None:
            verdicts.append(Verdict.ERROR)
            findings.append(
                Finding(
                    code="no-pin-list",
                    verdict=Verdict.ERROR,
                    subject=image.tags[0],
                    summary="it has no pin list that holds for its layers, so what it needs is not known",
                )
            )
            continue
        config = image.remote.configs[child.digest]
        subject = subject_of_image(f"{repository}:{image.tags[0]}", config, child.platform, image.pins)
        cell = check([subject], [host], facts, policy, today).cells[0]
        verdicts.append(cell.verdict)
        findings.extend(cell.findings)
    return max(verdicts, key=_GRAVITY.index, default=Verdict.SKIP), tuple(findings)


def _uses_gpu(image: _Image) -> bool:
    return image.pins is not None and (
        image.pins.cuda is not None or image.pins.onnxruntime_package == "onnxruntime-gpu"
    )


def _preference(image: _Image) -> tuple[object, ...]:
    """Sorts the better image first."""
    pins = image.pins
    parts = (pins.torch, pins.onnxruntime, pins.cuda) if pins else (None, None, None)
    return (*(_Newest(part) for part in parts), _Latest(image.created), image.remote.digest)


@dataclass(frozen=True)
class _Newest:
    """A version that sorts the newer first, and none last."""

    text: str | None

    def __lt__(self, other: _Newest) -> bool:
        return _version(self.text) > _version(other.text)


@dataclass(frozen=True)
class _Latest:
    """A time that sorts the later first."""

    text: str

    def __lt__(self, other: _Latest) -> bool:
        return self.text > other.text


def _version(text: str | None) -> Version:
    try:
        return Version(text or "0")
    except InvalidVersion:
        match = re.match(r"\d+(\.\d+)*", text or "")
        return Version(match[0] if match else "0")


def _why_chosen(image: _Image, findings: Sequence[Finding]) -> str:
    warned = [finding.summary for finding in findings if finding.verdict is Verdict.WARN]
    what = f"serves every host with {_contents(image)}"
    return f"{what}; {warned[0]}" if warned else what


def _why_behind(
    image: _Image, verdict: Verdict, best: _Image, best_verdict: Verdict, findings: Sequence[Finding]
) -> str:
    if verdict is not best_verdict:
        warned = worst(findings)
        return f"would run with a warning: {warned.summary}" if warned else "would run with a warning"
    ours, theirs = image.pins, best.pins
    if ours is None or theirs is None:
        return "is not described by a pin list"
    for name, mine, other in (
        ("torch", ours.torch, theirs.torch),
        ("ONNX Runtime", ours.onnxruntime, theirs.onnxruntime),
        ("CUDA", ours.cuda, theirs.cuda),
    ):
        if _version(mine) != _version(other):
            return f"would run, but has {f'{name} {mine}' if mine else f'no {name}'} where the chosen one has {other}"
    return f"would run, but is the older build ({image.created}, the chosen one {best.created})"


def _contents(image: _Image) -> str:
    pins = image.pins
    if pins is None:
        return "what it has"
    parts = [
        f"torch {pins.torch}" + (f" ({pins.torch_variant})" if pins.torch_variant else "")
        if pins.torch
        else "",
        f"{pins.onnxruntime_package} {pins.onnxruntime}" if pins.onnxruntime else "",
        f"CUDA {pins.cuda}" if pins.cuda else "no CUDA",
    ]
    return ", ".join(part for part in parts if part)


def _telling_tag(tags: Sequence[str]) -> str:
    """The tag that says most: a version before ``latest``."""
    return max((tag for tag in tags), key=lambda tag: (tag != "latest", len(tag)))
