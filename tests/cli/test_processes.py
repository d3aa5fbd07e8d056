"""Several commands at a time, a process each."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.cli.processes import Task, run_processes


def test_what_a_killed_night_had_begun_ends_with_it(tmp_path: Path, store_root: Path) -> None:
    (tmp_path / "stacks").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"stacks/{name}.yaml").write_text(f"schema: 1\nname: {name}\nexternal: others:1\n")
    with socket.create_server(("127.0.0.1", 0)) as engine:
        engine.settimeout(100)
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
            connection.settimeout(100)
            while connection.recv(4096):  # what was asked, then the end
                pass
            connection.close()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shell script in place of stackbuild; to be written."""
    path = tmp_path / "program"
    path.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    return path


def test_bytes_that_are_no_text_hold_nobody_up(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A reader that gave up over them left the process waiting for room in its pipe for ever."""
    odd = r"{ head -c 300000 /dev/zero | tr '\\000' '\\377'; echo; } >&2"
    program.write_text(f"#!/bin/sh\ntimeout 60 sh -c \"{odd}\"\nprintf '%s \\377' $?\n")
    told: list[tuple[str, int]] = []
    run_processes([Task("odd", ())], 1, lambda _, result, code: told.append((result, code)))
    assert told == [("0 \ufffd", 0)]
    assert "odd: " in capfd.readouterr().err


def test_an_interrupt_while_processes_are_begun_ends_them(program: Path) -> None:
    program.write_text("#!/bin/sh\nexec sleep 60\n")

    class Interrupted(list[Task]):
        def __iter__(self) -> Iterator[Task]:
            yield Task("first", ())
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_processes(Interrupted(), 1, lambda *_: None)
    assert time.monotonic() - began < 50, "its end was waited for"
