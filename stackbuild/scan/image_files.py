"""An image's files, put together from its scanned layers: what is there, who put it there, what is hidden."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stackbuild.errors import BuildError
from stackbuild.layers.tree import resolve_path
from stackbuild.scan.entries import FileEntry, paths_below
from stackbuild.scan.layer import ScannedLayer
from stackbuild.scan.sources.interface import ImageDescription


class PlacedFile(NamedTuple):
    """A path of the image: its entry and the number of the layer it comes from, from 0 at the bottom."""

    entry: FileEntry
    layer: int


@dataclass(frozen=True, slots=True)
class HiddenFile:
    """A file that is in a layer and no longer in the image: it still has to be pulled, and can be read.

    Attributes:
        path: Without leading slash.
        layer: The layer that holds it.
        by: The layer that deletes or replaces it.
        size: Bytes.
        replaced: True when the image has another file at this path.
    """

    path: str
    layer: int
    by: int
    size: int
    replaced: bool


class ImageFiles:
    """An image's file system.

    Args:
        description: The image.
        layers: Its scanned layers, lowest first.
    """

    def __init__(self, description: ImageDescription, layers: Sequence[ScannedLayer]) -> None:
        self.description = description
        self.layers = tuple(layers)
        self.hidden: list[HiddenFile] = []
        self._files: dict[str, PlacedFile] = {}
        for number, layer in enumerate(self.layers):
            self._put_layer(number, layer)
        self._children: dict[str, list[str]] | None = None

    def get(self, path: str) -> PlacedFile | None:
        """What is at exactly this path, without leading slash; no link is followed."""
        return self._files.get(path)

    def __contains__(self, path: object) -> bool:
        return path in self._files

    def __len__(self) -> int:
        return len(self._files)

    def placed(self) -> Iterator[tuple[str, PlacedFile]]:
        """All paths."""
        return iter(self._files.items())

    def names_in(self, folder: str) -> Sequence[str]:
        """The names directly in a folder (no link is followed); none where it is not there."""
        if self._children is None:
            children: dict[str, list[str]] = defaultdict(list)
            for path in self._files:
                parent, _, name = path.rpartition("/")
                children[parent].append(name)
            self._children = dict(children)
        return self._children.get(folder, ())

    def resolve(self, path: str) -> str | None:
        """The path a process finds when it opens ``path``: every link followed; None when nothing is there."""
        try:
            found = resolve_path(path, self._node, follow_last=True)
        except BuildError:  # a loop of links, or a file where a folder should be: nothing can be opened there
            return None
        for _ in range(8):
            placed = self._files.get(found)
            if placed is None:
                return None
            if placed.entry.kind != "hardlink":
                return found
            found = placed.entry.linkname
        return None

    def is_folder(self, path: str) -> bool:
        """Whether a process can list this folder."""
        found = self.resolve(path)
        return found is not None and self._files[found].entry.kind == "dir"

    def facts(self, reader: str) -> Iterator[tuple[str, int, Any]]:
        """What a reader took out of the files that are still there: path, layer and value, in path order."""
        found = [
            (path, number, value)
            for number, layer in enumerate(self.layers)
            for path, value in layer.facts.get(reader, {}).items()
            if (placed := self._files.get(path)) is not None and placed.layer == number
        ]
        return iter(sorted(found, key=lambda item: item[0]))

    def hidden_facts(self, reader: str) -> Iterator[tuple[str, int, Any]]:
        """The same of the files that a later layer deletes or replaces."""
        for number, layer in enumerate(self.layers):
            for path, value in layer.facts.get(reader, {}).items():
                placed = self._files.get(path)
                if placed is None or placed.layer != number:
                    yield path, number, value

    def fact(self, reader: str, path: str) -> Any:
        """What a reader took out of one file that is there; None for nothing."""
        placed = self._files.get(path)
        return None if placed is None else self.layers[placed.layer].facts.get(reader, {}).get(path)

    def _node(self, path: str) -> FileEntry | None:
        placed = self._files.get(path)
        return placed.entry if placed is not None else None

    def _put_layer(self, number: int, layer: ScannedLayer) -> None:
        if layer.deleted or layer.opaque:
            self._delete(number, layer)
        replaced_folders = []
        for path, entry in layer.entries.items():
            before = self._files.get(path)
            if before is not None:
                if before.entry.kind == "file":
                    self.hidden.append(
                        HiddenFile(path, before.layer, number, before.entry.size, replaced=True)
                    )
                elif before.entry.kind == "dir" and entry.kind != "dir":
                    replaced_folders.append(path)
            self._files[path] = PlacedFile(entry, number)
        if replaced_folders:
            self._remove(number, replaced_folders, ())

    def _delete(self, number: int, layer: ScannedLayer) -> None:
        self._remove(number, [*layer.deleted, *layer.opaque], layer.deleted)

    def _remove(self, number: int, folders: Collection[str], exact: Collection[str]) -> None:
        """Remove what lower layers have at ``exact`` and in ``folders``; an empty text for all."""
        if "" in folders:
            reached: Collection[str] = self._files
        else:
            reached = {*exact}
            for _, paths in paths_below(folders, self._files):
                reached.update(paths)
        gone = [path for path, placed in self._files.items() if path in reached and placed.layer < number]
        for path in gone:
            placed = self._files.pop(path)
            if placed.entry.kind == "file":
                self.hidden.append(HiddenFile(path, placed.layer, number, placed.entry.size, replaced=False))
