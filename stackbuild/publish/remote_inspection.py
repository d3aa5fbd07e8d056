"""What a registry says of an image: pin list, SBOM and verification, without a layer being fetched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from stackbuild.annotate.annotations import COMPLETE, GPUS, INPUTS, STARTED, VERDICT
from stackbuild.annotate.image_reference import split_reference
from stackbuild.annotate.inspect import Inspection, inspect_image
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.frozen_model import FrozenModel
from stackbuild.publish.attachments import SBOM_TYPE, SCAN_TYPE, VERIFICATION_TYPE
from stackbuild.publish.push import RemoteManifest
from stackbuild.publish.remote_image import read_remote
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.referrers import Referrer, attached_content, list_referrers


class SbomSummary(FrozenModel):
    """An attached SBOM."""

    digest: str = Field(description="of the attached manifest")
    format: str = Field(description="for example CycloneDX 1.6")
    components: int


class AttachedResult(FrozenModel):
    """An attached report, as its annotations sum it up."""

    kind: Literal["verification", "scan"]
    digest: str = Field(description="of the attached manifest")
    verdict: str
    complete: bool
    started: str
    gpus: tuple[str, ...] = Field(default=(), description="compute capabilities it was judged on: sm_80")


class InspectedPlatform(FrozenModel):
    """One platform of an image in a registry."""

    platform: str
    digest: str = Field(description="of the manifest")
    config_digest: str
    size: int = Field(description="bytes of its compressed layers")
    inputs: str | None = Field(default=None, description="hash of all that decided it")
    inspection: Inspection | None = Field(default=None, description="None for an image of others")
    sbom: SbomSummary | None = None
    results: tuple[AttachedResult, ...] = Field(default=(), description="attached reports, the newest first")


class RemoteInspection(FrozenModel):
    """An image in a registry."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    reference: str
    digest: str
    index: bool
    platforms: tuple[InspectedPlatform, ...]
    signed: bool = Field(description="a cosign signature lies beside it; nobody checked it here")


def inspect_remote(client: RegistryClient, reference: str) -> RemoteInspection:
    """Read an image's description from its registry.

    Args:
        client: Reads the registry, through the site's mirrors.
        reference: ``REPOSITORY[:TAG]`` or ``REPOSITORY@DIGEST``.

    Raises:
        LockError: ``no-such-tag``, ``no-such-repository``, ``digest-gone``.
        NotJudgedError: The registry cannot be used.
    """
    repository, tag, digest = split_reference(reference)
    remote = read_remote(client, repository, digest or tag)
    if remote is None:
        if not digest:
            client.resolve(repository, tag)  # says what is missing, with near tags
        raise LockError(
            "there is no image under this name",
            code="digest-gone" if digest else "no-such-tag",
            where=reference,
            do=f"List the tags: stackbuild pick {repository}.",
        )
    return RemoteInspection(
        reference=reference,
        digest=remote.digest,
        index=remote.is_index,
        platforms=tuple(_platform(client, repository, reference, child) for child in remote.children),
        signed=client.document(repository, f"{remote.digest.replace(':', '-')}.sig") is not None,
    )


def _platform(
    client: RegistryClient, repository: str, reference: str, child: RemoteManifest
) -> InspectedPlatform:
    referrers = list_referrers(client, repository, child.digest)
    layers = client.manifest(repository, child.digest).get("layers") or ()
    return InspectedPlatform(
        platform=child.platform,
        digest=child.digest,
        config_digest=child.config_digest,
        size=sum(int(layer.get("size") or 0) for layer in layers),
        inputs=child.annotations.get(INPUTS),
        inspection=_inspection(reference, child),
        sbom=_sbom(client, repository, referrers),
        results=_results(referrers),
    )


def _inspection(reference: str, child: RemoteManifest) -> Inspection | None:
    try:
        return inspect_image(reference, child.labels, child.diff_ids)
    except NotJudgedError as error:
        if error.code != "no-pin-list":
            raise
        return None


def _sbom(client: RegistryClient, repository: str, referrers: Sequence[Referrer]) -> SbomSummary | None:
    found = [referrer for referrer in referrers if referrer.artifact_type == SBOM_TYPE]
    if not found:
        return None
    document = json.loads(attached_content(client, repository, found[-1]))
    return SbomSummary(
        digest=found[-1].digest,
        format=f"{document.get('bomFormat', '?')} {document.get('specVersion', '')}".rstrip(),
        components=len(document.get("components") or ()),
    )


def _results(referrers: Sequence[Referrer]) -> tuple[AttachedResult, ...]:
    results = [
        AttachedResult(
            kind="scan" if referrer.artifact_type == SCAN_TYPE else "verification",
            digest=referrer.digest,
            verdict=referrer.annotations.get(VERDICT, "?"),
            complete=referrer.annotations.get(COMPLETE) == "true",
            started=referrer.annotations.get(STARTED, ""),
            gpus=tuple(referrer.annotations.get(GPUS, "").split()),
        )
        for referrer in referrers
        if referrer.artifact_type in (VERIFICATION_TYPE, SCAN_TYPE)
    ]
    return tuple(sorted(results, key=lambda result: result.started, reverse=True))
