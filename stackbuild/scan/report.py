"""A scan as a report: the findings, and what the image holds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from stackbuild.counting import counted
from stackbuild.findings import Finding, is_complete
from stackbuild.scan.contents.python import PythonDistribution
from stackbuild.scan.elf_record import Library
from stackbuild.scan.scan import Scan
from stackbuild.sizes import size_text


class ReportModel(BaseModel):
    """Base of the models in a scan report: frozen, hyphens in the JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=lambda name: name.replace("_", "-"),
        # Only the whole report is written, and its parts are built with it.
        defer_build=True,
    )


class ScannedImage(ReportModel):
    """Which image was scanned."""

    name: str
    platform: str
    config_digest: str = Field(
        default="", description="empty where the source does not have the configuration's bytes"
    )
    diff_ids: tuple[str, ...]


class LayerSize(ReportModel):
    """One layer, from the bottom."""

    diff_id: str
    size: int = Field(description="bytes of its files")
    files: int
    hidden: int = Field(description="bytes of its files that later layers delete or replace")
    created_by: str = ""


class PackageEntry(ReportModel):
    """A package of the distribution or of conda."""

    kind: str = Field(description="deb, rpm, apk or conda")
    name: str
    version: str
    architecture: str = ""
    layer: int


class DistributionEntry(ReportModel):
    """A Python distribution, with its files held against its RECORD."""

    name: str
    version: str
    environment: str
    vendored: bool
    layer: int
    files: int = Field(description="files that its RECORD names; 0 without one")
    missing: int
    changed: int


class CudaEntry(ReportModel):
    """A CUDA library."""

    family: str
    path: str
    soname: str
    version: str
    owner: str = ""
    layer: int
    size: int


class DriverEntry(ReportModel):
    """A file with the name of a library of the NVIDIA driver."""

    path: str
    place: str = Field(description="compat, stub or driver")
    version: str = ""
    cuda: str = Field(default="", description="of a compat library: the CUDA level its note gives")
    branches: tuple[int, ...] = Field(
        default=(), description="of a compat library: host driver branches it serves"
    )


class GpuCodeEntry(ReportModel):
    """The GPU code of one library: architecture → number of entries."""

    path: str
    owner: str = ""
    cubins: dict[str, int]
    ptx: dict[str, int]
    damaged: bool = False
    empty: bool = Field(
        default=False, description="it holds no kernel: what a compiler leaves behind, which is not judged"
    )


class ElfEntry(ReportModel):
    """One ELF file, as the loader reads it."""

    path: str
    machine: str
    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    build_id: str = ""
    glibc: str = Field(default="", description="the newest symbol version of glibc it needs")


