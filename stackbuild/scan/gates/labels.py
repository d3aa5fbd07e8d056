"""Gate ``labels-untrue``: what an image says of itself, against what is in it."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from stackbuild.annotate.inspect import inspect_image
from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.annotate.pin_list import PinList
from stackbuild.compat.versions import parse_cuda
from stackbuild.errors import NotJudgedError
from stackbuild.findings import Finding, Verdict
from stackbuild.scan.gates.packages import is_version
from stackbuild.scan.scan import Scan


def judge_labels(scan: Scan) -> Iterator[Finding]:
    """The pin list, and CUDA_VERSION as NVIDIA's bases set it."""
    description = scan.files.description
    if PINS_LABEL in description.labels:
        try:
            inspection = inspect_image(scan.name, description.labels, description.diff_ids)
        except NotJudgedError as error:
            yield Finding(
                code="labels-untrue",
                verdict=Verdict.ERROR,
                subject=PINS_LABEL,
                summary=f"The pin list cannot be read: {error.what}.",
                next_step=error.do,
            )
        else:
            if inspection.relation == "different":
                yield _untrue(
                    "the layers",
                    "other layers than the pin list records",
                    "the recorded layers",
                    inspection.statement,
                )
            elif inspection.pins is not None:
                yield from _pins(scan, inspection.pins)
    yield from _cuda_version(scan)


def _pins(scan: Scan, pins: PinList) -> Iterator[Finding]:
    for name, stated, measured in _compared(scan, pins):
        if measured and not _agree(stated, measured):
            yield _untrue(
                name, measured, stated, f"the pin list says {name} {stated}, and the image has {measured}"
            )


def _compared(scan: Scan, pins: PinList) -> Iterator[tuple[str, str, str]]:
    """What the pin list says, as (name, said, found); found is empty where nothing was found to compare."""
    installed = {item.key: item.version for item in scan.python.installed}
    yield "os", pins.os, f"{scan.os.id} {scan.os.version_id}".strip()
    yield "glibc", pins.glibc, scan.glibc
    torch = installed.get("torch", "")
    if pins.torch and (not torch or is_version(torch)):
        yield "torch", pins.torch, Version(torch).public if torch else "no torch"
        local = Version(torch).local if torch else None
        yield "torch variant", pins.torch_variant or "", local or ""
    if pins.onnxruntime and pins.onnxruntime_package:
        package = pins.onnxruntime_package
        yield package, pins.onnxruntime, installed.get(package, f"no {package}")
    for name, stated in (("cudnn", pins.cudnn), ("nccl", pins.nccl), ("tensorrt", pins.tensorrt)):
        found = {item.version for item in scan.cuda if item.family == name and item.is_main}
        if stated and len(found) == 1:
            yield name, stated, found.pop()


def _cuda_version(scan: Scan) -> Iterator[Finding]:
    """NVIDIA's images set CUDA_VERSION; a runtime beside it that is no wheel's must be of that release."""
    stated = scan.files.description.environment.get("CUDA_VERSION", "")
    if not stated[:1].isdigit():
        return
    for item in scan.cuda:
        if item.family == "cudart" and not item.owner and item.version.count(".") > 1:
            measured = parse_cuda(item.version)
            if measured != parse_cuda(stated):
                yield _untrue(
                    "CUDA_VERSION",
                    f"CUDA {measured} at /{item.path}",
                    f"CUDA {stated}",
                    f"CUDA_VERSION says {stated}, and the runtime in the image is {item.version}",
                )


def _agree(stated: str, measured: str) -> bool:
    """One may be written longer than the other: ``9.1.0`` and ``9.1.0.70``."""
    shorter, longer = sorted((stated.split("."), measured.split(".")), key=len)
    return longer[: len(shorter)] == shorter


def _untrue(subject: str, measured: str, required: str, why: str) -> Finding:
    return Finding(
        code="labels-untrue",
        verdict=Verdict.FAIL,
        subject=subject,
        measured=measured,
        required=required,
        summary=f"The image says of itself what is not so: {why}.",
        next_step="Build it again from its lock; labels must come from what is installed.",
    )
