"""The CUDA stacks that ship, locked, rendered and built against stand-ins reached through the site file.

The stand-in base has the real one's configuration and Debian's Python, so the specs are used with that
Python and the stand-in's digest; all else is as shipped.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stackbuild.cli.main import run
from stackbuild.engine.docker_engine import Engine
from stackbuild.lock.file import read_lock
from stackbuild.lock.model import ImageBaseLock, PlatformLock
from stackbuild.spec.load import load_spec
from stackbuild.spec.model import ImageBaseSpec
from tests.conftest import SiteFile
from tests.support.base_image import push_nvidia_base
from tests.support.elf import make_elf, make_fatbin
from tests.support.gpu_wheels import make_gpu_wheels
from tests.support.layer_tars import layer_tar
from tests.support.nvidia_config import nvidia_configuration
from tests.support.registry import Registry

pytestmark = pytest.mark.engine

SHIPPED = Path(__file__).parents[2] / "stacks"
GOLDEN = Path(__file__).parent / "golden"
STACKS = ("torch-cu126", "torch-cu128", "torch-cu130")


@dataclass(frozen=True)
class Ground:
    """A project folder with one stack in it, and what its base is called."""

    folder: Path
    name: str
    variant: str
    tag: str
    digest: str

    @property
    def suffix(self) -> str:
        """What NVIDIA's wheels for CUDA 12 have behind their names."""
        return "" if self.variant.startswith("cu13") else "-cu12"

    @property
    def locked(self) -> PlatformLock:
        """The lock of the one platform."""
        return read_lock(self.folder / "stacks" / f"{self.name}.lock").platforms["linux/amd64"]


@pytest.fixture(params=STACKS)
def ground(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    registry: Registry,
    site_file: SiteFile,
    store_root: Path,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Ground]:
    """One shipped stack with its base in a registry, its wheels in folders, and a lock made from them."""
    shipped = load_spec(SHIPPED / f"{request.param}.yaml").spec
    assert isinstance(shipped.base, ImageBaseSpec)
    torch, onnxruntime = shipped.frameworks["torch"], shipped.frameworks["onnxruntime-gpu"]
    assert torch.version
    assert torch.variant
    assert onnxruntime.version
    digest = push_nvidia_base(registry, shipped.base.tag)
    wheels = make_gpu_wheels(
        tmp_path / "indexes", torch=torch.version, variant=torch.variant, onnxruntime=onnxruntime.version
    )
    site_file(
        indexes={name: {"folder": str(folder)} for name, folder in wheels.items()},
        registries={"docker.io": registry.address},
    )
    name = f"stackbuild-test-{request.param}"  # never an image of the person who runs this
    text = (SHIPPED / f"{request.param}.yaml").read_text().replace(f"name: {request.param}", f"name: {name}")
    text = text.replace('python: "3.12"', 'python: "3.11"').replace(str(shipped.base.digest), digest)
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert run(["lock", name]) == 0
    yield Ground(tmp_path, name, torch.variant, shipped.base.tag, digest)
    for image in engine_images(engine, name):
        engine.remove_image(image)


def engine_images(engine: Engine, name: str) -> tuple[str, ...]:
    """All tags of the image ``NAME:latest``; none when it was not built."""
    image = engine.image(f"{name}:latest")
    return image.repo_tags if image else ()


def without_hashes(dockerfile: str) -> str:
    """The text with sha256 sums, and the first twelve digits in the version, replaced."""
    return re.sub(r"[0-9a-f]{64}|(?<=-py311-)[0-9a-f]{12}", "…", dockerfile)


