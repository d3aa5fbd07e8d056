"""Gates ``cudnn-shadowed``, ``cuda-library-shadowed`` and ``cuda-library-twice``.

A wheel finds its own CUDA libraries by RUNPATH, which loses to LD_LIBRARY_PATH (ld.so(8)).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from stackbuild.findings import Finding, Verdict
from stackbuild.scan.contents.cuda import CudaLibrary, cuda_family
from stackbuild.scan.elf_record import Library
from stackbuild.scan.scan import Scan
from stackbuild.sizes import size_text


def judge_shadowed(scan: Scan) -> Iterator[Finding]:
    """Libraries of which a Python package gets another version than the one that was installed for it."""
    by_path = {item.path: item for item in scan.cuda}
    own: dict[tuple[str, str], list[CudaLibrary]] = defaultdict(list)
    for item in scan.cuda:
        if item.owner:
            own[_environment(item.path), item.soname].append(item)
    seen: dict[tuple[str, str], list[str]] = defaultdict(list)
    how: dict[tuple[str, str], str] = {}
    for path, library in scan.libraries.items():
        environment = _environment(path)
        if not environment:
            continue
        for name in library.elf.needed:
            copies = own.get((environment, name))
            if not copies or not cuda_family(name):
                continue
            found = scan.loader.find(name, library)
            if found is None or found.path not in by_path:
                continue
            mine = _meant_for(scan, library, name, copies, found.path)
            if found.path != mine.path:
                seen[mine.path, found.path].append(path)
                how[mine.path, found.path] = found.by
    for (wanted, taken), users in sorted(seen.items()):
        mine, other = by_path[wanted], by_path[taken]
        hashes = [scan.files.fact("sha256", path) for path in (wanted, taken)]
        same = _same_version(mine.version, other.version) or (
            hashes[0] is not None and hashes[0] == hashes[1]
        )
        yield _shadow(mine, other, sorted(users), how[wanted, taken], same=same)


def _meant_for(
    scan: Scan, library: Library, name: str, copies: Sequence[CudaLibrary], taken: str
) -> CudaLibrary:
    """Of an environment's copies the one that a library was installed with.

    That is the one its own paths lead to; without such paths the one it gets, or NVIDIA's own: packages such as
    Triton bring copies for themselves alone.
    """
    by_path = {item.path: item for item in copies}
    linked = scan.loader.find_by_own_paths(name, library)
    if linked is not None and linked.path in by_path:
        return by_path[linked.path]
    if taken in by_path:
        return by_path[taken]
    return next((item for item in copies if item.is_nvidias), copies[0])


def _shadow(mine: CudaLibrary, taken: CudaLibrary, users: Sequence[str], by: str, *, same: bool) -> Finding:
    code = "cudnn-shadowed" if mine.family == "cudnn" else "cuda-library-shadowed"
    who = users[0].rsplit("/", 1)[-1] + (f" and {len(users) - 1} more" if len(users) > 1 else "")
    details = {
        "installed": mine.path,
        "installed_version": mine.version,
        "taken": taken.path,
        "taken_version": taken.version,
        "by": by,
        "users": list(users[:20]),
    }
    if same:
        return Finding(
            code=code,
            verdict=Verdict.PASS,
            subject=mine.soname,
            measured=f"{taken.version} at /{taken.path}",
            required=mine.version,
            summary=f"{who} gets {mine.soname} from /{taken.path} ({by}) in place of its own: the same version.",
            details={**details, "note": "shadow-same-version"},
        )
    return Finding(
        code=code,
        verdict=Verdict.FAIL,
        subject=mine.soname,
        measured=f"{taken.version or 'unknown version'} at /{taken.path}, found through {by}",
        required=f"{mine.version} at /{mine.path}",
        summary=f"{who} was installed with {mine.soname} {mine.version} and gets {taken.version or 'another one'} from "
        f"/{taken.path} ({by}).",
        next_step="Take the folder out of LD_LIBRARY_PATH, or use a base without this library: RUNPATH, by which wheels "
        "find theirs, comes after it."
        if by == "LD_LIBRARY_PATH"
        else "Use a base without this library, or put the wheels' folder first in LD_LIBRARY_PATH.",
        details=details,
    )


def judge_twice(scan: Scan) -> Iterator[Finding]:
    """One CUDA library in several places, of whatever versions, where more than its own package may get it."""
    places: dict[str, dict[tuple[str, str, int], CudaLibrary]] = defaultdict(dict)
    for item in scan.cuda:
        if item.is_main and "/stubs/" not in item.path and not _is_private(scan, item):
            # Wheels cannot hold links: equal files under several names in one folder are one library.
            folder = item.path.rpartition("/")[0]
            places[item.family].setdefault((folder, item.soname, item.size), item)
    for family, found in sorted(places.items()):
        items = [*found.values()]
        sonames = {item.soname for item in items}
        if len(items) < 2 or (len(sonames) == len(items) and len({item.major for item in items}) == 1):
            continue
        versions = sorted({item.version for item in items})
        spare = sum(item.size for item in items) - max(item.size for item in items)
        taken = _taken(scan, items)
        yield Finding(
            code="cuda-library-twice",
            verdict=Verdict.WARN,
            subject=family,
            measured="; ".join(f"{item.version or item.soname} at /{item.path}" for item in items),
            required="one copy",
            summary=f"{family} is there {len(items)} times, "
            + ("in one version" if len(versions) == 1 else f"in versions {', '.join(versions)}")
            + f"; {size_text(spare)} are spare. {taken}".rstrip(),
            next_step="Keep one: take a -base image where wheels bring CUDA, or lock everything in one resolution.",
            details={
                "copies": [{"path": item.path, "version": item.version} for item in items],
                "bytes": spare,
            },
        )


def _is_private(scan: Scan, item: CudaLibrary) -> bool:
    """A copy that a package brings for itself alone: no library names it, and no path leads to its folder."""
    return bool(item.owner) and not item.is_nvidias and item.path not in scan.loaded_cuda


def _taken(scan: Scan, items: Sequence[CudaLibrary]) -> str:
    told = []
    for soname in sorted({item.soname for item in items}):
        found = scan.loader.on_default_path(soname, scan.libraries[items[0].path])
        if found is not None:
            told.append(f"A program without a path of its own gets /{found.path} ({found.by}).")
    return " ".join(told)


def _environment(path: str) -> str:
    """The site-packages folder a file lies in; empty outside of one."""
    for marker in ("/site-packages/", "/dist-packages/"):
        head, found, _ = path.partition(marker)
        if found:
            return head + marker
    return ""


def _same_version(left: str, right: str) -> bool:
    """One version may be written longer than the other: ``9.1.0`` and ``9.1.0.70``; a SONAME's number alone is none."""
    shorter, longer = sorted((left.split("."), right.split(".")), key=len)
    return len(shorter) > 1 and longer[: len(shorter)] == shorter
