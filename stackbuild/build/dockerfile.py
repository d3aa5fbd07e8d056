"""The other builder: the rendered Dockerfile, built by the engine through docker-py."""

from __future__ import annotations

import io
import time

from stackbuild.build.interface import BuildRequest, BuiltImage
from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import BuildError, NotJudgedError
from stackbuild.progress import Observer
from stackbuild.render.context import context_tar
from stackbuild.render.lint import lint_for_classic_builder
from stackbuild.render.stack import RenderOptions, stack_context
from stackbuild.resolution.bases.base import ensure_base
from stackbuild.site_config import SiteConfig
from stackbuild.store.store import Store


class DockerfileBuilder:
    """Builds the rendered Dockerfile with the engine's classic builder, the only one docker-py reaches.

    The wheels go along in the context, so only apt needs the network; the base is brought to the engine
    beforehand, from wherever the site has it.

    Args:
        engine: Builds.
        store: Keeps the inputs.
        site: Mirrors.
        observer: Told of each step.
    """

    name = "dockerfile"

    def __init__(self, engine: Engine, store: Store, site: SiteConfig, observer: Observer) -> None:
        self._engine = engine
        self._store = store
        self._site = site
        self._observer = observer

    def build(self, request: BuildRequest) -> BuiltImage:
        """Build and tag the image.

        Raises:
            BuildError: ``needs-buildkit``, or a step failed: with the step and its own last lines.
            LockError: An input is gone or is not what the lock says.
            NotJudgedError: The engine, an index or a registry cannot be used.
        """
        began = time.monotonic()
        base = ensure_base(
            request.platform_lock.base,
            request.platform,
            engine=self._engine,
            store=self._store,
            site=self._site,
            observer=self._observer,
        )
        entries = stack_context(
            request.spec,
            request.folder,
            request.lock,
            request.platform,
            RenderOptions(request.created, base.id, with_wheels=True),
            store=self._store,
            site=self._site,
            observer=self._observer,
        )
        dockerfile = next(entry.content for entry in entries if entry.path == "Dockerfile")
        require_classic(dockerfile.decode() if isinstance(dockerfile, bytes) else "")
        tags = request.tags
        prepared = time.monotonic()
        with io.BufferedReader(ChunkReader(context_tar(entries))) as context:
            image_id = self._engine.build(context, tag=tags[0], nocache=request.fresh, on_line=self._tell)
        for tag in tags[1:]:
            self._engine.tag(image_id, tag)
        image = self._engine.image(image_id)
        if image is None:
            raise NotJudgedError("The image was removed meanwhile.", code="image-missing", where=tags[0])
        return BuiltImage(
            stack=request.spec.name,
            builder=self.name,
            config_digest=image.id,
            image_id=image.id,
            diff_ids=image.diff_ids,
            tags=tags,
            made=("Dockerfile",),
            seconds={
                "prepare": round(prepared - began, 3),
                "build": round(time.monotonic() - prepared, 3),
            },
        )

    def _tell(self, line: str) -> None:
        if line.startswith("Step "):
            self._observer.stage("build", line)


def require_classic(dockerfile: str) -> None:
    """Refuse a Dockerfile that the classic builder cannot build, before its context is sent.

    Raises:
        BuildError: ``needs-buildkit``, naming every line.
    """
    findings = lint_for_classic_builder(dockerfile)
    if findings:
        raise BuildError(
            "The Dockerfile uses syntax that only BuildKit knows; the Docker SDK talks to the classic builder.",
            code="needs-buildkit",
            detail="\n".join(finding.summary for finding in findings),
            do=findings[0].next_step,
        )
