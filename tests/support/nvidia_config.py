"""The configuration of the real nvidia/cuda base images, for stand-ins.

Source: NVIDIA's published image configurations as captured for the compatibility facts of 2026-11-30
(env, labels and NVIDIA_REQUIRE_CUDA of the ``base`` flavour; corroborated for 12.4 and 12.8, one capture for
13.0; 12.6 by the pattern of its neighbours; of 11.8 the branch that all captures name).
"""

from __future__ import annotations

import re
from typing import Any

_BRANDS = (
    *("unknown", "grid", "tesla", "nvidia", "quadro", "quadrortx", "nvidiartx"),
    *("vapps", "vpc", "vcs", "vws", "cloudgaming"),
)
# Up to 12.4 the GeForce brands are among them.
_BRANDS_TO_12_4 = (
    *("tesla", "unknown", "nvidia", "nvidiartx", "geforce", "geforcertx"),
    *("quadro", "quadrortx", "titan", "titanrtx"),
)
# Driver branches that NVIDIA_REQUIRE_CUDA of each toolkit allows beside drivers that have the CUDA itself.
_BRANCHES = {
    "11.8": (470,),
    "12.4": (470, 525, 535),
    "12.6": (470, 535, 550),
    "12.8": (470, 535, 550, 560, 565),
    "13.0": (535, 550, 565, 570, 575),
}
_CUDART = {
    "11.8": "11.8.89-1",
    "12.4": "12.4.127-1",
    "12.6": "12.6.77-1",
    "12.8": "12.8.90-1",
    "13.0": "13.0.96-1",
}


def require_cuda(toolkit: str) -> str:
    """NVIDIA_REQUIRE_CUDA of a toolkit such as ``13.0``."""
    terms = [f"cuda>={toolkit}"]
    brands = _BRANDS_TO_12_4 if toolkit in ("11.8", "12.4") else _BRANDS
    for branch in _BRANCHES[toolkit]:
        terms += [f"brand={brand},driver>={branch},driver<{branch + 1}" for brand in brands]
    return " ".join(terms)


def nvidia_configuration(tag: str) -> dict[str, Any]:
    """The inner ``config`` of an ``X.Y.Z-base-ubuntuNN.NN`` tag on linux/amd64."""
    match = re.match(r"(\d+\.\d+)\.\d+-base-", tag)
    assert match, f"not a base tag: {tag}"
    version, toolkit = tag.split("-")[0], match.group(1)
    return {
        "Env": [
            "PATH=/usr/local/nvidia/bin:/usr/local/cuda/bin:"
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "NVARCH=x86_64",
            f"NVIDIA_REQUIRE_CUDA={require_cuda(toolkit)}",
            f"NV_CUDA_CUDART_VERSION={_CUDART[toolkit]}",
            f"NV_CUDA_COMPAT_PACKAGE=cuda-compat-{toolkit.replace('.', '-')}",
            f"CUDA_VERSION={version}",
            "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
            "NVIDIA_VISIBLE_DEVICES=all",
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ],
        "Cmd": ["/bin/bash"],
        "Labels": {
            "maintainer": "NVIDIA CORPORATION <cudatools@nvidia.com>",
            "org.opencontainers.image.ref.name": "ubuntu",
            "org.opencontainers.image.version": tag.rsplit("ubuntu", 1)[-1],
        },
    }
