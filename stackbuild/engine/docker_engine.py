"""The Docker Engine as a context manager, over docker-py."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, Self

import docker
import docker.errors
import docker.types
import requests.exceptions
from docker.utils import kwargs_from_env

from stackbuild.engine import ownership
from stackbuild.engine.build_stream import BuildStream
from stackbuild.engine.container import Container
from stackbuild.engine.models import DeviceRequest, EngineInfo, ImageInfo, Mount
from stackbuild.engine.pull_stream import PullStream
from stackbuild.engine.translate import from_api_message, translated
from stackbuild.engine.uninterrupted import uninterrupted
from stackbuild.errors import BuildError, InterruptedRunError, NotJudgedError, StackbuildError
from stackbuild.progress import Observer

# A load or a commit of several gigabytes answers only when it is done.
_TIMEOUT = 3600
_CHUNK = 1 << 20


def _unreachable(error: Exception) -> NotJudgedError:
    message = str(error)
    if "Permission denied" in message:
        do = "This user may not use the engine: join the group 'docker', or use sudo."
    else:
        do = "Start Docker, or point DOCKER_HOST at an engine; docker info must work."
    return NotJudgedError("No Docker engine answers.", code="engine-unreachable", detail=message, do=do)


class Engine:
    """A Docker Engine. Use it as a context manager."""

    def __init__(self, api: docker.APIClient) -> None:
        self._api = api

    @classmethod
    def connect(cls, base_url: str | None = None) -> Self:
        """Connect as DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH say, or to the default socket.

        Args:
            base_url: An engine's address to use instead, for example unix:///run/other.sock.

        Raises:
            NotJudgedError: ``engine-unreachable``.
        """
        try:
            address = {"base_url": base_url} if base_url else kwargs_from_env()
            return cls(docker.APIClient(**address, timeout=_TIMEOUT))
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            raise _unreachable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    def info(self) -> EngineInfo:
        """What the engine says of itself."""
        with translated("describe itself"):
            info, version = self._api.info(), self._api.version()
        status = {str(key): str(value) for key, value in info.get("DriverStatus") or []}
        return EngineInfo(
            server_version=version["Version"],
            api_version=version["ApiVersion"],
            storage_driver=info["Driver"],
            containerd_store="containerd.snapshotter" in status.get("driver-type", ""),
            cdi=bool(info.get("CDISpecDirs")),
            runtimes=tuple(sorted(info.get("Runtimes") or {})),
            architecture=info["Architecture"],
            engine_id=info.get("ID", ""),
            cgroup_version=info.get("CgroupVersion", "1"),
            root_directory=info.get("DockerRootDir", ""),
            cgroup_driver=info.get("CgroupDriver", ""),
            security=tuple(sorted(_security_name(option) for option in info.get("SecurityOptions") or [])),
        )

    def platform(self) -> str:
        """What it runs without emulation, for example linux/amd64."""
        with translated("describe itself"):
            version = self._api.version()
        return f"{version['Os']}/{version['Arch']}"

    # Images

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

    def layer_chains(self) -> tuple[tuple[str, ...], ...]:
        """The diff IDs of each image the engine has, without the classic builder's intermediate images."""
        chains = []
        with translated("list images"):
            for image in self._api.images():
                try:
                    raw = self._api.inspect_image(image["Id"])  # type: ignore[no-untyped-call]
                except docker.errors.NotFound:
                    continue  # removed meanwhile
                chains.append(tuple((raw.get("RootFS") or {}).get("Layers") or ()))
        return tuple(chains)

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

    def export(self, image: str) -> Iterator[bytes]:
        """The image's file system as one tar stream, read from a container that never starts."""
        with self.container(image, ["/"]) as container, translated(f"export {image}"):
            yield from self._api.export(container.id, chunk_size=_CHUNK)

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

    # Containers and volumes

    @contextmanager
    def container(
        self,
        image: str,
        command: Sequence[str],
        *,
        network: str = "none",
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
        entrypoint: Sequence[str] | None = (),
        mounts: Sequence[Mount] = (),
        shm_size: str | int | None = None,
        read_only: bool = False,
        tmpfs: Mapping[str, str] | None = None,
        device_requests: Sequence[DeviceRequest] = (),
        ulimits: Mapping[str, int] | None = None,
        workdir: str | None = None,
        runtime: str | None = None,
    ) -> Iterator[Container]:
        """Create a container, not started; it is always removed.

        Args:
            image: The image's name or id.
            command: Arguments after the entrypoint.
            network: "none" unless told otherwise.
            environment: Added to the image's.
            user: A name or uid; None for the image's.
            entrypoint: () overrides the image's with nothing; None keeps the image's.
            mounts: Volumes and folders.
            shm_size: Size of /dev/shm, bytes or for example "1g".
            read_only: Read-only root file system.
            tmpfs: Path → mount options.
            device_requests: GPUs.
            ulimits: Name → limit, soft and hard.
            workdir: The image's when None.
            runtime: An OCI runtime the engine knows.

        Raises:
            NotJudgedError: ``engine-refused``, ``engine-died``.
        """
        name = f"stackbuild-{uuid.uuid4().hex[:12]}"
        try:
            with translated("create a container"):
                host = self._api.create_host_config(
                    network_mode=network,
                    mounts=[
                        docker.types.Mount(
                            mount.target, mount.source, type=mount.kind, read_only=mount.read_only
                        )
                        for mount in mounts
                    ],
                    shm_size=shm_size,
                    read_only=read_only,
                    tmpfs=dict(tmpfs) if tmpfs else None,
                    device_requests=[_device_request(request) for request in device_requests] or None,
                    ulimits=[
                        docker.types.Ulimit(name=key, soft=value, hard=value)
                        for key, value in (ulimits or {}).items()
                    ],
                    runtime=runtime,
                )
                create = partial(
                    self._api.create_container,
                    image,
                    command=list(command),
                    name=name,
                    host_config=host,
                    environment=dict(environment or {}),
                    user=user,
                    # The API reads [""] as "no entrypoint"; [] would mean the image's.
                    entrypoint=None if entrypoint is None else list(entrypoint) or [""],
                    working_dir=workdir,
                    # A health check of the image would run beside what is measured.
                    healthcheck={"test": ["NONE"]},
                    labels={ownership.LABEL: ownership.owner_label()},
                    # The user's proxy settings stay out of what runs in an image.
                    use_config_proxy=False,
                )
                made = uninterrupted(create)
            yield Container(self._api, made["Id"])
        finally:
            # By name: an interrupt may have come before its id was here.
            self._insist(lambda: self._remove_container(name))

    def _remove_container(self, name: str) -> None:
        try:
            self._api.remove_container(name, force=True, v=True)
        except docker.errors.APIError as error:
            # 404: never made; 409: its removal is under way
            if error.status_code not in (404, 409):
                raise

    @contextmanager
    def volume(self) -> Iterator[str]:
        """A fresh volume's name; the volume is always removed."""
        name = f"stackbuild-{uuid.uuid4().hex[:12]}"
        try:
            with translated("create a volume"):
                labels = {ownership.LABEL: ownership.owner_label()}
                uninterrupted(lambda: self._api.create_volume(name, labels=labels))
            yield name
        finally:
            self._insist(lambda: self._remove_volume(name))

    def _remove_volume(self, name: str) -> None:
        try:
            self._api.remove_volume(name, force=True)
        except docker.errors.APIError as error:
            if error.status_code != 404:
                raise

    def _insist(self, remove: Callable[[], None]) -> None:
        """Run a removal to its end even when an interrupt comes meanwhile."""
        with translated("remove what was made for this run"):
            try:
                remove()
            except KeyboardInterrupt:
                remove()
                raise

    def sweep(self) -> list[str]:
        """Remove containers, volumes and interim images of runs that were killed.

        Returns:
            The names of what was removed.
        """
        removed = []
        with translated("list what earlier runs left"):
            label = {"label": ownership.LABEL}
            containers = self._api.containers(all=True, filters=label)
            volumes = self._api.volumes(filters=label).get("Volumes") or []
            images = self._api.images(filters=label)
        with translated("remove what an earlier run left"):
            for container in containers:
                if _is_gone(container):
                    self._remove_container(container["Id"])
                    removed.append(
                        container["Names"][0].lstrip("/") if container["Names"] else container["Id"]
                    )
            for volume in volumes:
                if _is_gone(volume):
                    self._remove_volume(volume["Name"])
                    removed.append(volume["Name"])
            for image in images:
                if _is_gone(image):
                    for ref in image.get("RepoTags") or [image["Id"]]:
                        self.remove_image(ref)
                        removed.append(ref)
        return removed


def _load_failure(message: str) -> StackbuildError:
    """Engines report a failed load in the stream or as an HTTP error, whichever comes first."""
    error = from_api_message("load the image", message)
    if isinstance(error, BuildError):
        return error
    return NotJudgedError(error.what, code="image-load-failed", detail=message.strip())


def _is_gone(described: Mapping[str, Any]) -> bool:
    return ownership.owner_is_gone((described.get("Labels") or {}).get(ownership.LABEL, ""))


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


def _security_name(option: str) -> str:
    """``rootless`` of ``name=rootless``, ``seccomp`` of ``name=seccomp,profile=default``."""
    return option.split(",")[0].removeprefix("name=")


def _device_request(request: DeviceRequest) -> docker.types.DeviceRequest:
    return docker.types.DeviceRequest(
        driver=request.driver,
        count=request.count,
        device_ids=list(request.device_ids),
        capabilities=[list(group) for group in request.capabilities],
        options=dict(request.options),
    )


def _split_tag(ref: str) -> tuple[str, str]:
    """Split ``127.0.0.1:5000/name:tag`` at the tag's colon; the tag is 'latest' when absent."""
    head, colon, tail = ref.rpartition(":")
    if colon and "/" not in tail:
        return head, tail
    return ref, "latest"
