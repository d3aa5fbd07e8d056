"""``stackbuild inspect``: what an image stands for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options

if TYPE_CHECKING:
    from stackbuild.publish.inspect import Inspection
    from stackbuild.publish.pin_list import PinList


@click.command("inspect")
@click.argument("image")
@output_options
def command(image: str, format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:  # noqa: ARG001
    """Show the pin list of an image that the Docker engine has.

    An image built on top of a stack is shown as derived from it, not as the stack itself.
    """
    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.errors import NotJudgedError
    from stackbuild.publish.inspect import inspect_image

    with project().engine() as engine:
        found = engine.image(image)
    if found is None:
        raise NotJudgedError(
            "the Docker engine has no such image",
            code="no-such-image",
            where=image,
            do="Build it with `stackbuild build`, or pull it first.",
        )
    inspection = inspect_image(image, found.labels, found.diff_ids)
    if format_ == "json":
        document = inspection.model_dump(mode="json", by_alias=True, exclude_none=True)
        write_result(json_text({"image-id": found.id, **document}), output)
    else:
        write_result(_table(inspection), output)


def _table(inspection: Inspection) -> str:
    lines = [f"{inspection.image}: {inspection.statement}"]
    pins = inspection.pins or inspection.derived_from
    if pins is not None:
        if inspection.relation == "derived":
            lines.append(f"What {pins.stack} stands for, below those layers:")
        rows = [row for row in _rows(pins) if row[1]]
        width = max(len(name) for name, _ in rows)
        lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    return "\n".join(lines) + "\n"


def _rows(pins: PinList) -> list[tuple[str, str | None]]:
    floor = pins.driver_floor
    torch = f"{pins.torch} ({pins.torch_variant})" if pins.torch_variant else pins.torch
    return [
        ("OS", pins.os),
        ("base", pins.base.name),
        ("base digest", pins.base.digest),
        ("glibc", pins.glibc),
        ("Python", pins.python),
        ("driver floor", f"{floor.version} (CUDA {floor.cuda_major})" if floor else None),
        ("CUDA", pins.cuda),
        ("cuDNN", pins.cudnn),
        ("NCCL", pins.nccl),
        ("torch", torch),
        (pins.onnxruntime_package or "onnxruntime", pins.onnxruntime),
        ("TensorRT", pins.tensorrt),
        *((f"code for ({name})", " ".join(codes)) for name, codes in pins.compute_capabilities.items()),
        ("lock", f"sha256:{pins.lock_sha256}"),
        ("files", f"sha256:{pins.files_sha256}" if pins.files_sha256 else None),
    ]
