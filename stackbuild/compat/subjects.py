"""What ``check`` was pointed at: specs with their locks, and images by their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from stackbuild.compat.check import Subject
from stackbuild.compat.contents import (
    Contents,
    contents_of_cuda_tag,
    contents_of_image,
    contents_of_lock,
    contents_of_spec,
)
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.spec.model import ImageBaseSpec, StackSpec

if TYPE_CHECKING:
    from stackbuild.annotate.pin_list import PinList
    from stackbuild.lock.model import Lock


def subject_of_stack(
    spec: StackSpec, path: str, lock: Lock | None, stale: str, facts: Facts
) -> tuple[Subject, ...]:
    """One subject for each platform of a stack.

    Args:
        spec: The spec.
        path: Its file.
        lock: Its lock; None when there is none.
        stale: Why the lock does not belong to the spec any more; empty when it does. A stale lock is not judged.
        facts: The fact tables.
    """
    noted: tuple[Finding, ...] = ()
    if stale:
        noted = (
            Finding(
                code="lock-stale",
                verdict=Verdict.WARN,
                subject=spec.name,
                measured=stale,
                summary=f"The lock does not belong to this spec any more ({stale}), so the spec alone was judged.",
                next_step=f"stackbuild lock {spec.name}",
            ),
        )
    digest = spec.base.digest if isinstance(spec.base, ImageBaseSpec) else None
    subjects = []
    for platform in spec.platforms:
        locked = lock.platforms.get(platform) if lock is not None and not stale else None
        contents = (
            contents_of_lock(spec, locked, facts, platform)
            if locked
            else contents_of_spec(spec, facts, platform)
        )
        subjects.append(
            Subject(
                contents=contents,
                judged_from="lock" if locked else "spec",
                path=path,
                accepts=spec.target.compatibility,
                digest=digest,
                waivers=spec.waivers,
                noted=(*noted, *(locked.findings if locked else ())),
            )
        )
    return tuple(subjects)


def subject_of_image(
    name: str,
    config: Mapping[str, object],
    platform: str,
    pins: PinList | None,
    spec: StackSpec | None = None,
) -> Subject:
    """An image by its configuration, and by its pin list where it is one of ours.

    Args:
        name: The reference, or the external stack's name.
        config: The image's OCI configuration.
        platform: For example ``linux/amd64``.
        pins: The pin list of its label; None for an image that others built.
        spec: The external stack's spec; None for a plain reference.
    """
    distributions = []
    if pins is not None:
        if pins.torch is not None:
            distributions.append(
                ("torch", f"{pins.torch}+{pins.torch_variant}" if pins.torch_variant else pins.torch)
            )
        if pins.onnxruntime is not None:
            distributions.append((pins.onnxruntime_package or "onnxruntime", pins.onnxruntime))
    contents = contents_of_image(name, config, distributions, platform=platform)
    if pins is not None:
        # The pin list names what matters, not every distribution: libraries cannot be judged from it.
        contents = _unlocked(contents)
    return Subject(
        contents=contents,
        judged_from="image",
        accepts=spec.target.compatibility if spec else None,
        waivers=spec.waivers if spec else (),
    )


def subject_of_cuda_tag(
    reference: str, image: str, tag: str, why: str, facts: Facts, spec: StackSpec | None = None
) -> Subject:
    """An nvidia/cuda image that neither engine nor registry could be asked for, by its tag and the facts.

    Args:
        reference: The reference.
        image: Repository.
        tag: Tag.
        why: Why it could not be read.
        facts: The fact tables.
        spec: The external stack's spec; None for a plain reference.
    """
    noted = Finding(
        code="judged-from-tag",
        verdict=Verdict.WARN,
        subject=reference,
        measured="its tag",
        required="its configuration",
        summary=f"{reference} could not be read ({why.rstrip('.')}), so it was judged from its tag and the facts.",
        next_step=f"docker pull {reference} and check again, to judge what the image really says.",
    )
    contents = contents_of_cuda_tag(spec.name if spec else reference, image, tag, facts)
    return Subject(
        contents,
        "image",
        accepts=spec.target.compatibility if spec else None,
        waivers=spec.waivers if spec else (),
        noted=(noted,),
    )


def _unlocked(contents: Contents) -> Contents:
    return replace(contents, locked=False)
