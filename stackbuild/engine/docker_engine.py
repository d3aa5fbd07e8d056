"""The Docker Engine as a context manager, over docker-py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import docker
import docker.errors
import requests.exceptions
from docker.utils import kwargs_from_env

from stackbuild.engine import ownership
from stackbuild.engine.containers import ContainerRequests
from stackbuild.engine.images import ImageRequests
from stackbuild.engine.models import EngineInfo
from stackbuild.engine.translate import translated
from stackbuild.errors import NotJudgedError

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


class Engine(ImageRequests, ContainerRequests):
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
            storage_driver=info["Driver"],
            containerd_store="containerd.snapshotter" in status.get("driver-type", ""),
            cdi=bool(info.get("CDISpecDirs")),
            runtimes=tuple(sorted(info.get("Runtimes") or {})),
            architecture=info["Architecture"],
            engine_id=info.get("ID", ""),
            cgroup_driver=info.get("CgroupDriver", ""),
            security=tuple(sorted(_security_name(option) for option in info.get("SecurityOptions") or [])),
        )

    def platform(self) -> str:
        """What it runs without emulation, for example linux/amd64."""
        with translated("describe itself"):
            version = self._api.version()
        return f"{version['Os']}/{version['Arch']}"

    def export(self, image: str) -> Iterator[bytes]:
        """The image's file system as one tar stream, read from a container that never starts."""
        with self.container(image, ["/"]) as container, translated(f"export {image}"):
            yield from self._api.export(container.id, chunk_size=_CHUNK)

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
                if _is_gone(volume) and self._remove_free_volume(volume["Name"]):
                    removed.append(volume["Name"])
            for image in images:
                if _is_gone(image):
                    for ref in image.get("RepoTags") or [image["Id"]]:
                        self.remove_image(ref)
                        removed.append(ref)
        return removed


def _is_gone(described: Mapping[str, Any]) -> bool:
    return ownership.owner_is_gone((described.get("Labels") or {}).get(ownership.LABEL, ""))


def _security_name(option: str) -> str:
    """``rootless`` of ``name=rootless``, ``seccomp`` of ``name=seccomp,profile=default``."""
    return option.split(",")[0].removeprefix("name=")
