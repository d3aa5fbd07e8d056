"""An engine for simulated hosts leaves nothing behind, also when the tests that started it are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stackbuild.verification.gpus import GpuSelection, device_requests
from tests.simulated_gpu.fixtures import SimulatedMachine
from tests.simulated_gpu.host import load_host
from tests.simulated_gpu.images import busybox_image

pytestmark = pytest.mark.engine

_RUNS_UNTIL_KILLED = """
import sys, time
from pathlib import Path
from stackbuild.verification.gpus import GpuSelection, device_requests
from tests.simulated_gpu.fixtures import SimulatedMachine
from tests.simulated_gpu.host import load_host
from tests.simulated_gpu.images import busybox_image
machine = SimulatedMachine("hook", Path(sys.argv[1]), reach=[9])
with machine.with_host(load_host("driver-470-t4.yaml")) as engine:
    requests = device_requests(GpuSelection(count=-1))
    with engine.container(busybox_image(engine), ["sleep", "600"], device_requests=requests) as container:
        container.start()
        print(engine._api.info()["DockerRootDir"], flush=True)
        time.sleep(600)
"""


def bridges() -> set[str]:
    return {link.name for link in Path("/sys/class/net").iterdir() if (link / "bridge").exists()}


def mounts_below(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]


def processes_of(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if str(folder) in command and int(process.name) != os.getpid():
            found.append(command)
    return found


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_stopped_engine_leaves_nothing_behind(tmp_path: Path) -> None:
    before = bridges()
    machine = SimulatedMachine("hook", tmp_path, reach=[9])
    try:
        with machine.with_host(load_host("driver-470-t4.yaml")) as engine:
            folder = Path(engine._api.info()["DockerRootDir"]).parent
            image = busybox_image(engine)
            with engine.container(
                image, ["sleep", "600"], device_requests=device_requests(GpuSelection(count=-1))
            ) as container:
                container.start()
                assert processes_of(folder)  # what is looked for below can be seen from here
                assert mounts_below(folder) == []
    finally:
        machine.stop()

    assert not folder.exists()
    assert within(100, lambda: processes_of(folder) == [])
    assert mounts_below(folder) == []
    assert bridges() == before


def test_an_engine_ends_with_the_tests_that_started_it(tmp_path: Path) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-c", _RUNS_UNTIL_KILLED, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert runner.stdout is not None
        folder = Path(runner.stdout.readline().strip()).parent
        assert folder.name.startswith("second-engine-")
        assert processes_of(folder)
    finally:
        runner.send_signal(signal.SIGKILL)
        runner.wait()

    assert within(100, lambda: processes_of(folder) == [])
    assert mounts_below(folder) == []
    subprocess.run(["rm", "-rf", str(folder)], check=True)  # its folder of logs is all that is left
