"""``stackbuild inspect``: what an image stands for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options
from stackbuild.sizes import size_text

if TYPE_CHECKING:
    from stackbuild.annotate.inspect import Inspection
    from stackbuild.annotate.pin_list import PinList
    from stackbuild.cli.context import Project
    from stackbuild.publish.remote_inspection import InspectedPlatform, RemoteInspection


@click.command("inspect")
@click.argument("image", metavar="IMAGE")
@click.option("--remote", is_flag=True, help="Ask the registry, also for an image that the engine has.")
@output_options
def command(
    image: str,
    remote: bool,
    format_: str,
    output: Path | None,
    quiet: bool,  # noqa: ARG001
    verbose: bool,  # noqa: ARG001
) -> None:
    """Show the pin list of an image; from its registry also the SBOM and the verifications attached to it.

    An image that the engine has not and that names its registry is read there, without pulling it. An image
    built on top of a stack is shown as derived from it, not as the stack itself.
    """
    from stackbuild.cli.context import project

    here = project()
    if not remote and _in_engine(here, image, format_, output):
        return
    if not remote and not _names_registry(image):
        from stackbuild.errors import NotJudgedError

        raise NotJudgedError(
            "the Docker engine has no such image",
            code="no-such-image",
            where=image,
            do="Build it with `stackbuild build`, or say --remote to ask its registry.",
        )
    _from_registry(here, image, format_, output)


def _in_engine(here: Project, image: str, format_: str, output: Path | None) -> bool:
    """Show an image of the engine; False when there is none."""
    from stackbuild.annotate.inspect import inspect_image
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.errors import NotJudgedError

    try:
        with here.engine() as engine:
            found = engine.image(image)
    except NotJudgedError as error:
        if error.code != "engine-unreachable" or not _names_registry(image):
            raise
        return False  # no engine is no obstacle: the registry can answer
    if found is None:
        return False
    inspection = inspect_image(image, found.labels, found.diff_ids)
    if format_ == "json":
        document = inspection.model_dump(mode="json", by_alias=True, exclude_none=True)
        write_result(json_text({"image-id": found.id, **document}), output)
    else:
        write_result(_table(inspection), output)
    return True


def _from_registry(here: Project, image: str, format_: str, output: Path | None) -> None:
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.publish.remote_inspection import inspect_remote
    from stackbuild.registry.client import RegistryClient

    with RegistryClient(here.site.registries, ca_bundle=here.site.ca_bundle) as client:
        inspection = inspect_remote(client, image)
    if format_ == "json":
        document = inspection.model_dump(mode="json", by_alias=True, exclude_none=True)
        write_result(json_text(document), output)
    else:
        write_result(_remote_table(inspection), output)


def _names_registry(image: str) -> bool:
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost")


def _remote_table(found: RemoteInspection) -> str:
    lines = [f"{found.reference}: {found.digest}" + (" (index)" if found.index else "")]
    for platform in found.platforms:
        attached = _attached_rows(platform)
        if platform.inspection is not None:
            text = _table(platform.inspection, attached)
            lines.append(f"{platform.platform}: {text.partition(': ')[2].rstrip()}")
        else:
            lines.append(f"{platform.platform}: an image without pin list, not built by stackbuild")
            lines += _in_columns(attached)
    lines.append("A cosign signature lies beside it." if found.signed else "It is not signed.")
    return "\n".join(lines) + "\n"


def _attached_rows(platform: InspectedPlatform) -> list[tuple[str, str]]:
    rows = [("manifest", platform.digest), ("layers", f"{size_text(platform.size)} compressed")]
    sbom = platform.sbom
    rows.append(("SBOM", f"{sbom.format}, {sbom.components} components" if sbom else "none attached"))
    for result in platform.results:
        complete = "complete" if result.complete else "not complete"
        on = f", on {' '.join(result.gpus)}" if result.gpus else ""
        rows.append((result.kind, f"{result.verdict}, {complete}, {result.started}{on}"))
    if not platform.results:
        rows.append(("verification", "none attached"))
    return rows


def _table(inspection: Inspection, attached: Sequence[tuple[str, str]] = ()) -> str:
    """What an image stands for, with what is attached to it in the same columns below."""
    lines = [f"{inspection.image}: {inspection.statement}"]
    pins = inspection.pins or inspection.derived_from
    rows: list[tuple[str, str]] = []
    if pins is not None:
        if inspection.relation == "derived":
            lines.append(f"What {pins.stack} stands for, below those layers:")
        rows = [(name, value) for name, value in _rows(pins) if value]
    return "\n".join([*lines, *_in_columns([*rows, *attached])]) + "\n"


def _in_columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in rows]


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
        ("configuration", f"sha256:{pins.image_sha256}" if pins.image_sha256 else None),
    ]
