"""Which file the loader takes, and what it does not find; what real loaders do is ld.so(8)."""

from __future__ import annotations

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.scan.gates.cuda import judge_shadowed, judge_twice
from stackbuild.scan.gates.driver import judge_driver_libraries
from stackbuild.scan.gates.hygiene import judge_library_path
from stackbuild.scan.gates.needed import judge_needed
from stackbuild.scan.scan import Scan, scan_of
from tests.scan.test_contents import distribution
from tests.support.elf import make_elf
from tests.support.layer_tars import Content, image_files

SITE = "opt/venv/lib/python3.12/site-packages"
ORT = f"{SITE}/onnxruntime/capi/libonnxruntime_providers_cuda.so"


def scanned(files: dict[str, Content], **environment: str) -> Scan:
    return scan_of(image_files(files, Env=[f"{name}={value}" for name, value in environment.items()]))


def found(scan: Scan, user: str, name: str) -> tuple[str, str] | None:
    result = scan.loader.find(name, scan.libraries[user])
    return (result.path, result.by) if result else None


LIB = make_elf(soname="liba.so.1")


def user(**entries: str) -> bytes:
    return make_elf(soname="libuser.so", needed=["liba.so.1"], **entries)


@pytest.mark.parametrize(
    ("entries", "library_path", "expected"),
    [
        ({"rpath": "/opt/r"}, "/opt/l", ("opt/r/liba.so.1", "RPATH")),
        ({"runpath": "/opt/u"}, "/opt/l", ("opt/l/liba.so.1", "LD_LIBRARY_PATH")),
        ({"runpath": "/opt/u", "rpath": "/opt/r"}, "", ("opt/u/liba.so.1", "RUNPATH")),
        ({"runpath": "$ORIGIN/../u"}, "", ("opt/u/liba.so.1", "RUNPATH")),
        ({"runpath": "${ORIGIN}/nowhere"}, "", ("opt/c/liba.so.1", "ld.so.conf")),
    ],
)
def test_the_order_is_that_of_the_loader(
    entries: dict[str, str], library_path: str, expected: tuple[str, str]
):
    files: dict[str, Content] = {f"opt/{name}/liba.so.1": LIB for name in "rluc"}
    files |= {
        "opt/x/libuser.so": user(**entries),
        "usr/lib/liba.so.1": LIB,
        "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
        "etc/ld.so.conf.d/c.conf": "# a comment\n/opt/c\n",
    }
    scan = scanned(files, **({"LD_LIBRARY_PATH": library_path} if library_path else {}))
    assert found(scan, "opt/x/libuser.so", "liba.so.1") == expected


def test_rpath_of_what_loads_a_library_counts_for_it_too():
    """As torch 2.14's wheels have it: RPATH, which comes before LD_LIBRARY_PATH."""
    files: dict[str, Content] = {
        "opt/t/libtorch.so": make_elf(soname="libtorch.so", needed=["libcublas.so.13"], rpath="$ORIGIN/../n"),
        "opt/n/libcublas.so.13": make_elf(soname="libcublas.so.13", needed=["libcublasLt.so.13"]),
        "opt/n/libcublasLt.so.13": make_elf(soname="libcublasLt.so.13"),
        "opt/l/libcublasLt.so.13": make_elf(soname="libcublasLt.so.13"),
    }
    scan = scanned(files, LD_LIBRARY_PATH="/opt/l")
    assert found(scan, "opt/n/libcublas.so.13", "libcublasLt.so.13") == ("opt/n/libcublasLt.so.13", "RPATH")


def test_another_machine_is_passed_over():
    scan = scanned(
        {
            "opt/l/liba.so.1": make_elf(soname="liba.so.1", machine="aarch64"),
            "usr/lib/x86_64-linux-gnu/liba.so.1": LIB,
            "opt/x/libuser.so": user(),
        },
        LD_LIBRARY_PATH="/opt/l",
    )
    assert found(scan, "opt/x/libuser.so", "liba.so.1") == ("usr/lib/x86_64-linux-gnu/liba.so.1", "default")


def provider() -> bytes:
    return make_elf(
        soname="libonnxruntime_providers_cuda.so",
        needed=["libcublas.so.13", "libcudart.so.13", "libcuda.so.1", "libc.so.6"],
    )


WHEELS: dict[str, Content] = {
    "lib/x86_64-linux-gnu/libc.so.6": make_elf(soname="libc.so.6"),
    f"{SITE}/nvidia/cu13/lib/libcublas.so.13": make_elf(soname="libcublas.so.13"),
    f"{SITE}/nvidia/cu13/lib/libcudart.so.13": make_elf(soname="libcudart.so.13"),
}


def needed(scan: Scan) -> list[Finding]:
    return [*judge_needed(scan)]


def test_onnxruntimes_provider_must_find_cuda_without_torch():
    findings = needed(scanned({ORT: provider(), **WHEELS}))
    assert {finding.details["library"] for finding in findings} == {"libcublas.so.13", "libcudart.so.13"}
    assert {finding.verdict for finding in findings} == {Verdict.FAIL}
    assert all(f"/{SITE}/nvidia/cu13/lib" in finding.next_step for finding in findings)


