"""A folder that holds a root file system, such as an unpacked image or a machine's own disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stackbuild.scan.layer_scanner import LayerScanner
from stackbuild.scan.sources.interface import Done, ImageDescription, LayerReader, T


class FolderSource:
    """A root file system as one layer without a diff ID; nothing of it is kept.

    Args:
        folder: Its root.
        config: The configuration to judge it with.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any] | None = None) -> None:
        self._folder, self._config = folder, config or {}

    def describe(self) -> ImageDescription:
        """A description with no configuration but the given one."""
        return ImageDescription(str(self._folder), self._config, ("",), commands=("",))

    def scan_layers(self, wanted: Sequence[str], done: Done) -> None:
        """Scan the folder."""
        self.read_layers(wanted, LayerScanner(), done)

    def read_layers(
        self, wanted: Sequence[str], reader: LayerReader[T], done: Callable[[str, T], None]
    ) -> None:
        """Read the folder."""
        for diff_id in wanted:
            done(diff_id, reader.of_folder(self._folder, where=str(self._folder)))
