"""What every maker of a layer offers, and what comes out of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from stackbuild.layers.tar_writer import Sink
from stackbuild.layers.tree import Additions, FileTree


@dataclass(frozen=True)
class Layer:
    """A deterministic tar in the store.

    Attributes:
        group: What it holds: debs, venv, cuda, torch, …
        key: The hash of what made it.
        diff_id: ``sha256:`` and the hash of the tar.
        size: Bytes of the tar.
        path: The tar.
        created_by: One line for the image's history.
        load_additions: Reads what it adds to the tree; called only when a layer above is made anew.
    """

    group: str
    key: str
    diff_id: str
    size: int
    path: Path
    created_by: str
    load_additions: Callable[[], Additions] = field(repr=False, compare=False)

    def entries(self) -> Additions:
        """What the layer adds to the tree below: give it to ``FileTree.with_layer``, which also refuses
        two layers that write different bytes to one path."""
        return self.load_additions()


class Maker(Protocol):
    """Makes one layer, as a pure function of its fields and the tree below."""

    @property
    def group(self) -> str:
        """What the layer holds."""

    @property
    def created_by(self) -> str:
        """One line for the image's history."""

    def key(self) -> str:
        """Hash of all that decides the layer's bytes."""

    def make(self, sink: Sink, tree: FileTree) -> Additions:
        """Write the tar to ``sink``.

        Returns:
            What it adds to ``tree``; when empty, there is no layer and the sink's content is dropped.

        Raises:
            BuildError: when an input is refused or two inputs conflict.
        """


def layer_key(maker: str, version: int, inputs: Any) -> str:
    """The key of a layer.

    Args:
        maker: The maker's name.
        version: Raised whenever the maker would write other bytes for the same inputs.
        inputs: JSON values: all that decides the bytes.

    Returns:
        64 hex digits.
    """
    text = json.dumps([maker, version, inputs], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
