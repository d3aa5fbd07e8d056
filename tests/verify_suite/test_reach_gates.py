"""The gates about driver and libraries, on a machine without a GPU and on made-up files."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest


def _module(name: str) -> Any:
    return importlib.import_module(f"suite.{name}")


def test_without_a_driver_the_loaders_own_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cuda_driver", "nvml"):
        gate = _module(f"gates.{name}")
        monkeypatch.setattr(gate, "LIBRARY", "libnot-there-at-all.so.1")
        measured = gate.measure({})
        assert (measured["found"], measured["init"], measured["devices"]) == (False, None, [])
        assert "libnot-there-at-all.so.1" in measured["load_error"]


def test_device_nodes_are_opened_as_the_user_that_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _module("gates.device_nodes")
    (tmp_path / "nvidia-caps").mkdir()
    for name in ("nvidiactl", "nvidia0", "nvidia-caps/nvidia-cap1", "other"):
        (tmp_path / name).touch(mode=0o640)
    monkeypatch.setattr(gate, "DEVICES", tmp_path)
    refused = {str(tmp_path / "nvidia0"): PermissionError(13, "no")}
    opened = os.open

    def open_(path: Any, *rest: Any) -> int:
        if str(path) in refused:
            raise refused[str(path)]
        return opened(path, *rest)

    monkeypatch.setattr(gate.os, "open", open_)
    nodes = {Path(node["path"]).name: node for node in gate.measure({})["nodes"]}
    assert set(nodes) == {"nvidiactl", "nvidia0", "nvidia-cap1"}
    assert (nodes["nvidia0"]["refused"], nodes["nvidiactl"]["refused"]) == ("EACCES", None)
    assert (nodes["nvidiactl"]["mode"], nodes["nvidiactl"]["uid"]) == ("0640", os.getuid())


def test_the_kernel_modules_own_version_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = _module("gates.device_nodes")
    version = tmp_path / "version"
    version.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\nGCC\n")
    monkeypatch.setattr(gate, "DRIVER_VERSION", version)
    assert gate.measure({})["kernel_driver"].endswith("580.65.06  Release")
    monkeypatch.setattr(gate, "DRIVER_VERSION", tmp_path / "none")
    assert gate.measure({})["kernel_driver"] == ""


def test_mapped_libraries_have_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, system = tmp_path / "site", tmp_path / "system"
    for folder in (site / "nvidia/cudnn/lib", system):
        folder.mkdir(parents=True)
        (folder / "libcudnn.so.9").touch()
    (system / "libcublas.so.13").touch()
    info = site / "nvidia_cudnn_cu13-9.13.0.50.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-cudnn-cu13\nVersion: 9.13.0.50\n")
    (info / "RECORD").write_text("nvidia/cudnn/lib/libcudnn.so.9,,\n")
    maps = tmp_path / "maps"
    paths = (site / "nvidia/cudnn/lib/libcudnn.so.9", system / "libcudnn.so.9", system / "libcublas.so.13")
    lines = [f"7f00-7f01 r-xp 00000000 00:01 1  {path}" for path in (*paths, *paths, "/usr/lib/libc.so.6")]
    maps.write_text("\n".join([*lines, "7f02-7f03 rw-p 00000000 00:00 0"]) + "\n")
    monkeypatch.setattr(_module("process_maps"), "MAPS", maps)
    monkeypatch.setattr("sys.path", [str(site)])
    found = {entry["path"]: entry for entry in _module("library_owners").mapped_with_owners()}
    assert set(found) == {str(path) for path in paths}
    wheel = ["nvidia-cudnn-cu13", "9.13.0.50"]
    assert (found[str(paths[0])]["owner"], found[str(paths[1])]["owner"]) == (wheel, None)
    assert found[str(paths[1])]["shipped_by"] == [wheel], "the system's stands in its place"
    assert found[str(paths[2])]["shipped_by"] == []


def test_a_libcudart_that_is_there_is_asked_for_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = _module("gates.cuda_runtime")

    class Library:
        def __init__(self, path: str) -> None:
            if path != "libcudart.so.13":
                raise OSError(path)

        def cudaRuntimeGetVersion(self, target: Any) -> int:  # noqa: N802 - CUDA's name
            target._obj.value = 13000
            return 0

        def cudaDriverGetVersion(self, target: Any) -> int:  # noqa: N802
            target._obj.value = 12040
            return 0

        def cudaGetDeviceCount(self, target: Any) -> int:  # noqa: N802
            del target
            return 35

    monkeypatch.setattr(gate.ctypes, "CDLL", Library)
    (runtime,) = gate.measure({})["runtimes"]
    assert (runtime["version"], runtime["driver_version"]) == (13000, 12040)
    assert (runtime["status"], runtime["devices"]) == (35, None)
