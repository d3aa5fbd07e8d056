"""The judge: every static gate over one image, and over one image on one host.

Gates about the image alone are asked once. Gates about an image and a host see only the part of each that
bears on their question, and each distinct question is answered once: that is what lets a hundred stacks
meet a thousand hosts quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from stackbuild.compat.architecture import (
    judge_architecture,
    judge_gpu_against_driver,
    judge_gpu_against_toolkit,
)
from stackbuild.compat.base import judge_ages, judge_digest, judge_tag
from stackbuild.compat.contents import Contents
from stackbuild.compat.driver import forward_compatible_gpus, judge_compat_library, judge_driver
from stackbuild.compat.environment import judge_environment
from stackbuild.compat.onnxruntime import judge_cudnn_users, judge_libraries, judge_onnxruntime
from stackbuild.compat.posture import judge_posture
from stackbuild.compat.requirements import judge_requirement
from stackbuild.compat.subject import (
    CudaComponent,
    GpuOffer,
    HostOffer,
    ImageNeeds,
)
from stackbuild.compat.wheels import judge_base_and_wheel, judge_cuda_majors, judge_tags, judge_variant
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict, is_complete

# A PASS beside a SKIP is a PASS (the report says that it is not complete).
_GRAVITY = {Verdict.FAIL: 0, Verdict.ERROR: 1, Verdict.WARN: 2, Verdict.PASS: 3, Verdict.SKIP: 4}


def judge_image(
    contents: Contents,
    facts: Facts,
    today: date,
    *,
    digest: str | None = None,
    label: str = "",
    eol_tolerance_days: int = 0,
) -> tuple[Finding, ...]:
    """All gates about the image alone.

    Args:
        contents: What the stack holds.
        facts: The fact tables.
        today: For ends of life.
        digest: The digest that the spec gives for its base.
        label: A CUDA release that the image's name or labels promise.
        eol_tolerance_days: Days past an end of life before it is reported.
    """
    return (
        *judge_tag(contents),
        *judge_digest(contents, digest, facts),
        *judge_ages(contents, facts, today, eol_tolerance_days),
        *judge_variant(contents, facts),
        *judge_cuda_majors(contents, facts),
        *judge_base_and_wheel(contents, facts, label),
        *judge_tags(contents, facts),
        *judge_onnxruntime(contents, facts),
        *judge_cudnn_users(contents, facts),
        *judge_libraries(contents, facts),
        *judge_environment(contents),
    )


class Answer(NamedTuple):
    """Findings, the verdict that stands for them, and whether every gate that applies was judged."""

    findings: tuple[Finding, ...]
    verdict: Verdict
    complete: bool = True


_NOTHING = Answer((), Verdict.SKIP)


def answer_of(findings: Iterable[Finding]) -> Answer:
    """The findings with the gravest of their verdicts; SKIP only when nothing else is there."""
    listed = tuple(findings)
    gravest = min((finding.verdict for finding in listed), key=_GRAVITY.__getitem__, default=Verdict.SKIP)
    return Answer(listed, gravest, is_complete(listed))


@dataclass(frozen=True, slots=True, eq=False)
class _Image:
    """An image whose parts have numbers, so that looking an answer up costs next to nothing."""

    needs: ImageNeeds
    numbered: tuple[tuple[CudaComponent, int], ...]
    demands: int
    driver_terms: int  # compat library and accepted compatibility
    posture: int


@dataclass(frozen=True, slots=True, eq=False)
class _Host:
    """A host reduced to what each gate sees, each view with its number."""

    offer: HostOffer
    cuda: bool
    driver_view: HostOffer
    driver: int
    gpus: tuple[tuple[GpuOffer, int], ...]
    max_cuda: int
    demand: int
    posture: int
    own: Answer


class HostJudge:
    """Judges images on hosts and answers each distinct question once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._numbers: dict[object, int] = {}
        self._answers: dict[tuple[int, ...], Answer] = {}
        self._images: dict[ImageNeeds, _Image] = {}
        self._hosts: dict[HostOffer, _Host] = {}

    def judge(self, image: ImageNeeds, host: HostOffer) -> tuple[Finding, ...]:
        """All gates about this image on this host; a CPU image has few."""
        return self._ask(self._image(image), self._host(host)).findings

    def prepare(self, hosts: Sequence[HostOffer]) -> list[_Host]:
        """The hosts in the form that ``prepared_row`` takes, for asking many images about them."""
        return [self._host(host) for host in hosts]

    def prepared_row(self, image: ImageNeeds, hosts: Sequence[_Host]) -> list[Answer]:
        """One image on many prepared hosts."""
        prepared = self._image(image)
        return [self._ask(prepared, host) for host in hosts]

    def _number(self, part: object) -> int:
        return self._numbers.setdefault(part, len(self._numbers))

    def _image(self, image: ImageNeeds) -> _Image:
        known = self._images.get(image)
        if known is None:
            known = self._images[image] = _Image(
                needs=image,
                numbered=tuple((component, self._number(component)) for component in image.components),
                demands=self._number(("demands", image.requirements, image.requirements_disabled)),
                driver_terms=self._number(("terms", image.compat, image.accepts)),
                posture=self._number(("posture", image.name, image.platform, bool(image.components))),
            )
        return known

    def _host(self, host: HostOffer) -> _Host:
        known = self._hosts.get(host)
        if known is None:
            # The driver gate asks of the GPUs only whether they can do forward compatibility, the demand
            # gate only for brand and capability.
            kind = "datacenter" if forward_compatible_gpus(host) else "other"
            kinds = (GpuOffer("", None, kind),) if host.gpus else ()
            brands = tuple(dict.fromkeys((gpu.brand, gpu.kind, gpu.compute_capability) for gpu in host.gpus))
            view = replace(host, name="this host", gpus=kinds, posture="linux", platform=None, injection=None)
            known = self._hosts[host] = _Host(
                offer=host,
                cuda=host.posture in ("linux", "wsl2"),
                driver_view=view,
                driver=self._number(view),
                gpus=tuple((gpu, self._number(gpu)) for gpu in host.gpus),
                max_cuda=self._number(("max", host.max_cuda)),
                demand=self._number(("host", host.driver, host.max_cuda, host.injection, brands)),
                posture=self._number(("host-posture", host)),
                own=answer_of(
                    finding
                    for gpu in host.gpus
                    if (finding := judge_gpu_against_driver(gpu, host, self._facts)) is not None
                ),
            )
        return known

    def _ask(self, image: _Image, host: _Host) -> Answer:
        parts = [self._posture(image, host)]
        if image.numbered and host.cuda:
            parts.append(host.own)
            for component, number in image.numbered:
                parts.append(self._driver(component, number, image, host))
                for gpu, gpu_number in host.gpus:
                    parts.append(self._architecture(component, number, gpu, gpu_number, host))
            parts.append(self._demands(image, host))
            if image.needs.compat is not None and image.needs.compat.loaded_first:
                finding = judge_compat_library(image.needs.compat, host.offer)
                parts.append(answer_of(() if finding is None else (finding,)))
        # Written out: this is asked a hundred thousand times for a fleet.
        findings: tuple[Finding, ...] = ()
        verdict, gravity, complete = Verdict.SKIP, _GRAVITY[Verdict.SKIP], True
        for part in parts:
            if part.findings:
                findings += part.findings
                complete = complete and part.complete
                if _GRAVITY[part.verdict] < gravity:
                    verdict, gravity = part.verdict, _GRAVITY[part.verdict]
        return Answer(findings, verdict, complete)

    def _posture(self, image: _Image, host: _Host) -> Answer:
        offer = host.offer
        usual = offer.posture == "linux" and offer.driver_flavor is None
        if usual and offer.platform in (None, image.needs.platform):
            return _NOTHING  # no gate of posture has anything to say of it
        key = (0, image.posture, host.posture)
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = answer_of(judge_posture(image.needs, host.offer))
        return found

    def _driver(self, component: CudaComponent, number: int, image: _Image, host: _Host) -> Answer:
        maximum = host.offer.max_cuda
        native = component.cuda is not None and maximum is not None and maximum >= component.cuda
        # A driver that reports the runtime serves it, whichever of its releases it is.
        key = (4, number, host.max_cuda) if native else (1, number, image.driver_terms, host.driver)
        found = self._answers.get(key)
        if found is None:
            view = replace(host.driver_view, driver=None, driver_text="") if native else host.driver_view
            finding = judge_driver(component, view, image.needs.compat, image.needs.accepts, self._facts)
            found = self._answers[key] = answer_of((finding,))
        return found

    def _architecture(
        self, component: CudaComponent, number: int, gpu: GpuOffer, gpu_number: int, host: _Host
    ) -> Answer:
        # Only a build with PTX asks how far the driver's compiler goes.
        key = (2, number, gpu_number, host.max_cuda if component.ptx else -1)
        found = self._answers.get(key)
        if found is None:
            dropped = judge_gpu_against_toolkit(component, gpu, self._facts)
            findings = [dropped] if dropped is not None else []
            if component.name != "base image":
                findings.insert(0, judge_architecture(component, gpu, host.offer.max_cuda, self._facts))
            found = self._answers[key] = answer_of(findings)
        return found

    def _demands(self, image: _Image, host: _Host) -> Answer:
        key = (3, image.demands, host.demand)
        found = self._answers.get(key)
        if found is None:
            asked = () if image.needs.requirements_disabled else image.needs.requirements
            found = self._answers[key] = answer_of(
                judge_requirement(name, value, host.offer) for name, value in asked
            )
        return found


def worst(findings: Sequence[Finding]) -> Finding | None:
    """The finding that decides: the first of the gravest verdict; None when there is none."""
    return min(findings, key=lambda finding: _GRAVITY[finding.verdict], default=None)
