"""Judging a published or staged image on another machine, and leaving the report beside it: ``verify --attach``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stackbuild.annotate.image_reference import split_reference
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import LockError, UsageError
from stackbuild.progress import Observer
from stackbuild.publish.attachments import attach_document, verification_attachment
from stackbuild.publish.push import RemoteManifest
from stackbuild.publish.remote_image import read_remote
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.writer import RegistryWriter
from stackbuild.site_config import SiteConfig
from stackbuild.verification.model import VerificationReport


@dataclass(frozen=True)
class RemoteSubject:
    """An image in a registry that the engine has pulled by digest.

    Attributes:
        reference: Its name in the engine: ``REPOSITORY@DIGEST``.
        repository: As it was named.
        manifest: What the registry holds.
    """

    reference: str
    repository: str
    manifest: RemoteManifest


@contextmanager
def pulled_subject(
    engine: Engine, named: str, site: SiteConfig, observer: Observer
) -> Iterator[RemoteSubject]:
    """Pull an image by the digest of its manifest for this machine; what was not there before is removed after.

    Args:
        engine: Gets it.
        named: ``REPOSITORY[:TAG]`` or ``REPOSITORY@DIGEST``; an index is followed.
        site: For its CA bundle.
        observer: Told of the pull.

    Raises:
        UsageError: ``attach-needs-registry``: the name is no image of a registry.
        LockError: ``no-such-tag``, ``digest-gone``, ``platform-not-published``.
        NotJudgedError: Registry or engine cannot be used.
    """
    repository, tag, digest = split_reference(named)
    if "/" not in repository:
        raise UsageError(
            "A report is attached to an image in a registry.",
            code="attach-needs-registry",
            where=named,
            do="Name REPOSITORY@DIGEST, as stackbuild publish --stage prints it.",
        )
    with RegistryClient(ca_bundle=site.ca_bundle) as client:
        remote = read_remote(client, repository, digest or tag)
        if remote is None:
            raise LockError(
                "there is no image under this name",
                code="digest-gone" if digest else "no-such-tag",
                where=named,
                do="Stage it again: stackbuild publish IMAGE REPOSITORY --stage.",
            )
        platform = engine.platform()
        child = remote.child(platform)
        if child is None:
            raise LockError(
                f"it is for {', '.join(entry.platform for entry in remote.children)}, and this engine runs {platform}",
                code="platform-not-published",
                where=named,
                do="Judge it on a machine of its platform.",
            )
        reference = f"{client.endpoint(repository).reference}@{child.digest}"
    observer.stage("pull", reference)
    there = engine.image(reference) is not None
    try:
        engine.pull(reference, platform=platform, observer=observer)
        yield RemoteSubject(reference, repository, child)
    finally:
        if not there:
            engine.remove_image(reference)


def attach_report(
    subject: RemoteSubject, report: VerificationReport, site: SiteConfig, observer: Observer
) -> str:
    """Attach a report to the image it judged; returns the digest of what was attached.

    Raises:
        NotJudgedError: The registry cannot be used.
    """
    observer.stage("attach", subject.reference)
    with RegistryClient(ca_bundle=site.ca_bundle) as client:
        return attach_document(
            RegistryWriter(client, observer),
            subject.repository,
            subject.manifest.descriptor,
            verification_attachment(report, subject.manifest.config_digest),
        )
