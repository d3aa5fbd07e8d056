"""What is asked of the engine about containers and volumes: what is made here is always removed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import docker
import docker.errors
import docker.types

from stackbuild.engine import ownership
from stackbuild.engine.container import Container
from stackbuild.engine.models import DeviceRequest, Mount
from stackbuild.engine.translate import translated
from stackbuild.engine.uninterrupted import insisted, uninterrupted
from stackbuild.errors import InterruptedRunError, StackbuildError

_REMOVAL = 10.0  # seconds that the engine may take to remove a container


class ContainerRequests:
    """The engine's containers and volumes; part of :class:`Engine`."""

    _api: docker.APIClient

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
        # By name: an interrupt may come before its id is here.
        with self._removing(lambda: self._remove_container(name)):
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

    def _remove_container(self, name: str) -> None:
        try:
            self._api.remove_container(name, force=True, v=True)
        except docker.errors.APIError as error:
            if error.status_code == 404:
                return  # never made
            if error.status_code != 409:
                raise
            self._await_removal(name)

    def _await_removal(self, name: str) -> None:
        """Wait for a removal that is under way: till its end the engine holds the container's volumes."""
        deadline = time.monotonic() + _REMOVAL
        while time.monotonic() < deadline:
            try:
                self._api.inspect_container(name)
            except docker.errors.NotFound:
                return
            time.sleep(0.05)

    @contextmanager
    def volume(self) -> Iterator[str]:
        """A fresh volume's name; the volume is always removed."""
        name = f"stackbuild-{uuid.uuid4().hex[:12]}"
        with self._removing(lambda: self._remove_volume(name)):
            with translated("create a volume"):
                labels = {ownership.LABEL: ownership.owner_label()}
                uninterrupted(lambda: self._api.create_volume(name, labels=labels))
            yield name

    def _remove_volume(self, name: str) -> None:
        try:
            self._api.remove_volume(name, force=True)
        except docker.errors.APIError as error:
            if error.status_code != 404:
                raise

    def _remove_free_volume(self, name: str) -> bool:
        """Remove a volume; False when a container has it, which another process may just be removing."""
        try:
            self._remove_volume(name)
        except docker.errors.APIError as error:
            if error.status_code != 409:
                raise
            return False
        return True

    @contextmanager
    def _removing(self, remove: Callable[[], None]) -> Iterator[None]:
        """Run a removal when the block ends, however it ends."""
        try:
            yield
        except StackbuildError:
            # What led here says more than that the removal failed as well; a later run sweeps what is left.
            with suppress(StackbuildError):
                self._insist(remove)
            raise
        except KeyboardInterrupt as interrupt:
            try:
                self._insist(remove)
            except StackbuildError as error:
                # Told as what it is: whoever takes a failure for the image's would go on with the run.
                raise InterruptedRunError(error.what, code=error.code, detail=error.detail) from interrupt
            raise
        except BaseException:
            self._insist(remove)
            raise
        self._insist(remove)

    def _insist(self, remove: Callable[[], None]) -> None:
        """Run a removal to its end even when an interrupt comes meanwhile."""
        with translated("remove what was made for this run"):
            insisted(remove)


def _device_request(request: DeviceRequest) -> docker.types.DeviceRequest:
    return docker.types.DeviceRequest(
        driver=request.driver,
        count=request.count,
        device_ids=list(request.device_ids),
        capabilities=[list(group) for group in request.capabilities],
        options=dict(request.options),
    )
