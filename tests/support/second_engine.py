"""A Docker engine of a test's own, in namespaces of its own: when it ends, nothing of it is left.

Its network namespace keeps it off the machine's bridges (a second dockerd with ``--bridge=none`` beside the
first removes the first's), its mount namespace off the machine's mounts, and its pid namespace takes
containerd, the shims and all containers with it. Of the machine's loopback it reaches the ports it is given.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import docker
import docker.errors
import requests.exceptions

from tests.support import relay
from tests.support.engine_program import EngineProgram

_PATIENCE = 300.0
# Images lie in memory, in the engine's own mount namespace: quick to load, and gone with it.
_ON_TMPFS = 'mkdir "$0" && mount -t tmpfs engine "$0" && exec "$@"'


@dataclass(frozen=True)
class RunningDaemon:
    """A daemon that answers at ``url``."""

    url: str
    pid: int
    folder: Path


@contextmanager
def running_daemon(
    program: EngineProgram,
    *,
    programs: Path | None = None,
    environment: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
    reach: Sequence[int] = (),
) -> Iterator[RunningDaemon]:
    """Start an engine and end it.

    Args:
        program: Which dockerd.
        programs: A folder that goes first on its PATH.
        environment: Added to its environment, which hooks get too.
        settings: Its daemon.json.
        reach: Ports of the machine's loopback that it finds on its own, a registry's for example.
    """
    # A short path: a socket's may have 108 characters.
    folder = Path(tempfile.mkdtemp(prefix="second-engine-"))
    process = None
    path = program.path if programs is None else f"{programs}:{program.path}"
    relays = ExitStack()
    try:
        for port in reach:
            relays.enter_context(relay.to_loopback(folder, port))
        (folder / "daemon.json").write_text(json.dumps(dict(settings or {})))
        command = [
            *_as_root(),
            *("env", f"PATH={path}"),
            *(f"{name}={value}" for name, value in (environment or {}).items()),
            # Dies with the tests, and takes its namespaces with it.
            *("setpriv", "--pdeathsig", "KILL"),
            *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
            *("sh", "-c", _ON_TMPFS, f"{folder}/data"),
            *(sys.executable, "-I", relay.__file__, str(folder), ",".join(str(port) for port in reach)),
            *(program.dockerd, "--config-file", f"{folder}/daemon.json"),
            *("--host", f"unix://{folder}/docker.sock", "--group", str(os.getgid())),
            *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"),
            # systemd outside would not know the process ids of this namespace.
            *("--bridge=none", "--iptables=false", "--exec-opt", "native.cgroupdriver=cgroupfs"),
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        url = f"unix://{folder}/docker.sock"
        _await(process, url, folder / "log")
        yield RunningDaemon(url, process.pid, folder)
    finally:
        if process is not None:
            subprocess.run([*_as_root(), "sh", "-c", 'kill -KILL "$1"', "sh", str(process.pid)])
            process.wait()
        relays.close()
        _remove(folder)


def _as_root() -> list[str]:
    """What goes before a command that needs root."""
    return [] if os.geteuid() == 0 else ["sudo", "-n", "--"]


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, f"dockerd ended: {log.read_text()[-3000:]}"
        if Path(url.removeprefix("unix://")).is_socket():
            try:
                with docker.APIClient(base_url=url, timeout=10) as client:
                    client.ping()
                    return
            except (docker.errors.DockerException, requests.exceptions.RequestException):
                pass  # not listening yet
        time.sleep(0.1)
    raise AssertionError(f"dockerd does not answer: {log.read_text()[-3000:]}")


def _remove(folder: Path) -> None:
    """Remove its files; the kernel may take a moment to let go of a killed namespace's mounts."""
    for _ in range(50):
        subprocess.run([*_as_root(), "rm", "-rf", str(folder)], stderr=subprocess.DEVNULL)
        if not folder.exists():
            return
        time.sleep(0.1)
    shutil.rmtree(folder)
