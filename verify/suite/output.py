"""Keeps the beginning and the end of what a process prints, however much it prints."""

from __future__ import annotations

HEAD_BYTES = 4096
TAIL_BYTES = 12288


class OutputTail:
    """Output of one gate: first and last bytes, and how many there were in all."""

    def __init__(self) -> None:
        self.total = 0
        self._head = b""
        self._tail = b""

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-TAIL_BYTES:]

    def text(self) -> str:
        """What was kept, with a line in the middle that says how much was left out."""
        left_out = self.total - len(self._head) - len(self._tail)
        middle = b"\n[... %d bytes left out ...]\n" % left_out if left_out else b""
        return (self._head + middle + self._tail).decode("utf-8", "replace")
