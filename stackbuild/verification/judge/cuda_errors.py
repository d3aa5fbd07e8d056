"""CUDA's driver-API errors in words, with whose fault they are.

Source: CUDA Driver API 13.0, ``CUresult``; CUDA Compatibility guide for 803 and 804.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stackbuild.findings import Verdict


@dataclass(frozen=True)
class CudaError:
    """One error: its name, what it says in a container, whose fault it is, and what to do."""

    name: str
    meaning: str
    verdict: Verdict
    next_step: str


_HOST = Verdict.ERROR
_IMAGE = Verdict.FAIL
SYSTEM_DRIVER_MISMATCH = 803
CUDA_ERRORS: Mapping[int, CudaError] = {
    2: CudaError(
        "CUDA_ERROR_OUT_OF_MEMORY",
        "the device has no memory left for a context",
        _HOST,
        "End what else runs on the GPU (nvidia-smi), and run again.",
    ),
    3: CudaError(
        "CUDA_ERROR_NOT_INITIALIZED",
        "the driver could not be initialised in this process",
        _HOST,
        "Reload the driver's kernel modules, or restart the host.",
    ),
    34: CudaError(
        "CUDA_ERROR_STUB_LIBRARY",
        "the libcuda that the loader finds is the toolkit's stub for linking, not the driver's",
        _IMAGE,
        "Take /usr/local/cuda/lib64/stubs out of LD_LIBRARY_PATH and ld.so.conf; never link to it in a system folder.",
    ),
    46: CudaError(
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "the devices are busy, or in an exclusive or prohibited compute mode",
        _HOST,
        "Look at nvidia-smi -q -d COMPUTE, and free the GPU.",
    ),
    100: CudaError(
        "CUDA_ERROR_NO_DEVICE",
        "libcuda is there and sees no device",
        _HOST,
        "Compare --gpus with nvidia-smi -L on the host; unset CUDA_VISIBLE_DEVICES in the image.",
    ),
    101: CudaError(
        "CUDA_ERROR_INVALID_DEVICE",
        "a device that was named is not there",
        _HOST,
        "Compare CUDA_VISIBLE_DEVICES and --gpus with nvidia-smi -L on the host.",
    ),
    304: CudaError(
        "CUDA_ERROR_OPERATING_SYSTEM",
        "the operating system refused the driver a call, most often a device node that is missing or not permitted",
        _HOST,
        "Look at the nodes under /dev in the finding device-nodes; load nvidia-uvm on the host (nvidia-modprobe -u).",
    ),
    801: CudaError(
        "CUDA_ERROR_NOT_SUPPORTED",
        "the driver does not support this on the device",
        _HOST,
        "Update the driver.",
    ),
    802: CudaError(
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the system is not ready: on hosts with NVSwitch the fabric manager does not run or is of another version",
        _HOST,
        "Start nvidia-fabricmanager in the driver's own version.",
    ),
    SYSTEM_DRIVER_MISMATCH: CudaError(
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "libcuda and the kernel module are of releases that do not fit each other",
        _IMAGE,
        "Take /usr/local/cuda/compat out of the loader's path; remove driver libraries from the image.",
    ),
    804: CudaError(
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "the image's compat libcuda was loaded on a GPU that does not support forward compatibility",
        _IMAGE,
        "Take /usr/local/cuda/compat out of the loader's path, or update the driver.",
    ),
    805: CudaError(
        "CUDA_ERROR_MPS_CONNECTION_FAILED",
        "the MPS control daemon cannot be reached",
        _HOST,
        "Start the MPS daemon and mount its pipe folder, or unset CUDA_MPS_PIPE_DIRECTORY.",
    ),
    999: CudaError(
        "CUDA_ERROR_UNKNOWN",
        "the driver gives no reason; most often /dev/nvidia-uvm is missing or its module is not loaded",
        _HOST,
        "Run nvidia-modprobe -u -c 0 on the host, and start the container again.",
    ),
}


# The same status where NVML says so too: its library comes from the host alone.
HOST_DRIVER_MISMATCH = CudaError(
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    "the host's driver libraries and its kernel module are of different releases, as NVML says too: the driver was "
    "updated and its old module is still loaded",
    _HOST,
    "Restart the host, or unload and load the nvidia kernel modules; then start the container again.",
)


def cuda_error(status: int) -> CudaError:
    """The error of a status; one that is not in the table is the host's and says its number."""
    return CUDA_ERRORS.get(
        status,
        CudaError(
            f"CUresult {status}",
            f"the driver answered error {status}",
            _HOST,
            "Look the number up in the CUDA Driver API's list of CUresult.",
        ),
    )
