"""The real torch and onnxruntime in a container: the stack's own model, its export, memory, and its own checks."""

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

import pytest

from stackbuild.engine.docker_engine import Engine
from stackbuild.findings import Finding, Verdict
from stackbuild.progress import SilentObserver
from stackbuild.shipped import shipped_folder
from stackbuild.spec.model import StackSpec
from stackbuild.verification.promise import promise_of_spec
from stackbuild.verification.verify import VerifyOptions, verify_image
from tests.support.cache import cached
from tests.support.torch_wheel import VERSION, torch_cpu_wheel

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SITE = "usr/lib/python3/dist-packages"
ONNXRUNTIME = "1.31.1"
BESIDES = ("numpy", "typing-extensions", "sympy", "networkx", "jinja2", "filelock", "fsspec")
# The shipped model in torch: the suite has its numbers, and is on the path of whatever runs inside it.
OURS = """
import torch
from suite import reference_model as numbers


class Reference(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Parameter(torch.tensor(numbers.first_weights()))
        self.first_bias = torch.nn.Parameter(torch.tensor(numbers.first_bias()))
        self.second = torch.nn.Parameter(torch.tensor(numbers.second_weights()))
        self.second_bias = torch.nn.Parameter(torch.tensor(numbers.second_bias()))

    def forward(self, x):
        return torch.relu(x @ self.first + self.first_bias) @ self.second + self.second_bias


def build():
    return Reference(), torch.tensor(numbers.inputs())


def other():
    model, inputs = build()
    model.second_bias.data += 1
    return model, inputs
"""
CHECKS = {
    "well": "def check(context):\n    yield context.passed('well', measured=context.device)\n",
    "raises": "def check(context):\n    raise KeyError('gone')\n",
    "prints": "def check(context):\n    print('loud' * 300_000)\n    yield context.failed('not so')\n",
    "dies": "import os\ndef check(context):\n    os.abort()\n    yield\n",
}


@pytest.fixture(scope="module")
def image(engine: Engine, debian_python_image: str) -> Iterator[str]:
    """Debian with Python, torch, onnxruntime and numpy."""
    repository, tag = "stackbuild-test/torch", uuid.uuid4().hex[:12]
    with engine.container(debian_python_image, ["/"]) as container:
        with cached(f"torch-{VERSION}-onnxruntime-{ONNXRUNTIME}-cp311.tar", _unpacked).open("rb") as layer:
            container.put("/", iter(lambda: layer.read(1 << 20), b""))
        engine._api.commit(container.id, repository, tag, conf={"User": "1234"})
    yield f"{repository}:{tag}"
    engine.remove_image(f"{repository}:{tag}")


def test_a_cpu_stack_passes_all_that_applies(engine: Engine, image: str, tmp_path: Path) -> None:
    found = _verified(engine, image, tmp_path)
    passed = (
        "torch-import", "torch-version", "torch-matmul", "torch-convolution", "torch-model", "torch-repeatable",
        "torch-checkpoint", "ort-session", "ort-model-session", "models-agree", "memory-fits", "shm-too-small",
    )  # fmt: skip
    for code in passed:
        assert [f.verdict for f in found[code]] == [Verdict.PASS], found[code]
    (placed,) = found["torch-model"]
    assert placed.details["operators"]["cpu"]["mm"] == 2
    checks = {f.subject: f for f in found["stack-check"] if f.verdict is not Verdict.WARN}
    assert (checks["well.py"].verdict, checks["well.py"].measured) == (Verdict.PASS, "cpu")
    assert "KeyError" in checks["raises.py"].summary
    assert checks["prints.py"].verdict is Verdict.FAIL
    assert "SIGABRT" in checks["dies.py"].summary
    (printed,) = [f for f in found["stack-check"] if f.verdict is Verdict.WARN]
    assert "printed 1200001 bytes" in printed.summary
    assert len(printed.details["output"]) < 20_000


def test_an_export_that_is_not_its_source_fails(engine: Engine, image: str, tmp_path: Path) -> None:
    found = _verified(engine, image, tmp_path, function="other", read_only=True)
    (agreed,) = found["models-agree"]
    assert agreed.verdict is Verdict.FAIL
    assert "is off by" in agreed.summary
    assert found["torch-model"][0].verdict is Verdict.PASS


def _verified(
    engine: Engine, image: str, folder: Path, *, function: str = "build", read_only: bool = False
) -> dict[str, list[Finding]]:
    (folder / "ours.py").write_text(OURS)
    for name, text in CHECKS.items():
        (folder / f"{name}.py").write_text(text)
    onnx = (shipped_folder("verify") / "suite" / "models" / "reference.onnx").read_bytes()
    (folder / "reference.onnx").write_bytes(onnx)
    verify = {
        "torch-model": f"ours.py:{function}",
        "onnx-model": "reference.onnx",
        "memory-margin": "5%",
        "shm-size": "128m",
        "read-only": read_only,
        "checks": [f"{name}.py" for name in CHECKS],
    }
    frameworks = {"torch": {"version": VERSION}, "onnxruntime": {"version": ONNXRUNTIME}}
    spec = StackSpec.model_validate(
        {"schema": 1, "name": "torch", "external": image, "frameworks": frameworks, "verify": verify}
    )
    promise = promise_of_spec(spec, "linux/amd64", folder)
    assert promise.onnx_model_sha256 == hashlib.sha256(onnx).hexdigest()
    found: dict[str, list[Finding]] = {}
    for finding in verify_image(engine, image, promise, VerifyOptions(), SilentObserver()).findings:
        found.setdefault(finding.code, []).append(finding)
    return found


def _unpacked(target: Path) -> None:
    folder = target.parent / ".torch-download"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"),
            *("--python-version=3.11", "--implementation=cp", "--abi=cp311"),
            *("--platform=manylinux_2_28_x86_64", "--platform=manylinux_2_17_x86_64", "--platform=any"),
            *(f"--dest={folder}", f"onnxruntime=={ONNXRUNTIME}", *BESIDES),
        ],
        check=True,
    )
    with tarfile.open(target, "w") as archive:
        for wheel in [torch_cpu_wheel(), *sorted(folder.glob("*.whl"))]:
            with zipfile.ZipFile(wheel) as content:
                for name in content.namelist():
                    if not name.endswith("/"):
                        entry = tarfile.TarInfo(f"{SITE}/{name}")
                        data = content.read(name)
                        entry.size, entry.mode = len(data), 0o644
                        archive.addfile(entry, io.BytesIO(data))
    for wheel in folder.glob("*.whl"):
        wheel.unlink()
    folder.rmdir()
