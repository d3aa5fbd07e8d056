"""Several commands at a time, a process each."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path


def test_what_a_killed_night_had_begun_ends_with_it(tmp_path: Path, store_root: Path) -> None:
    (tmp_path / "stacks").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"stacks/{name}.yaml").write_text(f"schema: 1\nname: {name}\nexternal: others:1\n")
    with socket.create_server(("127.0.0.1", 0)) as engine:
        engine.settimeout(30)
        night = subprocess.Popen(
            [sys.executable, "-m", "stackbuild", "nightly", "--jobs", "2"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "DOCKER_HOST": f"tcp://127.0.0.1:{engine.getsockname()[1]}",
                "STACKBUILD_STORE": str(store_root),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        asking = [engine.accept()[0] for _ in range(2)]  # an engine that never answers
        night.kill()
        night.wait()
        for connection in asking:
            connection.settimeout(10)
            while connection.recv(4096):  # what was asked, then the end
                pass
            connection.close()
