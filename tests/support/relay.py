"""Lets what runs in a network namespace of its own reach ports of the machine's loopback.

A unix socket in a folder is seen from every network namespace; so each port is passed on twice, from the
namespace's loopback to such a socket, and from the socket to the machine's loopback. Run as a program inside the
namespace, with only the standard library, it does the first half beside another program::

    python relay.py FOLDER PORT,PORT… PROGRAM ARGUMENT…
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_CHUNK = 1 << 18
# netdevice(7): set a device's flags; IFF_UP and IFF_RUNNING.
_SIOCSIFFLAGS, _UP = 0x8914, 0x1 | 0x40


def socket_of(folder: Path, port: int) -> Path:
    """The unix socket that stands for a port."""
    return folder / f"port-{port}"


class Relay:
    """Passes connections on, each in threads of its own; a context manager.

    Args:
        listener: Listens; closed at the end.
        connect: Opens the other side of a connection.
    """

    def __init__(self, listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
        self._listener = listener
        self._connect = connect

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # shutdown() wakes the thread that waits in accept(); close() alone would not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def serve(self) -> None:
        """Take connections until the listener is closed."""
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._join, args=(taken,), daemon=True).start()

    def _join(self, taken: socket.socket) -> None:
        with taken:
            try:
                other = self._connect()
            except OSError:  # nobody listens there: who asked sees the connection end
                return
            with other:
                back = threading.Thread(target=_pass_on, args=(other, taken), daemon=True)
                back.start()
                _pass_on(taken, other)
                back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one side went away: the other has to know
        for side in (source, target):
            if side.fileno() >= 0:
                try:
                    side.shutdown(socket.SHUT_RDWR)
                except OSError:  # it is closed already
                    continue


def to_loopback(folder: Path, port: int) -> Relay:
    """Outside the namespace: from the port's unix socket to the machine's loopback."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(socket_of(folder, port)))
    listener.listen(64)
    return Relay(listener, lambda: socket.create_connection(("127.0.0.1", port)))


def _from_loopback(folder: Path, port: int) -> Relay:
    """Inside the namespace: from its loopback to the port's unix socket."""

    def connect() -> socket.socket:
        other = socket.socket(socket.AF_UNIX)
        other.connect(str(socket_of(folder, port)))
        return other

    return Relay(socket.create_server(("127.0.0.1", port), backlog=64), connect)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP))


def main(arguments: Sequence[str]) -> None:
    """Raise the loopback, pass its ports on from a child process, and become the program."""
    folder, ports, *program = arguments
    _raise_loopback()
    relays = [_from_loopback(Path(folder), int(port)) for port in ports.split(",") if port]
    if os.fork() == 0:
        threads = [threading.Thread(target=relay.serve) for relay in relays]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(0)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
