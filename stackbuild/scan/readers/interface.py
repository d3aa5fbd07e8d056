"""What a reader of one kind of file offers."""

from __future__ import annotations

from typing import IO, Any, Protocol


class Reader(Protocol):
    """Takes a small JSON value out of each file it knows.

    Attributes:
        name: Under which a layer keeps its values.
        file_names: Names of files it looks at.
        folder_names: Names of folders; it looks at every file directly in one.
        largest: Files with more bytes are left alone, and the layer says so.
    """

    name: str
    file_names: frozenset[str]
    folder_names: frozenset[str]
    largest: int

    def wants(self, path: str) -> bool:
        """Whether the file at this path, which has one of those names or folders, is one to read."""

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """The value, made of what JSON can hold; None when there is nothing in the file.

        Args:
            path: Of the file, without leading slash.
            stream: Its content, from the beginning.
        """
