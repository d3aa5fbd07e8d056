"""What the engine answers and is asked, as frozen dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class EngineInfo:
    """The engine as it describes itself."""

    server_version: str
    storage_driver: str
    containerd_store: bool  # images live in containerd: a load needs the base's layers too
    cdi: bool  # device requests with driver 'cdi' are served (engine 25 and newer)
    runtimes: tuple[str, ...]
    architecture: str  # as the kernel says it: x86_64, aarch64
    engine_id: str
    cgroup_driver: str = ""  # systemd or cgroupfs
    security: tuple[str, ...] = ()  # names of its security options: rootless, selinux, seccomp, …


@dataclass(frozen=True)
class ImageInfo:
    """An image the engine has.

    ``id`` is the engine's own: the config digest with the graph-driver store, the manifest digest with
    the containerd store. Compare ``diff_ids`` across engines, never ``id`` (docker-notes, "Build").
    """

    id: str
    config: Mapping[str, Any]  # Env, Cmd, Entrypoint, Labels, … as the engine spells them
    diff_ids: tuple[str, ...]
    repo_tags: tuple[str, ...]
    repo_digests: tuple[str, ...]
    created: str
    size: int  # bytes
    architecture: str
    os: str
    history: tuple[Mapping[str, Any], ...] = ()
    layer_folders: tuple[str, ...] = ()  # on the engine's host, lowest first; empty where it has no overlayfs

    @property
    def labels(self) -> Mapping[str, str]:
        """The image's labels; empty when it has none."""
        return self.config.get("Labels") or {}


@dataclass(frozen=True)
class ExecResult:
    """How a command inside a container ended."""

    exit_code: int
    output: bytes  # stdout and stderr, in the order they came

    @property
    def text(self) -> str:
        """The output, with undecodable bytes replaced."""
        return self.output.decode(errors="replace")


@dataclass(frozen=True)
class Mount:
    """A volume or folder of the host inside a container."""

    source: str  # a volume's name, or an absolute path of the engine's host
    target: str
    read_only: bool = True
    kind: Literal["volume", "bind"] = "volume"


@dataclass(frozen=True)
class DeviceRequest:
    """Devices a container asks for; the fields are those of the engine's API.

    ``count`` is -1 for all devices; leave it 0 when ``device_ids`` names them.
    """

    driver: str = ""
    count: int = 0
    device_ids: tuple[str, ...] = ()
    capabilities: tuple[tuple[str, ...], ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
