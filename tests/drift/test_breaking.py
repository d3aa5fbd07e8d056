"""Which moves break the users of an image."""

from __future__ import annotations

import pytest

from stackbuild.drift.breaking import package_breaks, pin_breaks

OLD = "cuda>=12.6 brand=tesla,driver>=535,driver<536"
BREAKING = [
    ("os", "debian 12", "debian 13", "Another release"),
    ("glibc", "2.39", "2.36", "newer glibc"),
    ("python", "3.11.2", "3.12.3", "one minor version"),
    ("python", "3.11.2", "", "Python is gone"),
    ("driver_floor", "525.60.13", "580.65.06", "older than 580.65.06"),
    ("driver_floor", "", "525.60.13", "older than 525.60.13"),
    ("cuda", "12.8.1", "13.0.0", "CUDA 12 became 13"),
    ("cuda", "12.8", "", "CUDA is gone"),
    ("cudnn", "8.9.7", "9.1.0.70", "cuDNN 8 became 9"),
    ("tensorrt", "10.3.0", "10.4.0", "tied to the version"),
    ("torch", "2.12.1", "2.13.0", "compiled again"),
    ("torch_variant", "cu126", "cpu", "another CUDA, or for none"),
    ("onnxruntime_package", "onnxruntime-gpu", "onnxruntime", "execution providers"),
    ("compute_capabilities torch", "sm_70 sm_80 compute_90", "sm_80 compute_90", "no code for sm_70"),
    ("compute_capabilities torch", "sm_70", "", "no GPU code"),
    ("env NVIDIA_REQUIRE_CUDA", OLD, "cuda>=13.0", "refuse to start"),
    ("env NVIDIA_REQUIRE_CUDA", "", "cuda>=13.0", "refuse to start"),
    ("env NVIDIA_REQUIRE_CUDA", OLD, "no comparison", "another requirement"),
    ("env NVIDIA_DRIVER_CAPABILITIES", "compute,utility", "compute", "driver's utility"),
    ("env LD_LIBRARY_PATH", "/a:/b", "/b", "/a is no longer searched"),
    ("env HF_HOME", "/cache", "", "no longer find it"),
    ("entrypoint", "", '["/x"]', "Another program"),
    ("user", "", "1001", "Another user"),
    ("ports", "80/tcp, 90/tcp", "90/tcp", "Ports 80/tcp"),
]
HARMLESS = [
    ("glibc", "2.36", "2.39"),
    ("python", "3.11.2", "3.11.9"),
    ("python", "", "3.11.9"),
    ("driver_floor", "580.65.06", "525.60.13"),
    ("driver_floor", "525.60.13", ""),
    ("cuda", "12.6.3", "12.8.1"),
    ("cudnn", "9.1.0", "9.8.0"),
    ("torch", "2.13.0", "2.13.1"),
    ("base_digest", "sha256:1", "sha256:2"),
    ("compute_capabilities torch", "sm_80", "sm_80 sm_90"),
    ("env NVIDIA_REQUIRE_CUDA", OLD, f"{OLD} brand=tesla,driver>=550,driver<551"),
    ("env NVIDIA_REQUIRE_CUDA", OLD, ""),
    ("env NVIDIA_DRIVER_CAPABILITIES", "compute", "all"),
    ("env NV_CUDA_CUDART_VERSION", "12.6.77-1", ""),
    ("env HF_HOME", "", "/cache"),
    ("label team", "a", "b"),
    ("healthcheck", "", "x"),
]


@pytest.mark.parametrize(("pin", "before", "after", "why"), BREAKING)
def test_a_move_that_breaks_says_why(pin: str, before: str, after: str, why: str) -> None:
    assert why in pin_breaks(pin, before, after)


@pytest.mark.parametrize(("pin", "before", "after"), HARMLESS)
def test_a_move_that_breaks_nobody_is_not_called_so(pin: str, before: str, after: str) -> None:
    assert pin_breaks(pin, before, after) == ""


@pytest.mark.parametrize(
    ("before", "after", "breaks"),
    [
        ("1.26.4", "2.0.0", True),
        ("2.0.0", "1.26.4", True),
        ("2.0.0", "2.1.0", False),
        ("2025.1", "2026.9.0", False),  # a calendar promises nothing
        ("1.2", "", True),
        ("", "1.2", False),
        ("7:6.1", "7:7.1", True),  # an epoch is no version
        ("1:6.1", "2:6.2", False),
        ("unknown", "1.0", False),
    ],
)
def test_a_packages_major_version_counts(before: str, after: str, breaks: bool) -> None:
    assert bool(package_breaks("thing", before, after)) is breaks
