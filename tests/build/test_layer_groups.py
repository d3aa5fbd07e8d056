from __future__ import annotations

from stackbuild.build.layer_groups import with_framework_needs
from tests.render.stacks import cuda_base, platform_lock, wheel


def test_what_frameworks_need_leaves_the_leaves_alone() -> None:
    lock = platform_lock(
        cuda_base(),
        wheels=(
            wheel("torch", "2.0", "torch", "1", requires=("sympy", "nvidia-cublas")),
            wheel("sympy", "1.0", "other", "2", requires=("mpmath",)),
            wheel("mpmath", "1.0", "other", "3", requires=("sympy",)),
            wheel("nvidia-cublas", "13.0", "cuda", "4"),
            wheel("onnxruntime", "1.0", "framework", "5", requires=("numpy", "not-locked")),
            wheel("numpy", "2.0", "other", "6", requested=True),
            wheel("leaf", "1.0", "other", "7", requires=("numpy", "helper"), requested=True),
            wheel("helper", "1.0", "other", "8"),
        ),
    )
    groups = {each.name: each.group for each in with_framework_needs(lock).wheels}
    assert groups == {
        "torch": "torch",
        "sympy": "framework",
        "mpmath": "framework",
        "nvidia-cublas": "cuda",
        "onnxruntime": "framework",
        "numpy": "framework",
        "leaf": "other",
        "helper": "other",
    }
