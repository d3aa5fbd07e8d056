"""The real onnxruntime wheel in a container: sessions, placement, and the silent fallback (case C04)."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stackbuild.engine.docker_engine import Engine
from stackbuild.findings import Finding, Verdict
from stackbuild.progress import SilentObserver
from stackbuild.shipped import shipped_folder
from stackbuild.verification.promise import Promise
from stackbuild.verification.verify import VerifyOptions, verify_image
from tests.support.cache import cached

pytestmark = [pytest.mark.engine, pytest.mark.slow]

VERSION = "1.31.1"
SITE = "usr/lib/python3/dist-packages"


@pytest.fixture(scope="module")
def image(engine: Engine, debian_python_image: str) -> Iterator[str]:
    """Debian with Python, onnxruntime and numpy."""
    yield from _with_wheels(engine, debian_python_image, "onnxruntime")


@pytest.fixture(scope="module")
def gpu_image(engine: Engine, debian_python_image: str) -> Iterator[str]:
    """The same with onnxruntime-gpu, and none of the CUDA libraries it needs."""
    yield from _with_wheels(engine, debian_python_image, "onnxruntime-gpu")


def _with_wheels(engine: Engine, base: str, distribution: str) -> Iterator[str]:
    repository, tag = f"stackbuild-test/{distribution}", uuid.uuid4().hex[:12]

    def unpacked(target: Path) -> None:
        _unpacked_wheels(distribution, target)

    with engine.container(base, ["/"]) as container:
        with cached(f"{distribution}-{VERSION}-cp311.tar", unpacked).open("rb") as layer:
            container.put("/", iter(lambda: layer.read(1 << 20), b""))
        engine._api.commit(container.id, repository, tag, conf={"User": "1234"})
    yield f"{repository}:{tag}"
    engine.remove_image(f"{repository}:{tag}")


def test_a_session_runs_where_it_should_with_the_right_numbers(engine: Engine, image: str) -> None:
    found = _verified(engine, image)
    for code in ("ort-import", "ort-version", "ort-session", "ort-silent-cpu-fallback"):
        assert found[code].verdict is Verdict.PASS, found[code]
    placement = found["ort-silent-cpu-fallback"].details["placement"]
    assert list(placement) == ["CPUExecutionProvider"]
    assert found["ort-silent-cpu-fallback"].details["nodes"] >= 2
    assert found["ort-import"].details["torch_imported"] is False


def test_c04_a_provider_that_cannot_be_had_is_a_failure_though_the_session_runs(
    engine: Engine, image: str
) -> None:
    found = _verified(engine, image, onnxruntime_distribution="onnxruntime-gpu")
    assert found["ort-session"].verdict is Verdict.PASS, "the numbers are right, on the wrong device"
    fallback = found["ort-silent-cpu-fallback"]
    assert fallback.verdict is Verdict.FAIL
    assert (fallback.measured, fallback.required) == ("CPUExecutionProvider", "CUDAExecutionProvider")


def test_c04_onnxruntime_gpu_without_its_libraries_falls_back_in_silence_and_the_library_is_named(
    engine: Engine, gpu_image: str
) -> None:
    found = _verified(engine, gpu_image, onnxruntime_distribution="onnxruntime-gpu")
    fallback = found["ort-silent-cpu-fallback"]
    assert fallback.verdict is Verdict.FAIL
    assert "CUDAExecutionProvider" in fallback.details["available_providers"], "listed, and not to be had"
    assert fallback.details["missing_libraries"][0].startswith("lib")
    assert fallback.details["missing_libraries"][0] in fallback.summary
    assert fallback.details["missing_libraries"][0] in fallback.next_step


def test_the_stacks_own_model_gets_a_session_of_its_own(engine: Engine, image: str, tmp_path: Path) -> None:
    reference = shipped_folder("verify") / "suite" / "models" / "reference.onnx"
    found = _verified(engine, image, **_model(reference))["ort-model-session"]
    assert found.verdict is Verdict.PASS, found
    assert found.details["inputs"] == {"x": [8, 32]}
    assert found.details["outputs"] == [{"shape": [8, 16], "finite": True}]

    broken = tmp_path / "broken.onnx"
    broken.write_bytes(reference.read_bytes()[:500])
    found = _verified(engine, image, **_model(broken))["ort-model-session"]
    assert found.verdict is Verdict.FAIL
    assert "InvalidProtobuf" in found.summary


def _verified(engine: Engine, image: str, **changes: Any) -> dict[str, Finding]:
    fields: dict[str, Any] = {
        "source": "spec",
        "onnxruntime": VERSION,
        "onnxruntime_distribution": "onnxruntime",
        **changes,
    }
    report = verify_image(engine, image, Promise(**fields), VerifyOptions(), SilentObserver())
    return {finding.code: finding for finding in report.findings}


def _model(path: Path) -> dict[str, str]:
    return {"onnx_model": str(path), "onnx_model_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _unpacked_wheels(distribution: str, target: Path) -> None:
    folder = target.parent / f".{distribution}-download"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"),
            *("--python-version=3.11", "--implementation=cp", "--abi=cp311"),
            *("--platform=manylinux_2_28_x86_64", "--platform=manylinux_2_27_x86_64", "--platform=any"),
            *(f"--dest={folder}", f"{distribution}=={VERSION}", "numpy"),
        ],
        check=True,
    )
    with tarfile.open(target, "w") as archive:
        for wheel in sorted(folder.glob("*.whl")):
            with zipfile.ZipFile(wheel) as content:
                for name in content.namelist():
                    if not name.endswith("/"):
                        entry = tarfile.TarInfo(f"{SITE}/{name}")
                        data = content.read(name)
                        entry.size, entry.mode = len(data), 0o644
                        archive.addfile(entry, io.BytesIO(data))
            wheel.unlink()
    folder.rmdir()
