from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from stackbuild.lock.wheels_target import Target
from stackbuild.resolution.wheels.choice import near
from stackbuild.resolution.wheels.dependencies import declared_requirements
from stackbuild.resolution.wheels.index_bindings import bind
from stackbuild.resolution.wheels.index_page import IndexFile
from stackbuild.resolution.wheels.onnxruntime import with_cuda_libraries
from stackbuild.resolution.wheels.uv import default_index_url, readable
from tests.resolution.wheel_locking import stack

BOOKWORM = Target("3.11.2", "2.36", "x86_64")


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("cp311-cp311-manylinux_2_28_x86_64", True),
        ("cp311-cp311-manylinux_2_36_x86_64", True),
        ("cp311-cp311-manylinux_2_37_x86_64", False),
        ("cp311-cp311-manylinux2014_x86_64", True),
        ("cp311-cp311-manylinux1_x86_64", True),
        ("cp311-cp311-linux_x86_64", True),
        ("cp39-abi3-manylinux_2_17_x86_64", True),
        ("cp312-abi3-manylinux_2_17_x86_64", False),
        ("cp311-cp311t-manylinux_2_28_x86_64", False),
        ("cp311-cp311-musllinux_1_2_x86_64", False),
        ("cp311-cp311-manylinux_2_28_aarch64", False),
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("py3-none-manylinux2014_x86_64", True),
        ("cp311-cp311-win_amd64", False),
    ],
)
def test_what_the_target_can_install(tag: str, fits: bool) -> None:
    assert (BOOKWORM.rank(IndexFile(f"a-1.0-{tag}.whl", "").tags) is not None) == fits


@pytest.mark.parametrize(
    ("glibc", "machine", "name"),
    [
        ("2.36", "x86_64", "x86_64-manylinux_2_36"),
        ("2.39", "aarch64", "aarch64-manylinux_2_39"),
        ("2.43", "x86_64", "x86_64-manylinux_2_40"),
        ("2.27", "x86_64", "x86_64-manylinux_2_17"),
    ],
)
def test_what_the_resolver_is_told(glibc: str, machine: str, name: str) -> None:
    assert Target("3.11.2", glibc, machine).resolver_platform == name


def test_near() -> None:
    versions = [Version(text) for text in ("1.0", "1.10", "1.9", "2.0", "3.0", "4.0", "5.0", "6.0")]
    assert near(Version("2.5"), versions) == ["1.9", "1.10", "2.0", "3.0", "4.0", "5.0"]
    assert near(None, versions) == ["1.10", "2.0", "3.0", "4.0", "5.0", "6.0"]


def test_bindings() -> None:
    spec = stack(
        frameworks={
            "torch": {"variant": "cu130"},
            "torchvision": {"index": "corp"},
            "onnxruntime-gpu": {"variant": "cu130"},
        },
        indexes={"corp": {"url": "https://corp.example/", "packages": ["ourlib", "triton"]}},
    )
    bindings = bind(spec, lambda _, framework: str(framework.variant))
    assert {name: bindings.index_of(name) for name in ("torch", "torchaudio", "pytorch-triton", "numpy")} == {
        "torch": "pytorch-cu130",
        "torchaudio": "pytorch-cu130",
        "pytorch-triton": "pytorch-cu130",
        "numpy": "default",
    }
    assert {name: bindings.index_of(name) for name in ("torchvision", "triton", "onnxruntime-gpu")} == {
        "torchvision": "corp",
        "triton": "corp",
        "onnxruntime-gpu": "default",
    }
    assert bindings.variants == {"torch": "cu130", "torchaudio": "cu130"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.31.1", {"onnxruntime-gpu[cuda,cudnn]==1.31.1"}),
        ("1.27.0", {"onnxruntime-gpu==1.27.0", "nvidia-cudnn-cu13~=9.0", "nvidia-cuda-runtime~=13.0"}),
        ("1.20.2", {"onnxruntime-gpu==1.20.2", "nvidia-cudnn-cu12~=9.0", "nvidia-cublas-cu12~=12.0"}),
        ("1.18.1", {"onnxruntime-gpu==1.18.1", "nvidia-cudnn-cu11~=8.0"}),
    ],
)
def test_cuda_libraries_of_onnxruntime(version: str, expected: set[str]) -> None:
    requirement = Requirement(f"onnxruntime-gpu=={version}")
    assert expected <= {str(item) for item in with_cuda_libraries(requirement, Version(version))}


def test_extras_that_the_spec_names_stay() -> None:
    requirement = Requirement("onnxruntime-gpu[cudnn]==1.27.0")
    assert with_cuda_libraries(requirement, Version("1.27.0")) == (requirement,)


def test_an_old_requirement_that_follows_no_rule_keeps_its_name() -> None:
    metadata = (
        b"Metadata-Version: 2.1\nName: a\nVersion: 1\nRequires-Dist: old (>=1.0.*)\nRequires-Dist: new>=2\n\n"
    )
    assert [str(item) for item in declared_requirements(metadata)] == ["old", "new>=2"]


def test_the_resolvers_words_without_its_frame() -> None:
    text = """  × No solution found when resolving dependencies:
  ╰─▶ Because only b==1.0 is available and b==1.0 depends on leaf>=2, we can
      conclude that all versions of b depend on leaf>=2.
      And because you require b, your requirements are unsatisfiable.

      hint: pass --prerelease=allow to http://127.0.0.1:4711/simple
"""
    assert readable(text) == (
        "Because only b==1.0 is available and b==1.0 depends on leaf>=2, we can"
        " conclude that all versions of b depend on leaf>=2.\n"
        "And because you require b, your requirements are unsatisfiable."
    )


def test_the_default_index_is_the_resolvers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://elsewhere.example/simple")
    url = default_index_url()
    assert url.startswith("https://")
    assert "elsewhere" not in url
