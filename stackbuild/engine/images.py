"""What is asked of the engine about images."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import docker
import docker.errors

from stackbuild.engine.build_stream import BuildStream
from stackbuild.engine.models import ImageInfo
from stackbuild.engine.pull_stream import PullStream
from stackbuild.engine.translate import from_api_message, translated
from stackbuild.engine.uninterrupted import uninterrupted
from stackbuild.errors import BuildError, InterruptedRunError, NotJudgedError, StackbuildError
from stackbuild.progress import Observer

_CHUNK = 1 << 20


class ImageRequests:
    """The engine's images; part of :class:`Engine`."""

    _api: docker.APIClient

    def image(self, ref: str) -> ImageInfo | None:
        """The image of that name or id; None when the engine has none."""
        with translated(f"look at image {ref}"):
            try:
                raw = self._api.inspect_image(ref)  # type: ignore[no-untyped-call]
                history = self._api.history(ref)  # type: ignore[no-untyped-call]
            except docker.errors.NotFound:
                return None
        return ImageInfo(
            id=raw["Id"],
            config=raw.get("Config") or {},
            diff_ids=tuple((raw.get("RootFS") or {}).get("Layers") or ()),
            repo_tags=tuple(raw.get("RepoTags") or ()),
            repo_digests=tuple(raw.get("RepoDigests") or ()),
            created=raw.get("Created") or "",
            size=int(raw.get("Size") or 0),
            architecture=raw.get("Architecture") or "",
            os=raw.get("Os") or "",
            history=tuple(history),
            layer_folders=_layer_folders(raw),
        )

    def pull(self, ref: str, *, platform: str, observer: Observer) -> ImageInfo:
        """Pull an image.

        Args:
            ref: A name with a tag or digest. For one platform of an index name the platform's own digest:
                a pull of the index digest gives whichever platform came first (docker-notes, "Base image").
            platform: For example linux/amd64.
            observer: Told about progress.

        Raises:
            LockError: ``no-such-image``.
            NotJudgedError: ``registry-rate-limited``, ``registry-denied``, ``registry-unreachable``.
        """
        stream = PullStream(ref, observer)
        with translated(f"pull {ref}"):
            try:
                for chunk in self._api.pull(ref, platform=platform, stream=True, decode=True):
                    stream.feed(chunk)
            except docker.errors.APIError as error:
                raise stream.failure(str(error.explanation or error)) from error
        image = self.image(ref)
        if image is None:
            raise NotJudgedError(f"The engine pulled {ref} and does not have it.", code="engine-refused")
        return image

    def tag(self, image: str, ref: str) -> None:
        """Name an image ``ref`` (with its tag)."""
        repository, tag = _split_tag(ref)
        with translated(f"tag {ref}"):
            self._api.tag(image, repository, tag)

    def remove_image(self, ref: str) -> None:
        """Remove a name or an image; no error when it is absent or still used by another image."""
        with translated(f"remove image {ref}"):
            try:
                self._api.remove_image(ref)
            except docker.errors.APIError as error:
                # 404: absent; 409: a container or child image needs it, so it is not ours to remove
                if error.status_code not in (404, 409):
                    raise

    def tags_of(self, repository: str) -> tuple[str, ...]:
        """The engine's images of a repository, as ``REPOSITORY:TAG`` in name order; none where it has none."""
        with translated(f"list images {repository}"):
            found = self._api.images(name=repository)
        tags = {tag for image in found for tag in image.get("RepoTags") or ()}
        return tuple(sorted(tag for tag in tags if _split_tag(tag)[0] == repository))

    def layer_chains(self) -> tuple[tuple[str, ...], ...]:
        """The diff IDs of each image the engine has, without the classic builder's intermediate images."""
        return tuple(chain for _, chain in self._chains())

    def image_of_layers(self, diff_ids: tuple[str, ...]) -> ImageInfo | None:
        """An image of exactly these layers, whatever it is called; None when the engine has none.

        Args:
            diff_ids: All layers, the base's first.
        """
        for image_id, chain in self._chains():
            if chain == diff_ids:
                return self.image(image_id)
        return None

    def _chains(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        with translated("list images"):
            for image in self._api.images():
                try:
                    raw = self._api.inspect_image(image["Id"])  # type: ignore[no-untyped-call]
                except docker.errors.NotFound:
                    continue  # removed meanwhile
                yield image["Id"], tuple((raw.get("RootFS") or {}).get("Layers") or ())

    def load(self, archive: Iterable[bytes]) -> None:
        """Load a docker-archive (config, layers, manifest.json) from a stream.

        Raises:
            BuildError: ``disk-full``.
            NotJudgedError: ``engine-died``, ``image-load-failed``.
        """
        stop = threading.Event()

        def chunks() -> Iterator[bytes]:
            for chunk in archive:
                if stop.is_set():
                    raise InterruptedRunError("The load was stopped.", code="interrupted")
                yield chunk

        # Once the engine has all of it, it finishes the image even for a client that has gone.
        uninterrupted(lambda: self._load(chunks()), on_interrupt=stop.set)

    def _load(self, archive: Iterator[bytes]) -> None:
        loaded = False
        with translated("load an image"):
            try:
                for chunk in self._api.load_image(archive):  # type: ignore[no-untyped-call]
                    if "error" in chunk or "errorDetail" in chunk:
                        detail = chunk.get("errorDetail") or {}
                        raise _load_failure(str(detail.get("message") or chunk.get("error")))
                    loaded = loaded or "Loaded image" in str(chunk.get("stream") or "")
            except docker.errors.APIError as error:
                raise _load_failure(str(error.explanation or error)) from error
        if not loaded:
            raise NotJudgedError(
                "The engine took the image archive and did not say that it loaded it.",
                code="image-load-failed",
                do="See the engine's log; then run the same command again.",
            )

    def save(self, image: str) -> Iterator[bytes]:
        """The image as a docker-archive stream."""
        with translated(f"save {image}"):
            yield from self._api.get_image(image, chunk_size=_CHUNK)

    def build(
        self,
        context: BinaryIO,
        *,
        tag: str,
        nocache: bool = False,
        network: str | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> str:
        """Build the Dockerfile of a context with the classic builder.

        Images that a failed or interrupted build has made on its way are removed; those of a build that
        succeeded stay, as they are the builder's cache.

        Args:
            context: A tar stream with the Dockerfile at its top.
            tag: The built image's name.
            nocache: Run each step anew.
            network: The network of RUN steps.
            on_line: Called with each line of output.

        Returns:
            The image's id.

        Raises:
            BuildError, LockError, NotJudgedError: with the failing step and its own last lines; the code
                says why where that is known (``wheel-not-found``, …), else ``build-step-failed``.
            NotJudgedError: ``build-stream-truncated``, ``engine-died``.
        """
        stream = BuildStream(on_line)
        done = False
        try:
            with translated("build the image"):
                for chunk in self._api.build(
                    fileobj=context,
                    custom_context=True,
                    tag=tag,
                    nocache=nocache,
                    rm=True,
                    forcerm=True,
                    network_mode=network,
                    decode=True,
                ):
                    stream.feed(chunk)
            built = self.image(stream.finish())
            if built is None:
                raise NotJudgedError(
                    "The engine says it built the image and does not have it.", code="engine-refused"
                )
            done = True
            return built.id
        finally:
            if not done:
                self._discard_images(stream.made)

    def _discard_images(self, made: Sequence[str]) -> None:
        for image in reversed(made):
            try:
                self.remove_image(image)
            except NotJudgedError:
                return  # the engine is gone; the failure that led here is the one to report


def _load_failure(message: str) -> StackbuildError:
    """Engines report a failed load in the stream or as an HTTP error, whichever comes first."""
    error = from_api_message("load the image", message)
    if isinstance(error, BuildError):
        return error
    return NotJudgedError(error.what, code="image-load-failed", detail=message.strip())


def _split_tag(ref: str) -> tuple[str, str]:
    """Split ``127.0.0.1:5000/name:tag`` at the tag's colon; the tag is 'latest' when absent."""
    head, colon, tail = ref.rpartition(":")
    if colon and "/" not in tail:
        return head, tail
    return ref, "latest"


def _layer_folders(described: Mapping[str, Any]) -> tuple[str, ...]:
    """Where overlay2 keeps an image's layers; none where they are not one folder for each layer."""
    driver = described.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    if driver.get("Name") != "overlay2" or not data.get("UpperDir"):
        return ()
    folders = [data["UpperDir"], *str(data.get("LowerDir") or "").split(":")]
    lowest_first = tuple(folder for folder in reversed(folders) if folder)
    layers = (described.get("RootFS") or {}).get("Layers") or ()
    return lowest_first if len(lowest_first) == len(layers) else ()