class ScanReport(ReportModel):
    """The result of scanning one image."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["scan"] = "scan"
    image: ScannedImage
    os: str
    glibc: str
    findings: tuple[Finding, ...]
    complete: bool = Field(description="no gate that applies was SKIP or ERROR")
    unknown: tuple[str, ...] = Field(description="what this scan cannot know or could not read")
    layers: tuple[LayerSize, ...]
    packages: tuple[PackageEntry, ...]
    python: tuple[DistributionEntry, ...]
    cuda: tuple[CudaEntry, ...]
    driver: tuple[DriverEntry, ...]
    gpu_code: tuple[GpuCodeEntry, ...]
    elf: tuple[ElfEntry, ...]
    large_files: dict[str, int] = Field(description="path → bytes, from 100 MB on")
    set_uid: tuple[str, ...]
    owners: dict[str, int] = Field(description="bytes by owner, largest first")

    @property
    def title(self) -> str:
        """What was judged, in one line."""
        return f"scan {self.image.name}"

    @property
    def headline(self) -> tuple[tuple[str, str], ...]:
        """What a reader must know beside the findings."""
        installed = [item for item in self.python if not item.vendored]
        size = sum(layer.size for layer in self.layers)
        rows = [
            ("platform", self.image.platform),
            ("OS", f"{self.os or 'unknown'}{f', glibc {self.glibc}' if self.glibc else ''}"),
            ("packages", f"{len(self.packages)} of the system, {len(installed)} of Python"),
            ("size", f"{size_text(size)} in {counted(len(self.layers), 'layer')}"),
        ]
        families = sorted({f"{item.family} {item.version}".strip() for item in self.cuda if item.version})
        if families:
            rows.append(("CUDA", ", ".join(families)))
        kernels = [item for item in self.gpu_code if not item.empty]
        code = sorted({name for item in kernels for name in (*item.cubins, *item.ptx)})
        if code:
            rows.append(("GPU code", f"{' '.join(_in_order(code))} in {counted(len(kernels), 'file')}"))
        rows.extend(("unknown", sentence) for sentence in self.unknown[:5])
        return tuple(rows)


def _in_order(names: list[str]) -> list[str]:
    from stackbuild.scan.fatbin import architecture_order

    return sorted(names, key=lambda name: (name.partition("_")[0] != "sm", architecture_order(name)))


def scan_report(scan: Scan, findings: tuple[Finding, ...]) -> ScanReport:
    """The report of a scan that was judged."""
    # Built without checks: there can be thousands of entries, and every value comes from the scan as it is.
    files = scan.files
    description = files.description
    hidden: dict[int, int] = {}
    for item in files.hidden:
        hidden[item.layer] = hidden.get(item.layer, 0) + item.size
    commands = description.commands or ("",) * len(files.layers)
    return ScanReport.model_construct(
        image=ScannedImage.model_construct(
            name=scan.name,
            platform=description.platform,
            config_digest=description.config_digest,
            diff_ids=description.diff_ids,
        ),
        os=scan.os.pretty_name or f"{scan.os.id} {scan.os.version_id}".strip(),
        glibc=scan.glibc,
        findings=findings,
        complete=is_complete(findings),
        unknown=scan.unknown,
        layers=tuple(
            LayerSize.model_construct(
                diff_id=diff_id,
                size=layer.size,
                files=len(layer.entries),
                hidden=hidden.get(number, 0),
                created_by=command[:200],
            )
            for number, (diff_id, layer, command) in enumerate(
                zip(description.diff_ids, files.layers, commands, strict=True)
            )
        ),
        packages=tuple(
            PackageEntry.model_construct(
                kind=item.kind,
                name=item.name,
                version=item.version,
                architecture=item.architecture,
                layer=item.layer,
            )
            for item in scan.packages
        ),
        python=tuple(_distribution(item) for item in scan.python.distributions),
        cuda=tuple(
            CudaEntry.model_construct(
                family=item.family,
                path=item.path,
                soname=item.soname,
                version=item.version,
                owner=item.owner,
                layer=item.layer,
                size=item.size,
            )
            for item in scan.cuda
        ),
        driver=tuple(
            DriverEntry.model_construct(
                path=item.path, place=item.place, version=item.version, cuda=item.cuda, branches=item.branches
            )
            for item in scan.driver
        ),
        gpu_code=tuple(
            _gpu_code(scan, library) for library in scan.libraries.values() if library.gpu is not None
        ),
        elf=tuple(_elf(library) for library in scan.libraries.values()),
        large_files={item.path: item.size for item in scan.large_files},
        set_uid=tuple(item.path for item in scan.privileged_files),
        owners=scan.owners,
    )


def _distribution(item: PythonDistribution) -> DistributionEntry:
    return DistributionEntry.model_construct(
        name=item.name,
        version=item.version,
        environment=item.environment,
        vendored=item.vendored,
        layer=item.layer,
        files=item.record.listed,
        missing=len(item.record.missing),
        changed=len(item.record.changed),
    )


def _gpu_code(scan: Scan, library: Library) -> GpuCodeEntry:
    owner = scan.python.owner(library.path)
    code = library.gpu
    assert code is not None
    return GpuCodeEntry.model_construct(
        path=library.path,
        owner=f"{owner.name} {owner.version}" if owner else "",
        cubins=dict(code.cubins),
        ptx=dict(code.ptx),
        damaged=code.damaged,
        empty=code.empty,
    )


def _elf(library: Library) -> ElfEntry:
    return ElfEntry.model_construct(
        path=library.path,
        machine=library.elf.machine,
        soname=library.elf.soname,
        needed=library.elf.needed,
        rpath=library.elf.rpath,
        runpath=library.elf.runpath,
        build_id=library.elf.build_id,
        glibc=library.elf.needs_version("GLIBC_"),
    )
