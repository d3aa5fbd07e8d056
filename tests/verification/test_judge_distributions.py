"""Gates about installed distributions (cases B05 and C01)."""

from __future__ import annotations

from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.distributions import (
    judge_against_lock,
    judge_consistency,
    judge_cuda_wheels,
    judge_imports,
    judge_onnxruntime_distributions,
)
from stackbuild.verification.model import GateResult
from tests.verification.support import MARKERS, cpu_promise, cuda_promise, distribution, installed, whole_run

LOCKED = installed().measured["distributions"]


def test_b05_two_cuda_majors_fail_and_the_orphans_are_listed() -> None:
    listed = [
        distribution("torch", "2.9.1+cu130"),
        distribution("nvidia-cublas", "13.0.2"),
        distribution("nvidia-cublas-cu12", "12.8.4"),
        distribution("nvidia-cudnn-cu12", "9.10.2"),
        distribution("nvidia-cudnn-cu13", "9.13.0"),
    ]
    finding = judge_cuda_wheels(cuda_promise(), listed, Facts())
    assert finding.verdict is Verdict.FAIL
    assert finding.code == "mixed-cuda-majors"
    assert finding.details["strays"] == ["nvidia-cublas-cu12", "nvidia-cudnn-cu12"]
    assert judge_consistency(listed, MARKERS).verdict is Verdict.PASS, "pip check is not enough"


def test_b05_one_cuda_major_passes() -> None:
    listed = [distribution("torch", "2.9.1+cu130"), distribution("nvidia-cudnn-cu13", "9.13.0")]
    finding = judge_cuda_wheels(cuda_promise(), listed, Facts())
    assert finding.verdict is Verdict.PASS
    assert finding.measured == "CUDA 13"


def test_c01_both_onnxruntimes_fail_whatever_providers_they_list() -> None:
    listed = [distribution("onnxruntime", "1.23.2"), distribution("onnxruntime-gpu", "1.23.2")]
    finding = judge_onnxruntime_distributions(listed)
    assert finding.verdict is Verdict.FAIL
    assert finding.code == "ort-cpu-and-gpu-both"
    assert "Uninstall both" in finding.next_step
    assert judge_consistency(listed, MARKERS).verdict is Verdict.PASS, "pip check is not enough"


def test_c01_one_onnxruntime_passes() -> None:
    finding = judge_onnxruntime_distributions([distribution("onnxruntime-gpu", "1.31.1")])
    assert finding.verdict is Verdict.PASS


def test_what_is_installed_as_locked_passes() -> None:
    finding = judge_against_lock(cpu_promise(), LOCKED)
    assert finding.verdict is Verdict.PASS
    assert "all 3" in finding.summary


def test_one_is_counted_as_one() -> None:
    promise = cpu_promise()
    alone = promise.model_copy(update={"distributions": promise.distributions[:1]})
    name, version = alone.distributions[0].name, alone.distributions[0].version
    assert judge_against_lock(alone, [distribution(name, version)]).summary == (
        "the one locked distribution is installed, whole"
    )
    met = judge_consistency([distribution("numpy", "2.4.6")], MARKERS)
    assert met.summary == "the requirements of 1 distribution are met"


def test_missing_other_twice_and_partial_distributions_are_each_named() -> None:
    listed = [
        distribution("numpy", "2.4.5"),
        distribution("onnxruntime", "1.31.1"),
        distribution("onnxruntime", "1.30.0"),
    ]
    finding = judge_against_lock(cpu_promise(), listed)
    assert finding.verdict is Verdict.FAIL
    assert finding.details["wrong"] == {
        "numpy": "numpy is 2.4.5, locked is 2.4.6",
        "onnxruntime": "onnxruntime is installed 2 times: 1.31.1, 1.30.0",
        "torch": "torch 2.13.0+cpu is not installed",
    }


def test_a_distribution_that_lacks_files_is_not_whole() -> None:
    listed = [*LOCKED[:2], distribution("torch", "2.13.0+cpu", missing=7)]
    finding = judge_against_lock(cpu_promise(), listed)
    assert finding.verdict is Verdict.FAIL
    assert "torch lacks 7 of its files, for example gone.py" in finding.summary


def test_what_nobody_locked_is_a_warning_pip_aside() -> None:
    finding = judge_against_lock(
        cpu_promise(), [*LOCKED, distribution("pip", "26.3"), distribution("surprise", "1")]
    )
    assert finding.verdict is Verdict.WARN
    assert finding.details["not_locked"] == ["surprise"]
    assert finding.next_step


def test_an_unmet_requirement_is_told_with_both_versions() -> None:
    listed = [
        distribution("a", "1", "b>=2", "c", "d; python_version < '3'", "e; extra == 'x'"),
        distribution("b", "1.5"),
    ]
    finding = judge_consistency(listed, MARKERS)
    assert finding.verdict is Verdict.FAIL
    assert finding.details["problems"] == [
        "a requires b>=2, installed is 1.5",
        "a requires c, which is not installed",
    ]


def test_a_local_label_meets_a_public_version() -> None:
    listed = [distribution("torchvision", "0.28.0+cpu", "torch==2.13.0"), distribution("torch", "2.13.0+cpu")]
    assert judge_consistency(listed, MARKERS).verdict is Verdict.PASS


def test_what_the_spec_decides_is_shown_and_does_not_fail() -> None:
    listed = [
        distribution("torch", "2.14.1", "nvidia-nccl-cu13==2.28"),
        distribution("nvidia-nccl-cu13", "2.30.7"),
    ]
    finding = judge_consistency(listed, MARKERS, decided=["nvidia-nccl-cu13"])
    assert finding.verdict is Verdict.PASS
    assert "1 unmet by decision of the spec" in finding.summary


def test_a_package_that_cannot_be_imported_has_a_finding_of_its_own() -> None:
    broken = GateResult(
        name="import-numpy",
        outcome="raised",
        error={"type": "ImportError", "message": "libgomp.so.1: cannot open shared object file"},
    )
    (finding,) = _imports(cpu_promise(), broken)
    assert finding.verdict is Verdict.FAIL
    assert finding.subject == "numpy"
    assert "libgomp.so.1" in finding.summary


def test_a_package_that_needs_the_driver_is_skipped_only_where_no_gpu_was_reserved() -> None:
    needs_driver = GateResult(
        name="import-numpy",
        outcome="raised",
        error={"type": "ImportError", "message": "libcuda.so.1: cannot open shared object file"},
    )
    run = whole_run(needs_driver)
    (without,) = judge_imports(cuda_promise(), run.results, no_device="no GPU")
    (with_gpu,) = judge_imports(cuda_promise(), run.results, no_device="")
    assert (without.verdict, without.applies) == (Verdict.SKIP, True)
    assert with_gpu.verdict is Verdict.FAIL


def _imports(promise, result) -> tuple[Finding, ...]:  # type: ignore[no-untyped-def]
    return judge_imports(promise, whole_run(result).results, no_device="")
