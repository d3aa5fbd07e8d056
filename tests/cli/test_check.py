"""``stackbuild check`` from the shell: what people ask, the exit codes and the formats."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from stackbuild.cli.main import run
from stackbuild.registry import transport

BASES = {
    "cu126": "12.6.3-base-ubuntu24.04",
    "cu128": "12.8.1-base-ubuntu24.04",
    "cu130": "13.0.1-base-ubuntu24.04",
}


def torch_spec(version: str, variant: str, more: str = "") -> str:
    return (
        "schema: 1\n"
        "name: stack\n"
        f"base: {{image: nvidia/cuda, tag: {BASES.get(variant, BASES['cu130'])}}}\n"
        'python: "3.12"\n'
        "frameworks:\n"
        f'  torch: {{version: "{version}"{f", variant: {variant}" if variant else ""}}}\n'
        f"{more}"
    )


ORT_SPEC = (
    "schema: 1\nname: stack\nbase: {image: nvidia/cuda, tag: 13.0.1-base-ubuntu24.04}\n"
    'python: "3.12"\nframeworks:\n  onnxruntime-gpu: {version: "1.31.1"}\n'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "stacks").mkdir()
    monkeypatch.chdir(tmp_path)
    # Neither an engine nor a registry answers: a check of a stack needs neither.
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("STACKBUILD_REGISTRIES", "docker.io=127.0.0.1:9")
    monkeypatch.setattr(transport, "_FIRST_DELAY", 0)
    for name in [name for name in os.environ if name.upper() in ("GITHUB_ACTIONS", "STACKBUILD_CONFIG")]:
        monkeypatch.delenv(name)
    return tmp_path


def write(spec: str, name: str = "stack") -> None:
    Path("stacks", f"{name}.yaml").write_text(spec.replace("name: stack\n", f"name: {name}\n"))


def asked(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capfd.readouterr()
    code = run(["check", *arguments])
    return code, capfd.readouterr().out


def document(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out = asked(capfd, *arguments, "--format", "json")
    loaded: dict[str, Any] = json.loads(out)
    return code, loaded


def fails(report: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [*report["stacks"], *report["cells"]]
    return [finding for part in parts for finding in part["findings"] if finding["verdict"] == "FAIL"]


# --- the questions that people ask


@pytest.mark.parametrize(
    ("spec", "driver", "gpu", "code", "says"),
    [
        # A Blackwell card on a wheel whose list ends at Hopper.
        (torch_spec("2.8.0", "cu126"), "570.124.06", "RTX 5090", "arch-not-covered", "cu128"),
        # CUDA 13 dropped Volta.
        (torch_spec("2.9.1", "cu130"), "580.65.06", "V100", "gpu-dropped-by-toolkit", "CUDA 12"),
        # The cu128 builds dropped Pascal before CUDA did.
        (torch_spec("2.8.0", "cu128"), "570.124.06", "GTX 1080", "arch-not-covered", "cu126"),
        (ORT_SPEC, "580.65.06", "B200", "arch-not-covered", "onnxruntime-gpu 1.27.0"),
        (torch_spec("2.9.1", "cu130"), "575.57.08", "H100", "driver-too-old", "R580"),
        (torch_spec("2.9.1", "cu130"), "575.57.08", "RTX 4090", "driver-too-old", "R580"),
        # The default index ships CUDA 13.2 with torch 2.15.
        (torch_spec("2.15.0", ""), "570.124.06", "H100", "driver-too-old", "R595"),
    ],
)
def test_it_does_not_run_and_says_why(
    capfd: pytest.CaptureFixture[str], spec: str, driver: str, gpu: str, code: str, says: str
) -> None:
    write(spec)
    exit_code, report = document(capfd, "stack", "--driver", driver, "--gpu", gpu)
    assert exit_code == 1
    found = [finding for finding in fails(report) if finding["code"] == code]
    assert found
    assert any(says in finding["next_step"] for finding in found), found


@pytest.mark.parametrize(
    ("spec", "driver", "gpu", "by"),
    [
        # sm_120 runs on 12.1, sm_86 on 8.9: the same major, a higher minor.
        (torch_spec("2.8.0", "cu128"), "580.65.06", "12.1", "sm_120"),
        (torch_spec("2.8.0", "cu126"), "580.65.06", "sm_89", "sm_86"),
    ],
)
def test_it_runs_though_the_list_does_not_name_the_gpu(
    capfd: pytest.CaptureFixture[str], spec: str, driver: str, gpu: str, by: str
) -> None:
    write(spec)
    exit_code, report = document(capfd, "stack", "--driver", driver, "--gpu", gpu)
    assert exit_code == 0
    (cell,) = report["cells"]
    (found,) = [finding for finding in cell["findings"] if finding["code"] == "arch-not-covered"]
    assert (cell["verdict"], found["verdict"], found["details"]["by"]) == ("PASS", "PASS", by)


@pytest.mark.parametrize(
    ("image", "driver", "gpu", "says"),
    [
        ("nvidia/cuda:12.8.1-base-ubuntu24.04", "551.78", "RTX 4090", ["12.8", "12.4"]),
        ("nvidia/cuda:12.4.1-base-ubuntu22.04", "520.61.05", "RTX 3090", ["12.4", "11.8"]),
    ],
)
def test_an_image_that_cannot_be_read_is_judged_from_its_tag(
    capfd: pytest.CaptureFixture[str], image: str, driver: str, gpu: str, says: list[str]
) -> None:
    exit_code, report = document(capfd, image, "--driver", driver, "--gpu", gpu)
    assert exit_code == 1
    assert report["stacks"][0]["findings"][0]["code"] == "judged-from-tag"
    failed = [finding for finding in fails(report) if finding["subject"] == "NVIDIA_REQUIRE_CUDA"]
    assert [finding["code"] for finding in failed] == ["driver-too-old"]
    assert all(text in failed[0]["summary"] for text in says)


def test_another_image_that_cannot_be_read_is_not_judged(capfd: pytest.CaptureFixture[str]) -> None:
    exit_code, out = asked(capfd, "docker.io/someone/else:1.0", "--driver", "580.65.06")
    assert (exit_code, out) == (5, "")


def test_a_tag_that_cannot_exist_is_an_answer_too(capfd: pytest.CaptureFixture[str]) -> None:
    exit_code, report = document(
        capfd, "nvidia/cuda:12.8.1-cudnn8-devel-ubuntu22.04", "--driver", "580.65.06"
    )
    assert exit_code == 1
    assert "no-such-tag" in {finding["code"] for finding in fails(report)}


def test_an_external_stack_is_judged_by_its_image(capfd: pytest.CaptureFixture[str]) -> None:
    write(
        "schema: 1\nname: stack\nexternal: nvidia/cuda:12.8.1-base-ubuntu24.04\n"
        'target: {driver: ">=550.54.14", gpus: [L4]}\n'
    )
    exit_code, report = document(capfd, "stack")
    (stack,) = report["stacks"]
    assert (stack["stack"], stack["judged-from"]) == ("stack", "image")
    assert stack["path"].endswith("stacks/stack.yaml")
    # R550 is among the branches that the image allows for data-centre cards; the spec asks for native.
    assert exit_code == 1
    assert {finding["code"] for finding in fails(report)} == {"driver-too-old"}


# --- hosts


def test_without_a_host_the_target_is_the_host(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130", 'target: {driver: ">=580.65.06", gpus: [V100]}\n'))
    exit_code, report = document(capfd, "stack")
    assert exit_code == 1
    assert report["cells"][0]["host"] == "the target fleet"


def test_without_host_and_target_the_stack_is_judged_alone(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130"))
    exit_code, report = document(capfd, "stack")
    assert (exit_code, report["cells"]) == (0, [])
    assert report["stacks"][0]["oldest-driver"] == "580.65.06"


def test_stacks_times_a_fleet_is_a_matrix(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130"), "new")
    write(torch_spec("2.8.0", "cu126"), "old")
    Path("fleet.yaml").write_text(
        "hosts:\n"
        "  - {name: big, driver: 580.65.06, gpus: [{name: NVIDIA H100 80GB HBM3}]}\n"
        "  - {name: volta, driver: 580.65.06, gpus: [{name: Tesla V100-SXM2-16GB}]}\n"
    )
    exit_code, out = asked(capfd, "--fleet", "fleet.yaml")
    assert exit_code == 1
    table = [line.split() for line in out.splitlines()[:3]]
    assert table == [["stack", "big", "volta"], ["new", "ok", "X"], ["old", "ok", "ok"]]
    assert "new on volta\n" in out
    assert "old on volta\n" not in out


def test_a_host_file_is_a_card(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130"))
    card = {"schema": 1, "name": "here", "driver": "580.65.06", "gpus": [{"name": "NVIDIA L40S"}]}
    Path("host.json").write_text(json.dumps(card))
    exit_code, report = document(capfd, "stack", "--host", "host.json")
    assert (exit_code, report["hosts"]) == (0, ["here"])


# --- formats and exit codes


def test_json_names_stack_platform_host_and_advice(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130"))
    _, report = document(capfd, "stack", "--driver", "575.57.08", "--gpu", "RTX 4090")
    assert list(report) == ["schema", "stacks", "hosts", "cells", "complete"]
    (cell,) = report["cells"]
    assert (cell["stack"], cell["platform"], cell["host"]) == (
        "stack",
        "linux/amd64",
        "driver 575.57.08, GeForce RTX 4090",
    )
    assert cell["advice"][-1] == "The oldest driver that serves this stack here is 580.65.06."


def test_github_annotates_the_line_of_the_spec(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.8.0", "cu126"))
    exit_code, out = asked(
        capfd, "stack", "--driver", "570.124.06", "--gpu", "RTX 5090", "--format", "github"
    )
    assert exit_code == 1
    (line,) = [line for line in out.splitlines() if "arch-not-covered" in line]
    place = re.match(r"::error file=stacks/stack\.yaml,line=(\d+),", line)
    assert place is not None
    named = Path("stacks/stack.yaml").read_text().splitlines()[int(place[1]) - 1]
    assert named.lstrip().startswith("torch:")


def test_github_tells_a_warning_at_the_base(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.8.0", "cu126").replace("12.6.3-base-ubuntu24.04", "11.8.0-base-ubuntu20.04"))
    _, out = asked(capfd, "stack", "--format", "github")
    (line,) = [line for line in out.splitlines() if "title=base-wheel-cuda-differ" in line]
    assert line.startswith("::warning file=stacks/stack.yaml,line=3,")


def test_the_table_has_no_colour_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.8.0", "cu126"))
    _, out = asked(capfd, "stack", "--driver", "570.124.06", "--gpu", "RTX 5090")
    assert "\x1b" not in out
    assert "  X    arch-not-covered: " in out


def test_strict_makes_a_warning_fail(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.8.0", "cu126").replace("12.6.3-base-ubuntu24.04", "11.8.0-base-ubuntu22.04"))
    assert asked(capfd, "stack")[0] == 0
    assert asked(capfd, "stack", "--strict")[0] == 1


def test_a_host_without_a_known_driver_is_not_complete(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130"))
    exit_code, report = document(capfd, "stack", "--gpu", "H100")
    assert (exit_code, report["complete"]) == (0, False)
    said = asked(capfd, "stack", "--gpu", "H100")[1]
    assert "complete: false; not judged: driver-too-old\n" in said
    # The base and torch lack the same thing, which is said once.
    assert said.count("Neither the driver of this host nor its CUDA maximum is known.") == 1


def test_a_host_that_can_judge_nothing_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130"))
    Path("host.json").write_text('{"schema": 1, "name": "laptop", "gpus": []}')
    exit_code, out = asked(capfd, "stack", "--host", "host.json")
    assert exit_code == 0
    assert re.search(r"^stack +-$", out, re.MULTILINE)
    assert "stack on laptop\n" in out
    assert "Neither the driver of this host nor its CUDA maximum is known." in out


@pytest.mark.parametrize("driver", ["620.10", "999"])
def test_a_driver_newer_than_the_facts_is_not_too_old(capfd: pytest.CaptureFixture[str], driver: str) -> None:
    write(torch_spec("2.9.1", "cu130"))
    exit_code, out = asked(capfd, "stack", "--driver", driver, "--gpu", "H100")
    assert (exit_code, "complete: true" in out) == (0, True)


def test_a_driver_without_a_gpu_says_that_the_gpu_is_not_known(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130"))
    exit_code, out = asked(capfd, "stack", "--driver", "570.86.15")
    assert exit_code == 1
    assert (
        "forward compatibility is for data-centre GPUs only, and which GPUs the host has is not known." in out
    )


def test_an_unknown_gpu_in_a_spec_is_told_at_its_line(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130", "target: {gpus: [H2OO]}\n"))
    capfd.readouterr()
    code = run(["check", "stack"])
    said = capfd.readouterr().err
    assert code == 3
    assert "stack.yaml:7:16: GPU 'H2OO' is not a product of the facts" in said
    assert "Did you mean H200" in said


def test_all_invalid_specs_are_told_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    write(torch_spec("2.9.1", "cu130"), "good")
    write("schema: 1\nname: stack\nbase: 7\n", "one")
    write("schema: 1\nname: stack\npyton: 7\n", "two")
    capfd.readouterr()
    code = run(["check"])
    said = capfd.readouterr().err
    assert (code, "2 of 3 specs are not valid" in said) == (3, True)
    assert "one.yaml:3:7" in said
    assert "Did you mean 'python'?" in said


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nothing-of-that-name"], 3),
        (["stack", "--driver", "new"], 2),
        (["stack", "--gpu", "Voodoo 2"], 2),
        (["stack", "--fleet", "absent.yaml"], 2),
    ],
)
def test_exit_codes(capfd: pytest.CaptureFixture[str], arguments: list[str], code: int) -> None:
    write(torch_spec("2.9.1", "cu130"))
    exit_code, out = asked(capfd, *arguments)
    assert (exit_code, out) == (code, "")


def test_an_invalid_spec_is_3(capfd: pytest.CaptureFixture[str]) -> None:
    write("schema: 1\nname: stack\nbase: 7\n")
    assert asked(capfd, "stack")[0] == 3


def test_waivers_and_the_sites_policy_hold_in_a_check(capfd: pytest.CaptureFixture[str]) -> None:
    waiver = (
        "waivers:\n"
        "  - {code: arch-not-covered, match: GTX 1080, reason: two old hosts, owner: maria, until: 2999-01-01}\n"
    )
    write(torch_spec("2.8.0", "cu128", waiver))
    host = ("--driver", "570.124.06", "--gpu", "GTX 1080")
    exit_code, out = asked(capfd, "stack", *host)
    assert exit_code == 0
    assert "waived: two old hosts (maria, until 2999-01-01)" in out
    Path("stackbuild.toml").write_text('[policy]\nallowed-bases = ["debian"]\n')
    exit_code, out = asked(capfd, "stack", *host)
    assert exit_code == 1
    assert "base-not-allowed" in out


def test_verbose_lists_what_was_asked_and_no_blank_line_comes_first(
    capfd: pytest.CaptureFixture[str],
) -> None:
    write(torch_spec("2.9.1", "cu130"))
    _, short = asked(capfd, "stack")
    _, long = asked(capfd, "stack", "-v")
    assert short.startswith("stack (judged from its spec")
    assert "asked, and nothing found" not in short
    (line,) = [line for line in long.splitlines() if "asked, and nothing found: " in line]
    assert {"mixed-cuda-majors", "glibc-too-old"} <= set(line.partition(": ")[2].split(", "))
    write('schema: 1\nname: plain\nbase: {bootstrap: debian, suite: trixie}\npython: "3.13"\n', "plain")
    _, long = asked(capfd, "plain", "--driver", "580.95.05", "--gpu", "H200", "-v")
    assert "plain on driver 580.95.05, H200\n  ok   nothing in it depends on this host\n" in long
