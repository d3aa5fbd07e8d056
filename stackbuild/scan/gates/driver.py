"""Gates ``driver-lib-in-image`` and ``stub-on-runtime-path``: the driver's libraries come from the host.

NVIDIA Container Toolkit, architecture overview: the driver's user-mode libraries are mounted into the
container when it starts, and must be those of the host's kernel module.
"""

from __future__ import annotations

from collections.abc import Iterator

from stackbuild.findings import Finding, Verdict
from stackbuild.scan.contents.cuda import DriverLibrary
from stackbuild.scan.scan import Scan


def judge_driver_libraries(scan: Scan) -> Iterator[Finding]:
    """Every driver library that is not forward compatibility's or a stub to link against."""
    folders = dict(reversed(scan.loader.searched_folders(scan.machine)))
    for item in scan.driver:
        if item.place == "driver":
            yield _baked_in(item)
        elif item.place == "stub":
            folder = item.path.rpartition("/")[0]
            real = scan.files.resolve(folder) or folder
            why = next(
                (why for path, why in folders.items() if (scan.files.resolve(path) or path) == real), None
            )
            if why is not None:
                yield _stub(item, why)


def _baked_in(item: DriverLibrary) -> Finding:
    release = f" of driver {item.version}" if item.version else ""
    return Finding(
        code="driver-lib-in-image",
        verdict=Verdict.FAIL,
        subject=f"/{item.path}",
        measured=f"layer {item.layer}{release}",
        required="no driver library outside compat and stubs folders",
        summary=f"/{item.path} is a library{release} of the NVIDIA driver; the host brings its own when the container "
        "starts, and the two disagree on every host with another driver.",
        next_step="Leave the driver's packages (libnvidia-*, nvidia-utils, cuda-drivers) out of the image, and build with "
        "the default runtime runc.",
        details={"path": item.path, "target": item.target, "driver": item.version, "layer": item.layer},
    )


def _stub(item: DriverLibrary, why: str) -> Finding:
    return Finding(
        code="stub-on-runtime-path",
        verdict=Verdict.FAIL,
        subject=f"/{item.path}",
        measured=f"found through {why}" + (f", leads to /{item.target}" if item.target else ""),
        required="stubs outside the loader's path",
        summary=f"/{item.path} is a stub to link against, and the loader finds it ({why}): programs get it in place of "
        "the host's driver and fail.",
        next_step="Remove the link or the folder from the path; pass -L/usr/local/cuda/lib64/stubs to the linker only.",
        details={"path": item.path, "target": item.target, "by": why, "layer": item.layer},
    )
