"""Publishes an image: push to a staging tag, judge, attach, then move the real tags to that digest.

Each step can be done twice, so a run that was cut off is finished by the next one; until the step ``tag`` no tag that
anyone uses has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from stackbuild.annotate.annotations import CONFIG, INPUTS, pins_that_hold
from stackbuild.annotate.tags import image_version
from stackbuild.digests import digest_of, short_digest
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import ExitCode, LockError, NotJudgedError, UsageError
from stackbuild.findings import Finding, Verdict, exit_code_of, is_complete
from stackbuild.progress import Observer
from stackbuild.publish.attachments import (
    SBOM_TYPE,
    Attachment,
    attach_document,
    attached_reports,
    sbom_attachment,
)
from stackbuild.publish.judging import CPU, Judge, Judged, judge_completeness, required_reports
from stackbuild.publish.layer_cache import LayerCache
from stackbuild.publish.model import AttachedDocument, PublishedPlatform, PublishReport
from stackbuild.publish.publish_findings import (
    index_finding,
    moved_finding,
    published_finding,
    pushed_finding,
    sbom_finding,
    tags_finding,
)
from stackbuild.publish.push import RemoteManifest, push_image
from stackbuild.publish.remote_image import index_of, read_remote
from stackbuild.publish.request import PublishRequest, Source
from stackbuild.publish.sign import require_cosign, sign
from stackbuild.publish.staging import StagingTags, inputs_tag, staged_tag
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_INDEX
from stackbuild.registry.referrers import list_referrers
from stackbuild.registry.writer import RegistryWriter
from stackbuild.store.store import Store


@dataclass
class Publisher:
    """Publishes to one registry.

    Attributes:
        engine: Has the images, and pulls them back.
        store: Has layers, and remembers results.
        writer: Writes the registry itself, not a mirror of it.
        sources: Reads other registries, through the site's mirrors.
        judges: What judges an image that was pulled back, given its name in the engine.
        observer: Told of each step by its name.
        layer_cache: Gets the layers that were made here, for other machines; None without one.
    """

    engine: Engine
    store: Store
    writer: RegistryWriter
    sources: RegistryClient
    judges: Callable[[str], Sequence[Judge]]
    observer: Observer
    layer_cache: LayerCache | None = None
    _attached: dict[str, list[AttachedDocument]] = field(default_factory=dict)

    def publish(self, request: PublishRequest) -> PublishReport:
        """Publish.

        Returns:
            The report; when it says ``refused``, no tag was moved and its findings say why.

        Raises:
            NotJudgedError: A registry, the engine or cosign cannot be used.
            LockError: ``registry-failed``, ``digest-gone``.
            UsageError: ``cosign-missing``.
        """
        if request.sign_key:
            require_cosign()
        self._attached.clear()
        with StagingTags(self.writer, request.repository, self.observer) as staging:
            return self._publish(request, staging)

    def _publish(self, request: PublishRequest, staging: StagingTags) -> PublishReport:
        staging.collect()
        children = [self._push(source, request.repository, staging) for source in request.sources]
        self._share_layers(children, request.repository)
        if request.stage_only:
            return self._staged(children, request)
        tags = request.tags or _tags_of(children[0])
        index = index_finding(
            children, request.platforms or self._platforms_now(request.repository, tags[-1])
        )
        before = self._digests_of(request.repository, tags)
        findings: list[Finding] = [] if index is None else [index]
        for child, source in zip(children, request.sources, strict=True):
            if index is None or index.verdict is Verdict.PASS:
                findings += self._judge(child, source, request)
        if exit_code_of(findings, strict=request.strict) is not ExitCode.OK or not is_complete(findings):
            return self._report(children, request, findings, "refused", children[0].digest)
        digest, content, media_type = self._final(children, request.repository, staging)
        reference = f"{self.writer.client.endpoint(request.repository).reference}@{digest}"
        if request.sign_key:
            self.observer.stage("sign", reference)
            sign(reference, request.sign_key)
        self._tag_inputs(children, request.repository)
        self.observer.stage("compare-tags", request.repository)
        moved = moved_finding(before, self._digests_of(request.repository, tags), children, digest)
        if moved is not None:
            return self._report(children, request, [*findings, moved], "refused", digest)
        for tag in tags:
            self.observer.stage("tag", f"{request.repository}:{tag}")
            self.writer.put_manifest(request.repository, tag, content, media_type)
        self.observer.stage("read-back", reference)
        read = [(tag, read_remote(self.writer.client, request.repository, tag)) for tag in tags]
        findings.append(tags_finding(read, children, digest))
        return self._report(
            children, request, findings, "published", digest, tags=tags, signed=bool(request.sign_key)
        )

    # steps ----------------------------------------------------------------------

    def _push(self, source: Source, repository: str, staging: StagingTags) -> RemoteManifest:
        if source.digest:
            there = read_remote(self.writer.client, repository, source.digest)
            if there is None or there.is_index or not there.children:
                raise LockError(
                    "the repository has no image manifest of that digest",
                    code="digest-gone",
                    where=f"{repository}@{source.digest}",
                    do="Stage it again: stackbuild publish IMAGE REF --stage.",
                )
            return there.children[0]
        image = self.engine.image(source.image)
        if image is None:
            raise NotJudgedError(
                "The engine does not have this image.",
                code="image-missing",
                where=source.image,
                do="Build it, or pull it first.",
            )
        tag = staging.new()
        self.observer.stage("push", f"{source.image} to {repository}:{tag}")
        return push_image(
            self.engine,
            image,
            repository,
            tag,
            writer=self.writer,
            sources=self.sources,
            store=self.store,
            inputs=source.inputs,
            observer=self.observer,
        )

    def _share_layers(self, children: Sequence[RemoteManifest], repository: str) -> None:
        """Give the layers of this store to the cache, for machines whose store is empty."""
        if self.layer_cache is None:
            return
        self.observer.stage("share-layers", self.layer_cache.repository)
        diff_ids = [diff_id for child in children for diff_id in child.diff_ids]
        self.layer_cache.share(diff_ids, self.store, beside=repository)

    def _judge(self, child: RemoteManifest, source: Source, request: PublishRequest) -> list[Finding]:
        """Findings of all judges; what they wrote is attached, whatever the verdict."""
        if source.published:
            return [published_finding(child)]
        if request.require or child.platform != self.engine.platform():
            attached = attached_reports(self.writer.client, request.repository, child.digest)
            needed = request.require or (CPU,)
            self.observer.stage("judge", f"attached reports of {child.platform}")
            findings = list(
                required_reports(
                    child,
                    attached,
                    needed,
                    now=datetime.now(UTC),
                    max_age=request.max_age,
                    strict=request.strict,
                    repository=request.repository,
                )
            )
        else:
            pulled, judged = self._judge_here(child, request)
            findings = [pulled]
            if judged:
                findings += [finding for answer in judged for finding in answer.report.findings]
                findings.append(judge_completeness(judged))
            for answer in judged:
                self._attach(request.repository, child, answer.attachment)
        findings.append(self._sbom(request.repository, child, source))
        return findings

    def _judge_here(self, child: RemoteManifest, request: PublishRequest) -> tuple[Finding, list[Judged]]:
        reference = f"{self.writer.client.endpoint(request.repository).reference}@{child.digest}"
        self.observer.stage("pull", reference)
        before = self.engine.image(reference)
        image = self.engine.pull(reference, platform=child.platform, observer=self.observer)
        pulled = pushed_finding(child, image.diff_ids)
        judged: list[Judged] = []
        try:
            for judge in self.judges(reference) if pulled.verdict is Verdict.PASS else ():
                self.observer.stage("judge", f"{judge.name} {child.platform}")
                judged.append(judge.judge(child, reference, self.observer))
        finally:
            if before is None:
                self.engine.remove_image(reference)
        return pulled, judged

    def _sbom(self, repository: str, child: RemoteManifest, source: Source) -> Finding:
        """The SBOM's finding: attached now, or there already."""
        if source.sbom is not None:
            self._attach(
                repository, child, sbom_attachment(source.sbom(child.config_digest), child.config_digest)
            )
        there = any(
            referrer.artifact_type == SBOM_TYPE
            and referrer.annotations.get(CONFIG, child.config_digest) == child.config_digest
            for referrer in list_referrers(self.writer.client, repository, child.digest)
        )
        return sbom_finding(child, there=there)

    def _attach(self, repository: str, child: RemoteManifest, document: Attachment) -> None:
        self.observer.stage("attach", f"{document.type} to {short_digest(child.digest)}")
        digest = attach_document(self.writer, repository, child.descriptor, document)
        self._attached.setdefault(child.digest, []).append(
            AttachedDocument(type=document.type, digest=digest)
        )

    def _final(
        self, children: Sequence[RemoteManifest], repository: str, staging: StagingTags
    ) -> tuple[str, bytes, str]:
        """What the tags will name: the one manifest, or an index."""
        if len(children) > 1:
            content = index_of(tuple(children))
            self.observer.stage("index", repository)
            digest, _ = self.writer.put_manifest(repository, staging.new(), content, OCI_INDEX)
            return digest, content, OCI_INDEX
        child = children[0]
        found = self.writer.client.document(repository, child.digest)
        if found is None:
            raise LockError("the pushed manifest is gone", code="digest-gone", where=repository)
        return child.digest, found[0], child.media_type

    def _tag_inputs(self, children: Sequence[RemoteManifest], repository: str) -> None:
        """Let the next build of the same inputs find each platform's image."""
        for child in children:
            inputs = child.annotations.get(INPUTS)
            found = self.writer.client.document(repository, child.digest) if inputs else None
            if inputs and found is not None:
                self.observer.stage("tag-inputs", inputs)
                self.writer.put_manifest(repository, inputs_tag(inputs), found[0], child.media_type)

    # ----------------------------------------------------------------------------

    def _staged(self, children: Sequence[RemoteManifest], request: PublishRequest) -> PublishReport:
        findings = []
        tag = ""
        for child, source in zip(children, request.sources, strict=True):
            findings.append(self._sbom(request.repository, child, source))
            found = self.writer.client.document(request.repository, child.digest)
            if found is not None:
                tag = staged_tag(time.time(), child.digest)
                self.writer.put_manifest(request.repository, tag, found[0], child.media_type)
        return self._report(children, request, findings, "staged", children[0].digest, staged=tag)

    def _report(
        self,
        children: Sequence[RemoteManifest],
        request: PublishRequest,
        findings: Sequence[Finding],
        outcome: str,
        digest: str,
        *,
        tags: Sequence[str] = (),
        staged: str = "",
        signed: bool = False,
    ) -> PublishReport:
        platforms = tuple(
            PublishedPlatform(
                platform=child.platform,
                digest=child.digest,
                config_digest=child.config_digest,
                attached=tuple(self._attached.get(child.digest, ())),
            )
            for child in children
        )
        return PublishReport.model_validate(
            {
                "repository": request.repository,
                "digest": digest,
                "platforms": platforms,
                "outcome": outcome,
                "tags": tuple(tags),
                "staged": staged,
                "signed": signed,
                "findings": tuple(findings),
                "complete": is_complete(findings),
            }
        )

    def _digests_of(self, repository: str, tags: Sequence[str]) -> dict[str, str]:
        """What each tag names now, without those that are not there."""
        documents = {tag: self.writer.client.document(repository, tag) for tag in tags}
        return {tag: digest_of(found[0]) for tag, found in documents.items() if found is not None}

    def _platforms_now(self, repository: str, tag: str) -> tuple[str, ...]:
        """The platforms of the index that a tag names now; none of them may get lost unsaid."""
        there = read_remote(self.writer.client, repository, tag)
        return tuple(child.platform for child in there.children) if there and there.is_index else ()


def _tags_of(child: RemoteManifest) -> tuple[str, ...]:
    """The tags that come from what is in the image."""
    pins = pins_that_hold(child.labels, child.diff_ids)
    if pins is None:
        raise UsageError(
            "An image without a pin list that holds for its layers has no version of its own.",
            code="tag-needed",
            do="Name the tag: REPOSITORY:TAG.",
        )
    return (image_version(pins), "latest")
