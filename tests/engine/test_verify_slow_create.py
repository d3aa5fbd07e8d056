"""Case F05: an engine that creates a container and answers too late for the client."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stackbuild.engine import docker_engine, ownership
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import ExitCode, NotJudgedError
from stackbuild.progress import SilentObserver
from stackbuild.verification.promise import Promise
from stackbuild.verification.verify import VerifyOptions, verify_image

pytestmark = pytest.mark.engine

PLAIN = Promise(source="spec", stack="plain", python="3.11", os="debian 12", glibc="2.36")
_DAEMON = "/var/run/docker.sock"


class SilentCreation:
    """Passes everything on to the engine, and keeps its answers to the creation of containers for itself."""

    def __init__(self) -> None:
        self.created = threading.Event()

    def join(self, client: socket.socket) -> None:
        """Serve one connection."""
        with client, socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(_DAEMON)
            silent = threading.Event()

            def back() -> None:
                try:
                    while data := daemon.recv(1 << 16):
                        if silent.is_set():
                            assert b" 201 " in data.split(b"\r\n")[0]
                            self.created.set()
                        else:
                            client.sendall(data)
                except OSError:
                    return  # the client has gone

            threading.Thread(target=back, daemon=True).start()
            while data := client.recv(1 << 16):
                if data.startswith(b"POST ") and b"/containers/create" in data.split(b"\r\n")[0]:
                    silent.set()
                daemon.sendall(data)


@contextmanager
def silent_engine(folder: Path) -> Iterator[tuple[str, SilentCreation]]:
    """The address of an engine that never answers a creation."""
    path = folder / "docker.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(8)
    silence = SilentCreation()

    def serve() -> None:
        while True:
            try:
                taken, _ = listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=silence.join, args=(taken,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"unix://{path}", silence
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _ours(engine: Engine) -> list[str]:
    label = {"label": f"{ownership.LABEL}={ownership.owner_label()}"}
    volumes = engine._api.volumes(filters=label).get("Volumes") or []
    return [item["Id"] for item in engine._api.containers(all=True, filters=label)] + [
        item["Name"] for item in volumes
    ]


def test_f05_a_container_whose_creation_was_not_answered_in_time_is_removed(
    engine: Engine, debian_python_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_engine, "_TIMEOUT", 2)
    with silent_engine(tmp_path) as (address, silence), Engine.connect(address) as slow:
        with pytest.raises(NotJudgedError) as caught:
            verify_image(slow, debian_python_image, PLAIN, VerifyOptions(), SilentObserver())
        assert silence.created.is_set()  # it was there
    assert caught.value.exit_code is ExitCode.NOT_JUDGED
    assert caught.value.code == "engine-died"
    assert "create a container" in caught.value.what
    assert _ours(engine) == []
