"""Host files: read strictly, written for the libraries line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.simulated_gpu.cdi import cdi_specification
from tests.simulated_gpu.host import HOSTS, SimulatedHost, host_file, load_host
from tests.simulated_gpu.injection import InjectedGpu, Injection, Library, Node


def settings(host: SimulatedHost) -> dict[str, str]:
    lines = host_file(host).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_host_reads_as_it_is_written() -> None:
    host = load_host("driver-535-two-l4.yaml")
    assert (host.driver, host.cuda_number) == ("535.216.03", 12020)
    assert [gpu.name for gpu in host.gpus] == ["NVIDIA L4", "NVIDIA L4"]

    written = settings(host)
    assert (written["driver"], written["cuda"], written["gpus"], written["cu-init"]) == (
        *("535.216.03", "12020", "2", "0"),
    )
    assert written["gpu.1.memory"] == str(23034 << 20)
    assert (written["gpu.1.ecc"], written["gpu.1.mig-mode"]) == ("1", "-1")


def test_every_setting_fits_the_libraries_buffers() -> None:
    for path in HOSTS.iterdir():
        written = settings(load_host(path.name))
        assert max(map(len, written)) < 48
        assert max(map(len, written.values())) < 160


@pytest.mark.parametrize(
    "change",
    [
        {"failures": ("on-fire",)},
        {"driver": "535"},
        {"cuda": "12020"},
        {"kernel": "6.1"},
        {"gpus": [{"name": "L4", "compute-capability": "8.9", "memory-mib": 1, "brand": "ford"}]},
    ],
)
def test_a_host_with_a_mistake_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SimulatedHost.model_validate(load_host("driver-470-t4.yaml").model_dump() | change)


def test_a_cdi_device_has_its_own_nodes_and_shares_the_control_nodes() -> None:
    gpus = tuple(
        InjectedGpu(i, f"GPU-{i}", "8.9", "nvidia", Node(f"/dev/nvidia{i}", 195, i, 0o666), {})
        for i in (0, 1)
    )
    injected = Injection(
        driver="535.216.03",
        cuda="12.2",
        host_file="/host.conf",
        libraries=(Library("/lib/a", "libcuda.so.535.216.03", "compute"),),
        control=(Node("/dev/nvidiactl", 195, 255, 0o600),),
        gpus=gpus,
        failures=(),
    )
    specification = cdi_specification(injected, Path("/bin/hook"))

    nodes = {
        device["name"]: [node["path"] for node in device["containerEdits"]["deviceNodes"]]
        for device in specification["devices"]
    }
    assert nodes == {
        "all": ["/dev/nvidia0", "/dev/nvidia1"],
        **{name: ["/dev/nvidia0"] for name in ("0", "GPU-0")},
        **{name: ["/dev/nvidia1"] for name in ("1", "GPU-1")},
    }
    assert specification["containerEdits"]["deviceNodes"] == [
        {
            "path": "/dev/nvidiactl",
            "type": "c",
            "major": 195,
            "minor": 255,
            "permissions": "rw",
            "fileMode": 0o600,
        }
    ]
