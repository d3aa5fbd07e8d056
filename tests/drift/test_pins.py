"""Pins of two sides against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stackbuild.drift.model import Drift
from stackbuild.drift.packages import Package
from stackbuild.drift.pins import compare_pins, measured_pins
from tests.drift.images import OS, archive, compared, deb, dist, of_layers
from tests.support.elf import make_elf, make_fatbin
from tests.support.layer_tars import Content, layer_tar
from tests.support.nvidia_config import nvidia_configuration


def pins(drift: Drift) -> dict[str, tuple[str, str]]:
    return {pin.pin: (pin.before, pin.after) for pin in drift.pins}


def test_a_version_may_be_known_more_exactly_on_one_side() -> None:
    assert compare_pins({"python": "3.11.2", "cudnn": "9.1"}, {"python": "3.11", "cudnn": "9.1.0.70"}) == ()
    assert len(compare_pins({"python": "3.11.2"}, {"python": "3.1"})) == 1
    assert len(compare_pins({"base": "debian 12"}, {"base": "debian"})) == 1


def test_what_a_side_cannot_know_may_be_left_out() -> None:
    assert compare_pins({"cuda": "12", "os": "debian 12"}, {"os": "debian 12"}, only_common=True) == ()
    (gone,) = compare_pins({"cuda": "12", "os": "debian 12"}, {"os": "debian 12"})
    assert (gone.pin, gone.after) == ("cuda", "")


@pytest.mark.parametrize(
    ("packages", "environment", "cuda", "expected"),
    [
        ({"nvidia-cuda-runtime-cu12": "12.8.90", "torch": "2.13.0+cu126"}, {}, {}, "12.8.90"),
        ({"torch": "2.13.0+cu126"}, {"CUDA_VERSION": "13.0.1"}, {}, "12.6"),
        ({}, {"CUDA_VERSION": "13.0.1"}, {"cudart": "12.1"}, "13.0.1"),
        ({}, {}, {"cudart": "12.1.105"}, "12.1.105"),
        ({"torch": "2.13.0+cpu"}, {}, {}, ""),
    ],
)
def test_which_cuda_counts(
    packages: dict[str, str], environment: dict[str, str], cuda: dict[str, str], expected: str
) -> None:
    found = measured_pins([Package("python", *item) for item in packages.items()], cuda, environment)
    assert found["cuda"] == expected
    assert found["driver_floor"] == ({"12": "525.60.13", "13": "580.65.06"}.get(expected[:2], ""))


def cuda_image(path: Path, tag: str) -> Path:
    base = nvidia_configuration(tag)
    release = "24.04" if "24.04" in tag else "22.04"
    os_release = f'ID=ubuntu\nVERSION_ID="{release}"\n'
    return archive(path, layer_tar({"etc/os-release": os_release}), Env=base["Env"], Labels=base["Labels"])


def test_a_base_of_the_next_cuda_major_says_what_breaks(tmp_path: Path) -> None:
    drift = compared(
        cuda_image(tmp_path / "a.tar", "12.6.3-base-ubuntu24.04"),
        cuda_image(tmp_path / "b.tar", "13.0.3-base-ubuntu24.04"),
    )
    found = pins(drift)
    assert found["cuda"] == ("12.6.3", "13.0.3")
    assert found["driver_floor"] == ("525.60.13", "580.65.06")
    assert "cuda>=12.6" in found["env NVIDIA_REQUIRE_CUDA"][0]
    breaking = {pin.pin for pin in drift.pins if pin.breaking}
    assert breaking == {"cuda", "driver_floor", "env NVIDIA_REQUIRE_CUDA"}
    assert drift.breaking
    (finding,) = [item for item in drift.findings if item.code == "drift-breaking"]
    assert "Hosts with a driver older than 580.65.06" in finding.summary


def test_the_configuration_that_containers_start_with_is_compared(tmp_path: Path) -> None:
    run: dict[str, Any] = {
        "Entrypoint": ["/a"],
        "Cmd": ["x"],
        "User": "0",
        "WorkingDir": "/srv",
        "Env": ["A=1", "B=2"],
        "ExposedPorts": {"80/tcp": {}},
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGINT",
        "Labels": {"team": "a", "org.opencontainers.image.created": "1"},
    }
    other = {**run, "Entrypoint": None, "User": "1001", "Env": ["B=3", "C=4"], "ExposedPorts": None}
    other["Labels"] = {"team": "b", "org.opencontainers.image.created": "2"}
    layer = layer_tar(OS)
    drift = compared(archive(tmp_path / "a.tar", layer, **run), archive(tmp_path / "b.tar", layer, **other))
    assert pins(drift) == {
        "entrypoint": ('["/a"]', ""),
        "user": ("0", "1001"),
        "ports": ("80/tcp", ""),
        "env A": ("1", ""),
        "env B": ("2", "3"),
        "env C": ("", "4"),
        "label team": ("a", "b"),
    }
    assert drift.first_layer is None
    assert "the labels created of the build" in drift.metadata
    assert drift.differs


def test_gpu_code_that_is_gone_is_named(tmp_path: Path) -> None:
    def layers(*cubins: str) -> list[dict[str, Content]]:
        library = make_elf(soname="libt.so", fatbin=make_fatbin(cubins=cubins))
        return [OS, dist("torch", "2.13.0+cu126", files={"torch/lib/libt.so": library})]

    drift = of_layers(tmp_path, layers("sm_70", "sm_80"), layers("sm_80", "sm_90"))
    (pin,) = drift.pins
    assert (pin.pin, pin.before, pin.after) == ("compute_capabilities torch", "sm_70 sm_80", "sm_80 sm_90")
    assert pin.why == "It has no code for sm_70 any more."


def test_gpu_code_of_a_library_that_came_is_told_as_a_package_and_of_a_framework_as_a_pin(
    tmp_path: Path,
) -> None:
    library = make_elf(soname="liba.so", fatbin=make_fatbin(cubins=["sm_80"]))
    cpu = [OS, dist("torch", "2.13.0+cpu")]
    gpu = [
        OS,
        {
            **dist("torch", "2.13.0+cu126", files={"torch/lib/libt.so": library}),
            **dist("nvidia-cublas", "13.1", files={"nvidia/libcublas.so": library}),
        },
    ]
    drift = of_layers(tmp_path, cpu, gpu)
    named = {pin.pin: pin.after for pin in drift.pins if pin.pin.startswith("compute")}
    assert named == {"compute_capabilities torch": "sm_80"}
    back = of_layers(tmp_path, gpu, cpu)
    assert [pin.why for pin in back.pins if pin.pin.startswith("compute")] == ["It has no GPU code any more."]


def test_the_distribution_and_its_python(tmp_path: Path) -> None:
    def layers(os: str, python: str, libc: str) -> list[dict[str, Content]]:
        minor = python.rpartition(".")[0]
        site = f"usr/local/lib/python{minor}/site-packages"
        return [
            {"etc/os-release": f"ID=debian\nVERSION_ID={os}\n", "var/lib/dpkg/status": deb("libc6", libc)},
            {f"{site}": None, f"{site}/a-1.dist-info/METADATA": "Name: a\nVersion: 1\n"},
        ]

    drift = of_layers(tmp_path, layers("13", "3.12.1", "2.41-1"), layers("12", "3.11.2", "2.36-9"))
    assert pins(drift) == {
        "os": ("debian 13", "debian 12"),
        "glibc": ("2.41", "2.36"),
        "python": ("3.12", "3.11"),
    }
    assert all(pin.breaking for pin in drift.pins)


def test_what_is_absent_is_told_from_what_is_empty() -> None:
    moved = compare_pins({"env A": "1", "env B": "", "env C": "1"}, {"env A": "", "env B": "1", "env D": ""})
    assert [(pin.pin, pin.change, pin.sides) for pin in moved] == [
        ("env A", "changed", ("1", "empty")),
        ("env B", "changed", ("empty", "1")),
        ("env C", "removed", ("1", "none")),
        ("env D", "added", ("none", "empty")),
    ]
    assert [pin.sides for pin in compare_pins({"cuda": ""}, {"cuda": "13.0"})] == [("none", "13.0")]