def test_it_does_through_the_library_path():
    assert needed(scanned({ORT: provider(), **WHEELS}, LD_LIBRARY_PATH=f"/{SITE}/nvidia/cu13/lib")) == []


def test_without_cuda_it_is_said_what_brings_it():
    findings = needed(
        scanned({ORT: provider(), "lib/x86_64-linux-gnu/libc.so.6": make_elf(soname="libc.so.6")})
    )
    assert "onnxruntime-gpu[cuda,cudnn]" in findings[0].next_step


TENSORRT = {
    ORT.replace("_cuda", "_tensorrt"): make_elf(
        soname="libonnxruntime_providers_tensorrt.so", needed=["libnvinfer.so.10"]
    )
}


def test_what_an_optional_provider_lacks_is_a_warning_where_it_is_wanted():
    """Who installs TensorRT wants the provider, and here it is of another major."""
    files = {**TENSORRT, "usr/lib/libnvinfer.so.8": make_elf(soname="libnvinfer.so.8")}
    (finding,) = needed(scanned(files))
    assert finding.verdict is Verdict.WARN
    assert finding.details["library"] == "libnvinfer.so.10"


def test_what_optional_parts_lack_is_told_and_no_warning():
    """As the real wheels have them: torch needs NVSHMEM, and nobody here its transports."""
    folder = f"{SITE}/nvidia/nvshmem/lib"
    files = {
        **TENSORRT,
        f"{folder}/nvshmem_transport_ucx.so.3": make_elf(soname="t.so", needed=["libucp.so.0"]),
        f"{folder}/nvshmem_bootstrap_mpi.so.3": make_elf(soname="m.so", needed=["libmpi.so.40"]),
        f"{SITE}/nvidia/cu13/lib/libcufile_rdma.so.1": make_elf(soname="r.so", needed=["libmlx5.so.1"]),
    }
    (finding,) = needed(scanned(files))
    assert (finding.verdict, finding.details["note"]) == (Verdict.PASS, "optional")
    assert finding.details["missing"] == ["libmlx5.so.1", "libmpi.so.40", "libnvinfer.so.10", "libucp.so.0"]
    assert len(finding.details["users"]) == 4


def test_what_an_optional_part_and_another_library_lack_is_a_warning():
    files = {
        f"{SITE}/nvidia/cu13/lib/libcufile_rdma.so.1": make_elf(soname="r.so", needed=["libmlx5.so.1"]),
        f"{SITE}/pkg/_c.so": make_elf(soname="_c.so", needed=["libmlx5.so.1"]),
    }
    (finding,) = needed(scanned(files))
    assert finding.verdict is Verdict.WARN
    assert f"{SITE}/pkg/_c.so" in finding.details["users"]


def test_libraries_that_another_package_loads_first_count_as_there():
    files: dict[str, Content] = {
        f"{SITE}/torch/lib/libtorch.so": make_elf(soname="libtorch.so"),
        f"{SITE}/torchvision/_C.so": make_elf(soname="_C.so", needed=["libtorch.so"]),
    }
    assert needed(scanned(files)) == []


def test_the_drivers_own_libraries_are_the_hosts():
    assert (
        needed(scanned({"opt/x.so": make_elf(soname="x.so", needed=["libcuda.so.1", "libnvidia-ml.so.1"])}))
        == []
    )


def test_a_shadow_of_another_cublas_fails():
    record = "nvidia/cublas/lib/libcublas.so.12,,\n"
    files: dict[str, Content] = {
        "usr/local/cuda/lib64/libcublas.so.12.4.2.65": make_elf(soname="libcublas.so.12"),
        "usr/local/cuda/lib64/libcublas.so.12": "-> libcublas.so.12.4.2.65",
        f"{SITE}/torch/lib/libt.so": make_elf(
            soname="libt.so", needed=["libcublas.so.12"], runpath="$ORIGIN/../../nvidia/cublas/lib"
        ),
        f"{SITE}/nvidia/cublas/lib/libcublas.so.12": make_elf(soname="libcublas.so.12"),
        f"{SITE}/nvidia_cublas_cu12-12.8.4.1.dist-info/METADATA": "Name: nvidia-cublas-cu12\nVersion: 12.8.4.1\n\n",
        f"{SITE}/nvidia_cublas_cu12-12.8.4.1.dist-info/RECORD": record,
    }
    assert [*judge_shadowed(scanned(files))] == []
    (finding,) = judge_shadowed(scanned(files, LD_LIBRARY_PATH="/usr/local/cuda/lib64"))
    assert (finding.code, finding.verdict) == ("cuda-library-shadowed", Verdict.FAIL)
    assert finding.required == f"12.8.4.1 at /{SITE}/nvidia/cublas/lib/libcublas.so.12"


def test_dead_folders_of_the_library_path_and_empty_ones():
    scan = scanned(
        {"opt/l": None, "usr/local/cuda": "-> cuda-12", "usr/local/cuda-12/lib64": None},
        LD_LIBRARY_PATH="/opt/l:/opt/gone:/usr/local/nvidia/lib64::/usr/local/cuda/lib64",
    )
    assert [(finding.subject, finding.measured) for finding in judge_library_path(scan)] == [
        ("/opt/gone", "not in the image"),
        ("LD_LIBRARY_PATH", "an empty entry"),
    ]


