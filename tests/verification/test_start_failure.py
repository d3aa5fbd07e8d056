"""The engine's words for a container that did not start (case F04's daemon error among them)."""

from __future__ import annotations

import pytest

from stackbuild.errors import ExitCode
from stackbuild.findings import exit_code_of
from stackbuild.verification.judge.start_failure import judge_start_failure

REQUIREMENT = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create "
    "failed: unable to start container process: error during container init: error running hook #0: error "
    "running hook: exit status 1, stdout: , stderr: nvidia-container-cli: requirement error: unsatisfied "
    "condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container"
)


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (
            'could not select device driver "" with capabilities: [[gpu]]',
            "toolkit-not-installed",
            "NVIDIA Container Toolkit is not installed",
        ),
        (
            'could not select device driver "cdi" with capabilities: []',
            "toolkit-not-installed",
            "reserve GPUs",
        ),
        (
            "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all",
            "gpu-request-refused",
            "unresolvable CDI devices nvidia.com/gpu=all",
        ),
        (
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open",
            "gpu-request-refused",
            "libnvidia-ml.so.1",
        ),
        (
            "nvidia-container-cli: device error: 7: unknown device: unknown",
            "gpu-request-refused",
            "unknown device",
        ),
        ("OCI runtime create failed: no such cgroup", "container-start-failed", "no such cgroup"),
    ],
)
def test_the_hosts_fault_is_an_error_in_one_sentence(message: str, code: str, words: str) -> None:
    finding = judge_start_failure(message)
    assert finding.code == code
    assert words in finding.summary
    assert "\n" not in finding.summary
    assert finding.next_step
    assert finding.details["engine"] == message
    assert exit_code_of([finding]) is ExitCode.NOT_JUDGED


@pytest.mark.parametrize(
    ("demand", "code"),
    [
        ("cuda>=12.8", "driver-too-old"),
        # Old toolkits name the last alternative, which is for older drivers: the driver is what is too old.
        ("brand = tesla", "driver-too-old"),
        ("driver < 471", "driver-too-old"),
        ("arch>=8.0", "requirement-not-met"),
    ],
)
def test_a_demand_of_the_image_that_does_not_hold_has_the_verdict_that_check_gives(
    demand: str, code: str
) -> None:
    finding = judge_start_failure(REQUIREMENT.replace("cuda>=12.8", demand))
    assert finding.code == code
    assert exit_code_of([finding]) is ExitCode.GATE_FAILED
