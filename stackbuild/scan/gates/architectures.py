"""Gate ``arch-not-covered`` over every library with GPU code; the rule is that of ``compat.architecture``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stackbuild.compat.architecture import covering_advice, judge_architecture
from stackbuild.compat.subject import CudaComponent, GpuOffer, HostOffer
from stackbuild.compat.versions import ComputeCapability, CudaVersion, parse_variant
from stackbuild.counting import counted
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.scan.contents.python import PythonDistribution
from stackbuild.scan.elf_record import Library
from stackbuild.scan.scan import Scan
from stackbuild.spec.known_frameworks import KNOWN_FRAMEWORKS


def judge_architectures(scan: Scan, target: HostOffer | None, facts: Facts) -> Iterator[Finding]:
    """Every library with GPU code against every GPU of the target.

    Args:
        scan: The image.
        target: The GPUs and the oldest driver it must run on; None when nobody named any.
        facts: For the next step, and what torch's variants mean.
    """
    with_code = [library for library in scan.libraries.values() if library.kernels is not None]
    if not with_code:
        return
    if target is None or not target.gpus:
        yield Finding(
            code="arch-not-covered",
            verdict=Verdict.SKIP,
            subject=f"{counted(len(with_code), 'library', 'libraries')} with GPU code",
            summary="No GPU is named that the image must run on, so the architectures of its libraries were not judged.",
            next_step="Name GPUs with --gpu, or a stack that has target.gpus.",
        )
        return
    for gpu in target.gpus:
        findings = [_judged(scan, library, gpu, target, facts) for library in with_code]
        yield from (finding for finding in findings if finding.verdict is not Verdict.PASS)
        passed = [finding for finding in findings if finding.verdict is Verdict.PASS]
        if passed:
            yield _covered(gpu, passed)


def _judged(scan: Scan, library: Library, gpu: GpuOffer, target: HostOffer, facts: Facts) -> Finding:
    owner = scan.python.owner(library.path)
    code = library.kernels
    assert code is not None
    component = CudaComponent(
        library.name,
        f"({owner.name} {owner.version})" if owner else "",
        _cuda_of(owner, scan, facts),
        code.sm,
        code.compute,
    )
    finding = judge_architecture(component, gpu, target.max_cuda, facts)
    details = {**finding.details, "path": library.path, "sm": list(code.sm), "ptx": list(code.compute)}
    if code.damaged:
        details["note"] = "the GPU code is damaged; what could be read was judged"
    update: dict[str, object] = {"details": details}
    if finding.code == "arch-not-covered" and finding.verdict is Verdict.FAIL and gpu.compute_capability:
        update["next_step"] = _advice(owner, component, gpu.compute_capability, facts)
    return finding.model_copy(update=update)


def _advice(
    owner: PythonDistribution | None, component: CudaComponent, device: ComputeCapability, facts: Facts
) -> str:
    """Of a known framework another build; of what was compiled here or by anybody, how to compile it."""
    number = device.sm.removeprefix("sm_")
    compile_again = (
        f'Compile it again with TORCH_CUDA_ARCH_LIST="{device}" (an extension of PyTorch), '
        f"-DCMAKE_CUDA_ARCHITECTURES={number} (CMake) or -gencode arch=compute_{number},code={device.sm} (nvcc): "
        "where no GPU is seen, as in docker build, compilers take a default list."
    )
    if owner is None:
        return compile_again
    if owner.key in KNOWN_FRAMEWORKS or owner.key.startswith("nvidia-"):
        return covering_advice(replace(component, name=owner.key, version=owner.version), device, facts)
    return f"Use a release of {owner.name} built for {device.sm}. {compile_again.replace('it', 'a source release', 1)}"


def _cuda_of(owner: PythonDistribution | None, scan: Scan, facts: Facts) -> CudaVersion | None:
    if owner is None or owner.key != "torch" or scan.machine not in ("x86_64", "aarch64"):
        return None
    variant = facts.torch_variant_of(owner.version, scan.machine)
    return parse_variant(variant) if variant else None


def _covered(gpu: GpuOffer, passed: Sequence[Finding]) -> Finding:
    slow = [finding for finding in passed if finding.details.get("note") == "ptx-jit"]
    by_ptx = f"; {len(slow)} of them compile PTX at first use" if slow else ""
    return Finding(
        code="arch-not-covered",
        verdict=Verdict.PASS,
        subject=f"{counted(len(passed), 'library', 'libraries')} on {gpu.name}",
        measured=f"{counted(len(passed), 'library', 'libraries')} covered",
        required=f"code for compute capability {gpu.compute_capability}",
        summary=f"{gpu.name} ({gpu.compute_capability}) runs the code of {counted(len(passed), 'library', 'libraries')}{by_ptx}.",
        details={"libraries": [str(finding.details["path"]) for finding in passed]},
    )
