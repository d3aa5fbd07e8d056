"""The judge: every static gate over one image, and over one image on one host.

Gates about the image alone are asked once; gates about an image and a host are asked once for each
distinct pair of needs and offer, which is what lets a hundred stacks meet a thousand hosts quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from stackbuild.compat.architecture import (
    judge_architecture,
    judge_gpu_against_driver,
    judge_gpu_against_toolkit,
)
from stackbuild.compat.base import judge_ages, judge_digest, judge_tag
from stackbuild.compat.contents import Contents
from stackbuild.compat.driver import judge_compat_library, judge_driver
from stackbuild.compat.environment import judge_environment
from stackbuild.compat.onnxruntime import judge_cudnn_users, judge_libraries, judge_onnxruntime
from stackbuild.compat.posture import judge_posture
from stackbuild.compat.requirements import judge_requirement
from stackbuild.compat.subject import (
    Compatibility,
    CompatLibrary,
    CudaComponent,
    GpuOffer,
    HostOffer,
    ImageNeeds,
)
from stackbuild.compat.versions import CudaVersion
from stackbuild.compat.wheels import judge_base_and_wheel, judge_cuda_majors, judge_tags, judge_variant
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict

_SEVERITY = {Verdict.FAIL: 0, Verdict.ERROR: 1, Verdict.WARN: 2, Verdict.SKIP: 3, Verdict.PASS: 4}


def judge_image(
    contents: Contents, facts: Facts, today: date, *, digest: str | None = None, label: str = ""
) -> tuple[Finding, ...]:
    """All gates about the image alone.

    Args:
        contents: What the stack holds.
        facts: The fact tables.
        today: For ends of life.
        digest: The digest that the spec gives for its base.
        label: A CUDA release that the image's name or labels promise.
    """
    return (
        *judge_tag(contents),
        *judge_digest(contents, digest, facts),
        *judge_ages(contents, facts, today),
        *judge_variant(contents, facts),
        *judge_cuda_majors(contents, facts),
        *judge_base_and_wheel(contents, facts, label),
        *judge_tags(contents, facts),
        *judge_onnxruntime(contents, facts),
        *judge_cudnn_users(contents, facts),
        *judge_libraries(contents, facts),
        *judge_environment(contents),
    )


class HostJudge:
    """Judges images on hosts and remembers each distinct answer."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._drivers: dict[tuple[object, ...], Finding] = {}
        self._architectures: dict[tuple[object, ...], tuple[Finding, ...]] = {}
        self._requirements: dict[tuple[object, ...], Finding] = {}
        self._pairs: dict[tuple[ImageNeeds, HostOffer], tuple[Finding, ...]] = {}

    def judge(self, image: ImageNeeds, host: HostOffer) -> tuple[Finding, ...]:
        """All gates about this image on this host; a CPU image has few."""
        key = (image, host)
        found = self._pairs.get(key)
        if found is None:
            found = self._pairs[key] = tuple(self._ask(image, host))
        return found

    def _ask(self, image: ImageNeeds, host: HostOffer) -> Iterable[Finding]:
        yield from judge_posture(image, host)
        if not image.components or host.posture in ("macos", "amd", "windows"):
            return
        for gpu in host.gpus:
            finding = judge_gpu_against_driver(gpu, host, self._facts)
            if finding is not None:
                yield finding
        for component in image.components:
            yield self._driver(component, host, image.compat, image.accepts)
            for gpu in host.gpus:
                yield from self._architecture(component, gpu, host.max_cuda)
        if not image.requirements_disabled:
            for name, value in image.requirements:
                yield self._requirement(name, value, host)
        if image.compat is not None:
            finding = judge_compat_library(image.compat, host)
            if finding is not None:
                yield finding

    def _driver(
        self,
        component: CudaComponent,
        host: HostOffer,
        compat: CompatLibrary | None,
        accepts: Compatibility | None,
    ) -> Finding:
        key = (component, host, compat, accepts)
        found = self._drivers.get(key)
        if found is None:
            found = self._drivers[key] = judge_driver(component, host, compat, accepts, self._facts)
        return found

    def _architecture(
        self, component: CudaComponent, gpu: GpuOffer, max_cuda: CudaVersion | None
    ) -> tuple[Finding, ...]:
        key = (component, gpu, max_cuda)
        found = self._architectures.get(key)
        if found is None:
            dropped = judge_gpu_against_toolkit(component, gpu, self._facts)
            covered = (
                ()
                if component.name == "base image"
                else (judge_architecture(component, gpu, max_cuda, self._facts),)
            )
            found = self._architectures[key] = (*covered, *((dropped,) if dropped is not None else ()))
        return found

    def _requirement(self, name: str, value: str, host: HostOffer) -> Finding:
        key = (name, value, host)
        found = self._requirements.get(key)
        if found is None:
            found = self._requirements[key] = judge_requirement(name, value, host)
        return found


def worst(findings: Sequence[Finding]) -> Finding | None:
    """The finding that decides: the first of the gravest verdict; None when there is none."""
    return min(findings, key=lambda finding: _SEVERITY[finding.verdict], default=None)
