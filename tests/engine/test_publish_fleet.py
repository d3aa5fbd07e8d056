"""A CPU job builds and stages, jobs on the fleet's GPUs judge, a CPU job promotes: on simulated GPU hosts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stackbuild.cli.main import run
from tests.engine.publishing import Project

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine
    from tests.simulated_gpu.fixtures import OnSimulatedHost

pytestmark = [pytest.mark.engine, pytest.mark.slow]

A100, H100 = "driver-550-a100.yaml", "driver-580-h100.yaml"
A10 = {"name": "NVIDIA A10", "compute-capability": "8.6", "memory-mib": 23028, "brand": "nvidia"}


def test_a_tag_moves_once_every_kind_of_gpu_has_passed(
    project: Project,
    simulated_host: OnSimulatedHost,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    project.build("9", cuda="12.4.1")
    capfd.readouterr()
    assert run(["publish", project.name, project.repository, "--stage", "-q", "--format", "json"]) == 0
    digest = json.loads(capfd.readouterr().out)["digest"]
    reference = f"{project.repository}@{digest}"

    def judge(host: str, **changes: object) -> int:
        with simulated_host(host, **changes) as engine, monkeypatch.context() as patch:
            patch.setenv("DOCKER_HOST", _address(engine))
            patch.setenv("STACKBUILD_STORE", str(project.folder / "gpu-host"))
            return run(["verify", reference, "--gpus", "all", "--attach", "-q"])

    def promote() -> tuple[int, dict[str, str]]:
        capfd.readouterr()
        tag = f"{project.repository}:fleet"
        code = run(["publish", reference, tag, "--require", "sm_80,sm_86,sm_90", "-q", "--format", "json"])
        report: dict[str, Any] = json.loads(capfd.readouterr().out)
        return code, {
            finding["subject"].split()[0]: finding["summary"]
            for finding in report["findings"]
            if finding["code"] == "required-report" and finding["verdict"] != "PASS"
        }

    assert (judge(A100), judge(H100)) == (0, 0)
    assert promote() == (5, {"sm_86": "no report of sm_86 is attached"})
    assert judge(A100, gpus=[A10], failures=("nvml-mismatch",)) != 0
    code, told = promote()
    assert code != 0
    assert set(told) == {"sm_86"}
    assert project.digest("fleet") is None
    assert judge(A100, gpus=[A10]) == 0
    # A host that refuses the container before it names its GPU is no reason against the others, and is told.
    assert judge(A100, gpus=[A10], driver="470.256.02", cuda="11.4") == 1
    code, told = promote()
    assert (code, list(told)) == (0, ["unknown"])
    assert "driver-too-old" in told["unknown"]
    assert project.digest("fleet") == digest

    assert run(["inspect", f"{project.repository}:fleet", "--remote", "--format", "json"]) == 0
    (platform,) = json.loads(capfd.readouterr().out)["platforms"]
    assert {gpu for result in platform["results"] for gpu in result["gpus"]} == {"sm_80", "sm_86", "sm_90"}


def _address(engine: Engine) -> str:
    adapter: Any = engine._api.get_adapter("http+docker://localhost")
    return f"unix://{adapter.socket_path}"
