"""The frozen stack of a run, and what of it must be as in production."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from stackbuild.errors import SpecError
from stackbuild.findings import Verdict
from stackbuild.host.model import Host, HostGpu
from stackbuild.spec.model import StackField, StackSpec
from stackbuild.verification.freeze import freeze
from stackbuild.verification.frozen_stack import FrozenStack, stack_of_host
from stackbuild.verification.judge.stack import judge_stack
from stackbuild.verification.production import deployment_target, must_match
from tests.verification.support import cpu_promise, measured, torch_build, whole_run

CARD = Host(
    os="Ubuntu 24.04.3 LTS",
    kernel="6.8.0-90-generic",
    machine="x86_64",
    firmware="1.2 (2025-01-01)",
    driver="580.95.05",
    gpus=(HostGpu(name="NVIDIA L40S"),),
    toolkit="1.18.0",
    docker="28.5.1",
    compiler="gcc 13.3.0",
    nvcc="13.0",
    profilers={"nsys": "2025.3"},
)
PRODUCTION = {"kernel": "6.8.0-90-generic", "driver": "580.95.05"}


def test_it_holds_what_the_suite_measured_and_what_the_card_says() -> None:
    interpreter = measured(
        "interpreter",
        python="3.11.2",
        implementation="CPython",
        machine="x86_64",
        kernel="6.1.0",
        glibc="2.36",
        os={"PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)"},
    )
    nvml = measured("nvml", driver="580.95.05", devices=[{"name": "NVIDIA H200"}])
    run = whole_run(interpreter, nvml, torch_build("2.14.1+cu130", "13.0"))
    promise = cpu_promise(package_sources=("default", "pytorch-cu130"), deployment_target="H200; native")
    stack = freeze(promise, run, CARD, "Docker 28.5.1")
    assert dict(stack.fields) == {
        "architecture": "x86_64",
        "os": "Ubuntu 24.04.3 LTS",
        "kernel": "6.1.0",
        "firmware": "1.2 (2025-01-01)",
        "driver": "580.95.05",
        "gpus": "NVIDIA H200",
        "container-engine": "Docker 28.5.1",
        "container-toolkit": "1.18.0",
        "deployment-target": "H200; native",
        "image-os": "Debian GNU/Linux 12 (bookworm)",
        "glibc": "2.36",
        "python": "CPython 3.11.2",
        "frameworks": "onnxruntime 1.31.1, torch 2.14.1+cu130",
        "cuda-runtime": "13.0 (torch)",
        "execution-provider": "CPUExecutionProvider",
        "model-format": "none of its own",
        "package-sources": "default, pytorch-cu130",
        "compiler": "gcc 13.3.0",
        "cuda-toolkit": "13.0",
        "profilers": "nsys 2025.3",
    }


def test_a_hosts_card_says_nothing_of_what_an_image_brings() -> None:
    card = CARD.model_copy(update={"python": "3.12.3", "glibc": "2.39", "torch": "2.9.0"})
    stack = stack_of_host(card)
    assert (stack.python, stack.glibc, stack.frameworks) == ("", "", {})
    assert stack.container_engine == "Docker 28.5.1", "as a verification there writes it"


def test_the_specs_names_are_the_stacks() -> None:
    assert set(get_args(StackField)) == {name for name, _ in FrozenStack().fields}


def test_a_run_that_brought_nothing_back_has_a_stack_of_unknowns() -> None:
    stack = freeze(cpu_promise(), whole_run(results={}), None, "")
    assert {value for _, value in stack.fields} <= {"", "none of its own"}


def test_what_differs_from_production_fails_and_what_nobody_knows_is_an_error() -> None:
    required = {"kernel": "6.8.0-90-generic", "driver": "570.86.15", "firmware": "9.9"}
    here = FrozenStack(kernel="6.8.0-90-generic", driver="580.95.05")
    same, differs, unknown = judge_stack(here, required)
    assert (same.verdict, same.subject) == (Verdict.PASS, "kernel")
    assert differs.verdict is Verdict.FAIL
    assert differs.summary == "driver is 580.95.05 here and 570.86.15 in production"
    assert (differs.measured, differs.required) == ("580.95.05", "570.86.15")
    assert differs.next_step
    assert unknown.verdict is Verdict.ERROR
    assert {finding.code for finding in (same, differs, unknown)} == {"stack-differs"}
    assert judge_stack(here, {}) == ()


@pytest.mark.parametrize("kind", ["card", "report"])
def test_production_is_a_hosts_card_or_a_report_from_there(tmp_path: Path, kind: str) -> None:
    card = CARD.model_dump(mode="json", by_alias=True)
    stack = stack_of_host(CARD).model_dump(mode="json", by_alias=True)
    document: Any = card if kind == "card" else {"kind": "verification", "frozen-stack": stack}
    (tmp_path / "production.json").write_text(json.dumps(document))
    assert must_match(_spec(["kernel", "driver"]), tmp_path) == PRODUCTION


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "production-unreadable"),
        (b"\xff\x00", "production-unreadable"),
        (b"{", "production-unreadable"),
        (b'{"kind": "verification", "frozen-stack": {"kernel": 1}}', "production-unreadable"),
        (b'{"kind": "verification"}', "production-says-nothing"),
        (b'{"schema": 1, "driver": "580.95.05"}', "production-says-nothing"),
    ],
)
def test_an_inventory_that_does_not_say_it_is_a_mistake_of_the_spec(
    tmp_path: Path, content: bytes | None, code: str
) -> None:
    if content is not None:
        (tmp_path / "production.json").write_bytes(content)
    with pytest.raises(SpecError) as caught:
        must_match(_spec(["kernel"]), tmp_path)
    assert caught.value.code == code
    assert "production.json" in caught.value.where


def test_must_match_without_production_is_refused() -> None:
    with pytest.raises(ValueError, match="must-match needs 'production'"):
        StackSpec.model_validate({**_MINIMAL, "target": {"must-match": ["kernel"]}})


def test_the_target_is_one_line() -> None:
    spec = StackSpec.model_validate(
        {**_MINIMAL, "target": {"gpus": ["H200", "L40S"], "driver": ">=580.65", "compatibility": "minor"}}
    )
    assert deployment_target(spec.target) == "H200, L40S; driver >=580.65; minor"
    assert deployment_target(_spec([]).target) == ""


_MINIMAL: dict[str, Any] = {"schema": 1, "name": "x", "external": "x:1"}


def _spec(names: list[str]) -> StackSpec:
    return StackSpec.model_validate(
        {**_MINIMAL, "target": {"production": "production.json", "must-match": names}}
    )
