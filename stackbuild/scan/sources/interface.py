"""What every source of an image offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from stackbuild.image_environment import environment_of
from stackbuild.scan.layer import ScannedLayer
from stackbuild.scan.readers.text import plain
from stackbuild.scan.tar_stream import Readable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class ImageDescription:
    """An image as its configuration describes it.

    Attributes:
        name: As the person named it.
        config: The image's configuration (OCI image specification 1.1, config.md).
        diff_ids: Its layers, lowest first; an empty text for a folder that is no layer of an image.
        config_digest: ``sha256:…``; empty where the source does not have the configuration's own bytes.
        commands: What made each layer, lowest first; empty texts where that is not known.
    """

    name: str
    config: Mapping[str, Any]
    diff_ids: tuple[str, ...]
    config_digest: str = ""
    commands: tuple[str, ...] = field(default=())

    @property
    def platform(self) -> str:
        """For example ``linux/amd64``."""
        return f"{self.config.get('os') or 'linux'}/{self.config.get('architecture') or 'unknown'}"

    @property
    def run_config(self) -> Mapping[str, Any]:
        """The part that containers are started with: Env, Cmd, Labels, …"""
        return mapping(self.config.get("config"))

    @property
    def environment(self) -> dict[str, str]:
        """Its environment variables."""
        return {plain(name): plain(value) for name, value in environment_of(self.run_config).items()}

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        labels = mapping(self.run_config.get("Labels"))
        return {plain(str(name)): plain(str(value)) for name, value in labels.items()}


Done = Callable[[str, ScannedLayer], None]


class LayerReader(Protocol[T_co]):
    """Takes something out of a layer; its tar and the folder an engine unpacked it to must give the same."""

    def of_tar(
        self, stream: BinaryIO | Readable, *, seekable: bool = False, start: int = 0, where: str = ""
    ) -> T_co:
        """Read a layer's tar.

        Args:
            stream: The tar, not compressed, at its beginning.
            seekable: Whether the stream can be sought.
            start: Where the tar begins in a seekable stream.
            where: What the layer is, for errors.
        """

    def of_folder(self, folder: Path, *, where: str = "") -> T_co:
        """Read a layer that overlayfs has as a folder.

        Raises:
            ScanError: ``layer-unreadable`` where this user may not read it; the tar is read instead.
        """


class ImageSource(Protocol):
    """Reads one image."""

    def describe(self) -> ImageDescription:
        """The image's description; no layer is read."""

    def scan_layers(self, wanted: Sequence[str], done: Done) -> None:
        """Scan layers and hand each to ``done`` with its diff ID, in any order.

        Args:
            wanted: Diff IDs, each once.
            done: Called once for each.

        Raises:
            ScanError: A layer is damaged or of a form that cannot be read.
        """

    def read_layers(
        self, wanted: Sequence[str], reader: LayerReader[T], done: Callable[[str, T], None]
    ) -> None:
        """Read layers and hand what the reader took out of each to ``done`` with its diff ID, in any order.

        Args:
            wanted: Diff IDs, each once.
            reader: Reads each.
            done: Called once for each.

        Raises:
            ScanError: A layer is damaged or of a form that cannot be read.
        """


def mapping(value: object) -> Mapping[str, Any]:
    """What a document should have as an object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> list[Any]:
    """What a document should have as a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects of what a document should have as a list of them."""
    return [item for item in sequence(value) if isinstance(item, Mapping)]


def commands_of(config: Mapping[str, Any], layers: int) -> tuple[str, ...]:
    """What made each layer, from the configuration's history; nothing where the two do not fit together."""
    history = mappings(config.get("history"))
    made = [plain(str(entry.get("created_by") or "")) for entry in history if not entry.get("empty_layer")]
    return tuple(made) if len(made) == layers else ("",) * layers
