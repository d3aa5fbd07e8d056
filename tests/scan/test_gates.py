"""Gates over packages, labels and what should not be there, on images made for each."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.compat.offer import described_offer
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.scan.gates.judge import Expectations, judge_scan
from stackbuild.scan.scan import scan_of
from tests.scan.test_contents import KEY, SITE, distribution
from tests.support.elf import make_elf
from tests.support.layer_tars import Content, image_config, image_files, layer_tar

TODAY = date(2026, 11, 30)


def judged(*layers: dict[str, Content], gpus: tuple[str, ...] = (), **run_config: Any) -> tuple[Finding, ...]:
    facts = Facts()
    target = described_offer(None, gpus, facts) if gpus else None
    return judge_scan(scan_of(image_files(*layers, **run_config)), Expectations(target), facts, TODAY)


def of(findings: tuple[Finding, ...], code: str) -> list[Finding]:
    return [finding for finding in findings if finding.code == code]


def test_an_empty_image_has_nothing_wrong_and_is_complete():
    findings = judged({"etc": None})
    assert {finding.verdict for finding in findings} <= {Verdict.PASS, Verdict.SKIP}
    assert is_complete(findings)


def test_a_cpu_wheel_in_a_gpu_image():
    torch = distribution("torch", "2.13.0+cpu", {"torch/__init__.py": b""})
    (finding,) = of(judged(torch, gpus=("H100",)), "cpu-wheel-in-gpu-image")
    assert finding.verdict is Verdict.FAIL
    assert of(judged(torch), "cpu-wheel-in-gpu-image") == []


def test_both_onnxruntimes_in_one_environment_but_not_in_two():
    gpu = distribution("onnxruntime_gpu", "1.26.0", {"onnxruntime/a.py": b""})
    cpu = distribution("onnxruntime", "1.26.0", {"onnxruntime/b.py": b""})
    assert of(judged({**gpu, **cpu}), "ort-cpu-and-gpu-both")[0].verdict is Verdict.FAIL
    elsewhere = distribution(
        "onnxruntime", "1.26.0", {"onnxruntime/b.py": b""}, site="opt/other/lib/python3.12/site-packages"
    )
    assert of(judged(gpu, elsewhere), "ort-cpu-and-gpu-both") == []


def test_two_cuda_majors():
    findings = judged(
        {
            **distribution("nvidia_cublas_cu12", "12.8.4.1", {"nvidia/cublas/lib/libcublas.so.12": b"x"}),
            **distribution("nvidia_cublas", "13.0.2.14", {"nvidia/cu13/lib/libcublas.so.13": b"x"}),
        }
    )
    assert of(findings, "mixed-cuda-majors")[0].verdict is Verdict.FAIL


def test_libraries_that_the_base_brings_are_not_called_missing():
    ort = distribution("onnxruntime_gpu", "1.26.0", {"onnxruntime/a.py": b""})
    assert of(judged(ort), "flavour-lacks-lib")[0].verdict is Verdict.FAIL
    base: dict[str, Content] = {
        f"usr/local/cuda/lib64/lib{name}": make_elf(soname=f"lib{name}")
        for name in ("cublas.so.12", "cudart.so.12", "cudnn.so.9", "cufft.so.11", "curand.so.10")
    }
    assert of(judged(base, ort), "flavour-lacks-lib") == []


def test_a_changed_file_of_a_package_is_told():
    made = distribution("pkg", "1.0", {"pkg/a.py": b"1\n"})
    (finding,) = of(judged(made, {f"{SITE}/pkg/a.py": b"2\n"}), "record-mismatch")
    assert finding.verdict is Verdict.WARN
    assert finding.details["changed"] == [f"{SITE}/pkg/a.py"]


def pins_label(layers: tuple[dict[str, Content], ...], **pins: Any) -> dict[str, str]:
    stated = {
        "stack": "s",
        "os": "debian 12",
        "base": {"name": "b", "digest": "sha256:0"},
        "glibc": "2.36",
        "lock-sha256": "0",
        **pins,
    }
    diff_ids = image_config([layer_tar(layer) for layer in layers])["rootfs"]["diff_ids"]
    return {PINS_LABEL: json.dumps({"schema": 1, "pins": stated, "diff-ids": diff_ids})}


BASE: dict[str, Content] = {
    "etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "var/lib/dpkg/status": "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n\n",
}


def test_a_true_pin_list_passes_and_an_untrue_one_fails():
    layers = (BASE, distribution("torch", "2.13.0+cpu", {"torch/__init__.py": b""}))
    true = pins_label(layers, torch="2.13.0", **{"torch-variant": "cpu"})
    assert [finding.verdict for finding in of(judged(*layers, Labels=true), "labels-untrue")] == [
        Verdict.PASS
    ]
    untrue = pins_label(layers, torch="2.14.1", **{"torch-variant": "cu130"})
    found = of(judged(*layers, Labels=untrue), "labels-untrue")
    assert [(finding.subject, finding.measured, finding.required) for finding in found] == [
        ("torch", "2.13.0", "2.14.1"),
        ("torch variant", "cpu", "cu130"),
    ]


def test_a_pin_list_copied_from_another_image_fails():
    found = of(judged(BASE, Labels=pins_label(({"x": "y"},))), "labels-untrue")
    assert [finding.subject for finding in found] == ["the layers"]


def test_a_pin_list_that_cannot_be_read_is_an_error():
    (finding,) = of(judged(BASE, Labels={PINS_LABEL: "{"}), "labels-untrue")
    assert finding.verdict is Verdict.ERROR


def test_cuda_version_against_the_runtime_beside_it():
    base: dict[str, Content] = {
        "usr/local/cuda-12.4/lib64/libcudart.so.12.4.127": make_elf(soname="libcudart.so.12")
    }
    assert of(judged(base, Env=["CUDA_VERSION=12.4.1"]), "labels-untrue")[0].verdict is Verdict.PASS
    (finding,) = of(judged(base, Env=["CUDA_VERSION=12.6.3"]), "labels-untrue")
    assert (finding.verdict, finding.subject) == (Verdict.FAIL, "CUDA_VERSION")


def test_a_hidden_secret_fails_and_says_that_it_is_still_there():
    (finding,) = of(judged({"root/deploy.key": KEY}, {"root/.wh.deploy.key": ""}), "secret-in-image")
    assert finding.verdict is Verdict.FAIL
    assert "still in this one" in finding.summary


def test_a_removed_package_database_is_told():
    many: dict[str, Content] = {f"usr/share/x/{number}": "" for number in range(600)}
    (finding,) = of(judged({"etc/os-release": "ID=debian\nVERSION_ID=12\n", **many}), "sbom-incomplete")
    assert finding.verdict is Verdict.WARN


def test_an_image_for_a_platform_that_the_facts_do_not_know_is_read_and_said_to_be_incomplete():
    files = image_files({"opt/venv/lib/python3.12/site-packages": None, **BASE})
    config = {**files.description.config, "architecture": "riscv64"}
    object.__setattr__(files.description, "config", config)
    findings = judge_scan(scan_of(files), Expectations(), Facts(), TODAY)
    assert of(findings, "platform-mismatch")[0].verdict is Verdict.SKIP
    assert not is_complete(findings)


def test_an_image_for_arm64_is_judged_with_its_own_libraries():
    files = image_files(
        {
            "opt/x.so": make_elf(soname="x.so", needed=["liby.so"], machine="aarch64"),
            "lib/aarch64-linux-gnu/liby.so": make_elf(soname="liby.so", machine="aarch64"),
        }
    )
    object.__setattr__(files.description, "config", {**files.description.config, "architecture": "arm64"})
    findings = judge_scan(scan_of(files), Expectations(), Facts(), TODAY)
    assert of(findings, "needed-library-missing")[0].verdict is Verdict.PASS


def test_space_is_told_by_layer_and_owner_with_three_savings():
    (finding,) = of(
        judged(
            {"opt/data": b"x" * (12 << 20), "root/.cache/pip/a": b"y" * (11 << 20)},
            {"opt/.wh.data": ""},
            distribution("pkg", "1.0", {"pkg/a.py": b"z" * 100}),
        ),
        "space-to-save",
    )
    assert finding.verdict is Verdict.WARN
    assert [item["bytes"] for item in finding.details["savings"]] == [12 << 20, 11 << 20]
    assert finding.details["layers"][0] == 23 << 20
    assert finding.details["owners"]["pkg 1.0"] > 100


def test_static_libraries_of_wheels_are_no_saving():
    files = {"nvidia/cu13/lib/libcudart_static.a": b"a" * (11 << 20)}
    made = judged(
        {**distribution("nvidia-cuda-runtime", "13.0.96", files), "opt/libown.a": b"b" * (12 << 20)}
    )
    (finding,) = of(made, "space-to-save")
    assert [item["bytes"] for item in finding.details["savings"]] == [12 << 20]
