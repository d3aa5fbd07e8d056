"""The first layer that differs, its maker and its inputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.drift.findings import layer_text
from stackbuild.drift.first_layer import layer_maker
from stackbuild.drift.model import LayerChange
from tests.drift.images import OS, archive, compared, deb, dist
from tests.support.layer_tars import Content, digest, layer_tar

BASE = "stackbuild: debian bookworm from 91 locked debs"
WHEELS = "stackbuild: other wheels: numpy 2.1.0, six 1.16.0"
FILES = "stackbuild: files from app/"


@pytest.mark.parametrize(
    ("command", "maker"),
    [
        (BASE, "base debian bookworm"),
        (f"FROM nvidia/cuda:13.0.3-base@sha256:{'1' * 64}", "base nvidia/cuda:13.0.3-base"),
        (WHEELS, "other wheels"),
        ("stackbuild: byte-code of Python 3.11.2: torch", "byte-code of Python 3.11.2 of torch"),
        (
            "stackbuild: virtual environment /opt/venv for Python 3.11.2",
            "virtual environment /opt/venv for Python 3.11.2",
        ),
        (FILES, "files from app/"),
        ("apt-get install --no-download curl", "debs"),
        ("/bin/sh -c #(nop) COPY dir:1 in /srv ", "COPY dir:1 in /srv"),
        ("RUN /bin/sh -c apt-get update # buildkit", "apt-get update # buildkit"),
        ("", ""),
    ],
)
def test_a_layer_is_named_by_what_made_it(command: str, maker: str) -> None:
    assert layer_maker(command) == maker


Layers = Sequence[tuple[str, dict[str, Content]]]


def ours(path: Path, layers: Layers, *, lock: str = "", files: str = "") -> Path:
    """An image with a pin list, as stackbuild writes it."""
    tars = [layer_tar(content) for _, content in layers]
    pins = {
        "stack": "demo",
        "os": "debian 12",
        "base": {"name": "bootstrap debian bookworm", "digest": digest(tars[0])},
        "glibc": "2.36",
        "lock-sha256": lock,
        "files-sha256": files,
    }
    label = json.dumps({"schema": 1, "pins": pins, "diff-ids": [digest(tar) for tar in tars]})
    labels = {PINS_LABEL: label} if lock else {}
    return archive(path, *tars, history=[command for command, _ in layers], Labels=labels)


def first(tmp_path: Path, before: Path, after: Path) -> LayerChange:
    drift = compared(before, after)
    assert drift.first_layer is not None
    assert (
        layer_text(drift.first_layer) in " ".join(item.summary for item in drift.findings)
        or not drift.differs
    )
    return drift.first_layer


def test_the_packages_that_moved_in_it_are_its_inputs(tmp_path: Path) -> None:
    before: Layers = [
        (BASE, OS),
        (WHEELS, {**dist("numpy", "2.1.0"), **dist("six", "1.16.0")}),
        (FILES, {"a": "1"}),
    ]
    after: Layers = [
        (BASE, OS),
        (WHEELS.replace("2.1.0", "2.2.0"), {**dist("numpy", "2.2.0"), **dist("six", "1.16.0")}),
        (FILES, {"a": "2"}),
    ]
    layer = first(tmp_path, ours(tmp_path / "a", before, lock="1"), ours(tmp_path / "b", after, lock="2"))
    assert (layer.number, layer.maker, layer.inputs) == (2, "other wheels", ("numpy 2.1.0 → 2.2.0",))
    assert layer.before == digest(layer_tar(before[1][1]))
    assert layer_text(layer) == "layer 2 from the bottom, other wheels: numpy 2.1.0 → 2.2.0"


def test_equal_inputs_and_other_bytes_are_not_reproducible(tmp_path: Path) -> None:
    bytecode = "stackbuild: byte-code of Python 3.11.2: other"
    before: Layers = [(BASE, OS), (bytecode, {"m.pyc": b"1"})]
    after: Layers = [(BASE, OS), (bytecode, {"m.pyc": b"2"})]
    layer = first(tmp_path, ours(tmp_path / "a", before, lock="1"), ours(tmp_path / "b", after, lock="1"))
    assert layer.inputs == ()
    assert layer_text(layer).endswith("all its inputs are the same, so it is not reproducible")


def test_a_wheel_replaced_under_its_version_is_an_input(tmp_path: Path) -> None:
    numpy = dist("numpy", "2.1.0", files={"numpy/core.py": "1\n"})
    other = dist("numpy", "2.1.0", files={"numpy/core.py": "2\n"})
    before, after = [(BASE, OS), (WHEELS, numpy)], [(BASE, OS), (WHEELS, other)]
    layer = first(tmp_path, ours(tmp_path / "a", before, lock="1"), ours(tmp_path / "b", after, lock="2"))
    assert layer.inputs == ("numpy 2.1.0; 1 of its files differs",)


def test_the_specs_files(tmp_path: Path) -> None:
    before: Layers = [(BASE, OS), (FILES, {"a": "1"})]
    after: Layers = [(BASE, OS), (FILES, {"a": "2"})]
    layer = first(
        tmp_path,
        ours(tmp_path / "a", before, lock="1", files="x"),
        ours(tmp_path / "b", after, lock="1", files="y"),
    )
    assert layer.inputs == ("the content of the spec's files",)


def test_a_base_that_moved_under_its_tag(tmp_path: Path) -> None:
    def on(digest_: str, libc: str) -> Layers:
        status: dict[str, Content] = {**OS, "var/lib/dpkg/status": deb("libc6", libc)}
        return [(f"FROM debian:12@sha256:{digest_ * 64}", status)]

    layer = first(
        tmp_path,
        ours(tmp_path / "a", on("1", "2.36-9"), lock="1"),
        ours(tmp_path / "b", on("2", "2.36-10"), lock="2"),
    )
    assert layer.maker == "base debian:12"
    assert layer.inputs == ("digest sha256:111111111111 → sha256:222222222222", "libc6 2.36-9 → 2.36-10")


def test_debs_of_a_bootstrapped_base(tmp_path: Path) -> None:
    def of(count: int, libc: str) -> Layers:
        status: dict[str, Content] = {**OS, "var/lib/dpkg/status": deb("libc6", libc)}
        return [(f"stackbuild: debian bookworm from {count} locked debs", status)]

    layer = first(
        tmp_path,
        ours(tmp_path / "a", of(91, "2.36-9"), lock="1"),
        ours(tmp_path / "b", of(92, "2.36-10"), lock="2"),
    )
    assert (layer.maker, layer.inputs) == ("base debian bookworm", ("libc6 2.36-9 → 2.36-10",))


def test_another_layer_in_its_place(tmp_path: Path) -> None:
    before: Layers = [(BASE, OS), (WHEELS, dist("numpy", "2.1.0")), (FILES, {"a": "1"})]
    after: Layers = [(BASE, OS), (FILES, {"a": "1"})]
    layer = first(tmp_path, ours(tmp_path / "a", before, lock="1"), ours(tmp_path / "b", after, lock="2"))
    assert layer.inputs == ("other wheels → files from app/",)
    layer = first(
        tmp_path, ours(tmp_path / "c", before[:2], lock="1"), ours(tmp_path / "d", before[:1], lock="2")
    )
    assert (layer.number, layer.maker, layer.after) == (2, "other wheels", "")
    assert layer.inputs == ("only one of the images has such a layer",)


def test_of_others_images_the_command_is_told(tmp_path: Path) -> None:
    run = "/bin/sh -c pip install flask"
    layer = first(
        tmp_path,
        ours(tmp_path / "a", [("ADD rootfs", OS), (run, {"a": "1"})]),
        ours(tmp_path / "b", [("ADD rootfs", OS), (run, {"a": "2"})]),
    )
    assert layer.maker == "pip install flask"
    assert layer.inputs == (
        "its command and the versions in it are the same; what else it read is not recorded",
    )