def test_a_compat_library_on_the_path_is_no_driver_in_the_image():
    from pathlib import Path

    data = (Path(__file__).parent / "fixtures/compat_libcuda.so").read_bytes()
    scan = scanned(
        {"usr/local/cuda-13.1/compat/libcuda.so.590.44.01": data},
        LD_LIBRARY_PATH="/usr/local/cuda-13.1/compat",
    )
    assert [*judge_driver_libraries(scan)] == []
    (item,) = scan.driver
    assert (item.place, item.version, item.cuda, item.branches) == (
        "compat",
        "590.44.01",
        "13.1",
        (535, 550, 570, 580),
    )


def test_a_stubs_folder_on_the_path_is():
    stub = make_elf(soname="libcuda.so.1")
    scan = scanned({"opt/stubs/libcuda.so": stub}, LD_LIBRARY_PATH="/opt/stubs")
    (finding,) = judge_driver_libraries(scan)
    assert finding.code == "stub-on-runtime-path"


def twice(scan: Scan) -> list[Finding]:
    return [*judge_twice(scan)]


def triton_and_torch(**environment: str) -> Scan:
    """As torch 2.14 and Triton 3.8 are: Triton brings CUPTI for itself, of each version three equal files."""
    cupti, other = make_elf(soname="libcupti.so.13"), make_elf(soname="libcupti.so.13") + b"newer"
    private = {f"triton/lib/cupti/libcupti.so{end}": other for end in ("", ".13", ".2026.2.0")}
    return scanned(
        {
            **distribution("nvidia-cuda-cupti", "13.0.85", {"nvidia/cu13/lib/libcupti.so.13": cupti}, SITE),
            **distribution("triton", "3.8.0", private, SITE),
            f"{SITE}/torch/lib/libtorch_cpu.so": make_elf(
                soname="libtorch_cpu.so", needed=["libcupti.so.13"], rpath="$ORIGIN/../../nvidia/cu13/lib"
            ),
        },
        **environment,
    )


def test_copies_that_a_package_brings_for_itself_are_no_alarm():
    scan = triton_and_torch()
    assert [*judge_shadowed(scan)] == []
    assert twice(scan) == []
    assert {(item.path.rsplit("/", 1)[-1], item.version) for item in scan.cuda} == {
        ("libcupti.so.13", "13.0.85"),
        ("libcupti.so", "2026.2.0"),
        ("libcupti.so.13", "2026.2.0"),
        ("libcupti.so.2026.2.0", "2026.2.0"),
    }


def test_such_copies_count_once_a_path_leads_to_them():
    scan = triton_and_torch(LD_LIBRARY_PATH=f"/{SITE}/triton/lib/cupti")
    (finding,) = twice(scan)
    assert [copy["version"] for copy in finding.details["copies"]] == ["13.0.85", "2026.2.0"]
    assert [*judge_shadowed(scan)] == []  # torch's own RPATH comes first


def test_a_package_that_gets_its_copy_from_elsewhere_than_it_was_linked_to_is_told():
    """Two cuDNNs in one environment: torch's own, and the one that the path puts before it."""
    mine, other = make_elf(soname="libcudnn.so.8"), make_elf(soname="libcudnn.so.8") + b"other"
    files: dict[str, Content] = {
        **distribution("torch", "2.1.0", {"torch/lib/libcudnn.so.8": mine}, SITE),
        **distribution("nvidia-cudnn-cu11", "8.5.0.96", {"nvidia/cudnn/lib/libcudnn.so.8": other}, SITE),
        f"{SITE}/torch/lib/libtorch.so": make_elf(
            soname="libtorch.so", needed=["libcudnn.so.8"], runpath="$ORIGIN"
        ),
    }
    assert [*judge_shadowed(scanned(files))] == []
    (finding,) = judge_shadowed(scanned(files, LD_LIBRARY_PATH=f"/{SITE}/nvidia/cudnn/lib"))
    assert (finding.code, finding.verdict) == ("cudnn-shadowed", Verdict.FAIL)
    assert finding.details["taken_version"] == "8.5.0.96"
    assert len(twice(scanned(files))) == 1


def test_cusparselt_is_not_cusparse():
    files = {"nvidia/lib/libcusparse.so.12": make_elf(soname="libcusparse.so.12")}
    lt = {"nvidia/lt/libcusparseLt.so.0": make_elf(soname="libcusparseLt.so.0")}
    scan = scanned(
        {
            **distribution("nvidia-cusparse", "12.6.3.3", files, SITE),
            **distribution("nvidia-cusparselt-cu13", "0.8.1", lt, SITE),
        }
    )
    assert [(item.family, item.version) for item in scan.cuda] == [
        ("cusparse", "12.6.3.3"), ("cusparselt", "0.8.1"),
    ]  # fmt: skip
    assert twice(scan) == []
