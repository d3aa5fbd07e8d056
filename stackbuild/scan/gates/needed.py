"""Gate ``needed-library-missing``: a library that nothing in the image provides, or that is out of reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from stackbuild.findings import Finding, Verdict
from stackbuild.scan.contents.cuda import cuda_family, is_driver_name
from stackbuild.scan.elf_record import Library
from stackbuild.scan.scan import Scan

# Opened by ONNX Runtime itself, which preloads nothing: what is out of reach for them is missing (DESIGN §3.6).
_NOTHING_PRELOADED = ("libonnxruntime_providers_cuda.so",)
# Left out at will: ONNX Runtime passes over a provider that does not load unless it is asked for; NVSHMEM opens the
# transport and bootstrap of the cluster it runs on, cuFile its RDMA part where there is RDMA (their documentation).
_OPTIONAL = (
    "libonnxruntime_providers_tensorrt.so",
    "libonnxruntime_providers_nv_tensorrt_rtx.so",
    "libcufile_rdma.so",
    "nvshmem_bootstrap_",
    "nvshmem_transport_",
)
_TENSORRT = "libonnxruntime_providers_tensorrt.so"
_DISTRIBUTION = (
    "usr/lib/",
    "usr/bin/",
    "usr/sbin/",
    "usr/libexec/",
    "lib/",
    "bin/",
    "sbin/",
    "lib64/",
    "usr/lib64/",
)
_PYTHON = ("/site-packages/", "/dist-packages/")


def judge_needed(scan: Scan) -> Iterator[Finding]:
    """One finding for each library that is missing, with everything that needs it.

    Python packages load libraries of each other by import order; so one that is somewhere in the image counts
    as there, except for those that are known to look by themselves.
    """
    provided = {library.elf.soname or library.name for library in scan.libraries.values()}
    provided |= {
        path.rsplit("/", 1)[-1]
        for path, placed in scan.files.placed()
        if ".so" in path and placed.entry.kind != "dir"
    }
    users: dict[tuple[str, bool], list[Library]] = defaultdict(list)
    for library in scan.libraries.values():
        if library.elf.static or library.elf.machine != scan.machine or _is_distributions(library.path):
            continue
        alone = library.name in _NOTHING_PRELOADED
        for name in library.elf.needed:
            if is_driver_name(name) or (name in provided and not alone):
                continue
            if scan.loader.find(name, library) is None:
                users[name, name in provided].append(library)
    wanted: tuple[str, ...] = _OPTIONAL
    if any(item.family == "tensorrt" for item in scan.cuda):  # whoever installs TensorRT wants its provider
        wanted = tuple(name for name in _OPTIONAL if name != _TENSORRT)
    optional: dict[str, list[Library]] = {}
    for (name, elsewhere), libraries in sorted(users.items()):
        if all(library.name.startswith(wanted) for library in libraries):
            optional[name] = libraries
        else:
            yield _missing(scan, name, libraries, elsewhere=elsewhere)
    if optional:
        yield _not_loadable(optional)


def _not_loadable(missing: Mapping[str, Sequence[Library]]) -> Finding:
    """Parts that are opened only where somebody asks for them."""
    parts = sorted({library.path for libraries in missing.values() for library in libraries})
    names = ", ".join(sorted({path.rsplit("/", 1)[-1] for path in parts}))
    return Finding(
        code="needed-library-missing",
        verdict=Verdict.PASS,
        subject=f"{len(parts)} optional parts" if len(parts) > 1 else f"/{parts[0]}",
        measured=f"no {', '.join(missing)}",
        required="only where such a part is asked for",
        summary=f"Every library that is needed is found; optional parts cannot be loaded here: {names}.",
        details={"note": "optional", "missing": [*missing], "users": parts},
    )


def _missing(scan: Scan, name: str, users: list[Library], *, elsewhere: bool) -> Finding:
    serious = [library for library in users if not library.name.startswith(_OPTIONAL)]
    verdict = Verdict.FAIL if serious and cuda_family(name) else Verdict.WARN
    first = (serious or users)[0]
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    details = {"library": name, "users": [library.path for library in users[:20]]}
    if elsewhere:
        copies = sorted(
            path for path, library in scan.libraries.items() if name in (library.elf.soname, library.name)
        )
        folder = "/" + copies[0].rpartition("/")[0] if copies else ""
        return Finding(
            code="needed-library-missing",
            verdict=verdict,
            subject=f"/{first.path}",
            measured=f"{name} is at /{copies[0]}, outside the loader's path"
            if copies
            else f"{name} is out of reach",
            required=f"{name} on the loader's path",
            summary=f"{first.name}{more} needs {name}, which is in the image where the loader does not look: it works "
            "only after something else has loaded it.",
            next_step=f"Put {folder} first in LD_LIBRARY_PATH, or into ld.so.conf.d and run ldconfig.",
            details={**details, "copies": copies},
        )
    optional = "" if serious else " It is an optional provider."
    return Finding(
        code="needed-library-missing",
        verdict=verdict,
        subject=f"/{first.path}",
        measured=f"no {name} in the image",
        required=name,
        summary=f"{first.name}{more} needs {name}, which nothing in the image provides.{optional}",
        next_step="Install the package that brings it"
        + (
            " (onnxruntime-gpu[cuda,cudnn], or the nvidia-* wheel of this CUDA major)."
            if cuda_family(name)
            else "."
        ),
        details=details,
    )


def _is_distributions(path: str) -> bool:
    """Files of the distribution: its package manager sees to what they need."""
    return path.startswith(_DISTRIBUTION) and not any(part in path for part in _PYTHON)