def test_a_shipped_cuda_stack_locks_renders_and_builds(
    ground: Ground, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    _lock_is_as_promised(ground)
    assert run(["render", ground.name]) == 0
    _dockerfile_is_the_golden_one(ground, capfd.readouterr().out)
    assert run(["build", "--locked", "--format", "json", ground.name]) == 0
    row = json.loads(capfd.readouterr().out)["stacks"][0]
    _image_is_as_promised(ground, engine, row)
    _scan_finds_what_is_in_it(ground, row["tags"][0], capfd)
    _scan_finds_what_was_done_to_it(ground, row["tags"][0], engine, capfd)


def _scan_finds_what_is_in_it(ground: Ground, image: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", image, "--stack", ground.name, "-q", "--format", "json", "--sbom", "sbom.json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["complete"] is True
    alarms = {finding["code"] for finding in report["findings"] if finding["verdict"] not in ("PASS", "SKIP")}
    assert alarms <= {"distribution-eol"}, "of the stand-in's Debian; nothing else is wrong with it"
    document = json.loads((ground.folder / "sbom.json").read_bytes())
    wheels = {component["name"]: component for component in document["components"]}
    (cublas,) = wheels[f"nvidia-cublas{ground.suffix}"]["components"]
    assert cublas["name"].startswith("libcublas.so.")
    properties = {entry["name"]: entry["value"] for entry in cublas["properties"]}
    assert "sm_90" in properties["stackbuild:gpu-binaries"].split()
    (provider,) = wheels["onnxruntime-gpu"]["components"]
    needs = next(entry for entry in document["dependencies"] if entry["ref"] == provider["bom-ref"])[
        "dependsOn"
    ]
    assert cublas["bom-ref"] in needs, "found through the image's LD_LIBRARY_PATH"


def _scan_finds_what_was_done_to_it(
    ground: Ground, image: str, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    """Mistakes of a Dockerfile on top of the stack, each found by its own gate."""
    site = "opt/venv/lib/python3.11/site-packages"
    cublas = "libcublas.so.12" if ground.suffix else "libcublas.so.13"
    files: dict[str, bytes] = {
        "usr/lib/x86_64-linux-gnu/libcuda.so.570.86.10": make_elf(soname="libcuda.so.1"),
        f"usr/local/cuda/lib64/{cublas}": make_elf(soname=cublas) + b"the base's",
        f"{site}/ops/_C.so": make_elf(fatbin=make_fatbin(cubins=["sm_120"])),
        "root/.ssh/id_ed25519": b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + b"b3BlbnNzaC1rZXktdjE" * 9 + b"\n",
    }
    dockerfile = (
        f"FROM {image}\nCOPY files /\nENV LD_LIBRARY_PATH=/usr/local/cuda/lib64:/opt/none:$LD_LIBRARY_PATH\n"
        f"RUN rm -r /{site}/torch-*.dist-info\n"
    )
    context = layer_tar(
        {"Dockerfile": dockerfile, **{f"files/{path}": content for path, content in files.items()}}
    )
    tag = f"{ground.name}:spoilt"
    engine.build(io.BytesIO(context), tag=tag)
    try:
        assert run(["scan", tag, "--stack", ground.name, "-q", "--format", "json"]) == 1
    finally:
        engine.remove_image(tag)
    found: dict[str, set[str]] = {}
    for finding in json.loads(capfd.readouterr().out)["findings"]:
        found.setdefault(finding["verdict"], set()).add(finding["code"])
    assert found["FAIL"] == {
        "driver-lib-in-image",
        "cuda-library-shadowed",
        "arch-not-covered",
        "strips-metadata",
        "sbom-incomplete",
        "secret-in-image",
    }
    assert {"cuda-library-twice", "library-path-dead"} <= found["WARN"]


@pytest.mark.parametrize("tag", ["13.0.3-base-ubuntu24.04", "12.6.3-base-ubuntu24.04"])
def test_a_base_alone_raises_no_alarm(
    tag: str, registry: Registry, site_file: SiteFile, store_root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    push_nvidia_base(registry, tag)
    site_file(registries={"docker.io": registry.address})
    _raises_no_alarm(["--registry", f"nvidia/cuda:{tag}"], capfd)


def test_a_bootstrapped_base_alone_raises_no_alarm(
    debian_python_image: str, store_root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _raises_no_alarm([debian_python_image], capfd)


def _raises_no_alarm(image: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", *image, "--gpu", "H200", "--driver", "580.65.06", "-q", "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    alarms = {finding["code"] for finding in report["findings"] if finding["verdict"] not in ("PASS", "SKIP")}
    assert alarms <= {"distribution-eol", "leftovers"}
    assert report["complete"] is True
    assert "libc6" in {package["name"] for package in report["packages"]}


def _lock_is_as_promised(ground: Ground) -> None:
    base = ground.locked.base
    assert isinstance(base, ImageBaseLock)
    assert (base.tag, base.index_digest) == (ground.tag, ground.digest)
    assert base.config["config"]["Env"] == nvidia_configuration(ground.tag)["Env"]
    wheels = {wheel.name: wheel for wheel in ground.locked.wheels}
    assert wheels["torch"].version.endswith(f"+{ground.variant}")
    assert wheels["torch"].index == f"pytorch-{ground.variant}"
    # onnxruntime-gpu's own extras, which alone make it work where torch was not imported first.
    assert f"nvidia-cufft{ground.suffix}" in wheels["onnxruntime-gpu"].requires
    assert {wheel.index for name, wheel in wheels.items() if name != "torch"} == {"default"}


def _dockerfile_is_the_golden_one(ground: Ground, dockerfile: str) -> None:
    """Hashes, which follow the day's stand-in, are replaced; everything else is compared."""
    shown = without_hashes(dockerfile)
    golden = GOLDEN / f"{ground.name.removeprefix('stackbuild-test-')}.Dockerfile"
    assert shown == golden.read_text(), f"if the change is meant, write this to {golden}"


def _image_is_as_promised(ground: Ground, engine: Engine, row: dict[str, Any]) -> None:
    image = engine.image(row["tags"][0])
    assert image is not None
    assert image.labels["org.opencontainers.image.base.digest"] == ground.digest
    environment = dict(entry.split("=", 1) for entry in image.config["Env"])
    real = dict(entry.split("=", 1) for entry in nvidia_configuration(ground.tag)["Env"])
    for name in ("NVIDIA_REQUIRE_CUDA", "CUDA_VERSION", "NVIDIA_VISIBLE_DEVICES"):
        assert environment[name] == real[name]
    assert environment["PATH"].startswith("/opt/venv/bin:")
    assert "/opt/venv/lib/python3.11/site-packages/nvidia/" in environment["LD_LIBRARY_PATH"]
    with engine.container(row["tags"][0], ["true"]) as container:
        container.start()
    assert row["config-digest"].startswith("sha256:")
