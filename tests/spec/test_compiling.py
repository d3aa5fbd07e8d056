"""A package that there is only as source: what a person is told, for the stack at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackbuild.errors import SpecError, SpecProblem
from stackbuild.spec.load import load_spec

PLAIN = "base: {image: debian, tag: bookworm-slim}\n"
CUDA = "base: {image: nvidia/cuda, tag: 12.4.1-runtime-ubuntu22.04}\n"


def problem(folder: Path, text: str) -> SpecProblem:
    """The one problem of a spec that is sound but for these lines."""
    path = folder / "mine.yaml"
    path.write_text(f'schema: 1\nname: mine\npython: "3.10"\n{text}')
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    (found,) = caught.value.problems
    return found


def test_case_d04_a_source_extension_is_told_where_to_be_compiled_and_for_which_gpus(tmp_path: Path) -> None:
    found = problem(
        tmp_path,
        CUDA
        + 'packages: ["fused-ssim @ git+https://git.example/fused-ssim"]\n'
        + 'target: {gpus: [L40S, "9.0", A100]}\n',
    )
    assert (found.code, found.line) == ("ext-arch-unset", 5)
    assert (
        found.message
        == "'fused-ssim @ git+https://git.example/fused-ssim' is a source, and only wheels are taken"
    )
    assert "nvidia/cuda:12.4.1-devel-ubuntu22.04, which has nvcc" in found.suggestion
    assert 'TORCH_CUDA_ARCH_LIST="8.0;8.9;9.0"' in found.suggestion
    assert "{url: …, sha256: …}" in found.suggestion


def test_without_a_cuda_base_or_gpus_the_image_and_the_list_are_described(tmp_path: Path) -> None:
    found = problem(
        tmp_path,
        PLAIN
        + 'frameworks: {torch: {version: "2.14.1", variant: cu130}}\n'
        + 'packages: ["ops @ https://files.example/ops-1.0.tar.gz"]\n',
    )
    assert found.code == "ext-arch-unset"
    assert "a -devel image of nvidia/cuda" in found.suggestion
    assert 'TORCH_CUDA_ARCH_LIST="the compute capabilities of your GPUs"' in found.suggestion


def test_a_stack_without_gpus_hears_nothing_of_cuda(tmp_path: Path) -> None:
    found = problem(tmp_path, PLAIN + 'packages: ["tool @ git+https://git.example/tool"]\n')
    assert found.code == "spec-invalid"
    assert found.suggestion == (
        "Build its wheel, and write {url: …, sha256: …} under packages, or put it on an index of your own."
    )


def test_a_wheel_by_url_needs_its_hash_alone(tmp_path: Path) -> None:
    url = "https://files.example/ops-1.0-py3-none-any.whl"
    found = problem(tmp_path, CUDA + f'packages: ["ops @ {url}"]\n')
    assert (found.code, found.suggestion) == (
        "spec-invalid",
        f"Write {{url: {url}, sha256: …}} under packages.",
    )


def test_a_source_by_url_and_hash_is_told_the_same_where_its_url_stands(tmp_path: Path) -> None:
    entry = f'{{url: "https://files.example/ops-1.0.tar.gz", sha256: {"a" * 64}}}'
    found = problem(tmp_path, CUDA + f"packages: [{entry}]\ntarget: {{gpus: [H200]}}\n")
    assert (found.code, found.line) == ("ext-arch-unset", 5)
    assert found.message == "'https://files.example/ops-1.0.tar.gz' is a source, and only wheels are taken"
    assert 'TORCH_CUDA_ARCH_LIST="9.0"' in found.suggestion
    assert problem(tmp_path, PLAIN + f"packages: [{entry}]\n").code == "spec-invalid"


@pytest.mark.parametrize("after", ["?token=abc", "#sha256=abc"])
def test_a_wheel_whose_url_goes_on_behind_its_name_is_no_source(tmp_path: Path, after: str) -> None:
    url = f"https://files.example/ops-1.0-py3-none-any.whl{after}"
    found = problem(tmp_path, CUDA + f'packages: [{{url: "{url}", sha256: {"a" * 64}}}]\n')
    assert (found.code, found.message) == (
        "spec-invalid",
        f"'{url}' does not end with its wheel's file name",
    )
