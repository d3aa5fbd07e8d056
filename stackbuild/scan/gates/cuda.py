"""Gates ``cudnn-shadowed``, ``cuda-library-shadowed`` and ``cuda-library-twice``.

A wheel finds its own CUDA libraries by RUNPATH, which loses to LD_LIBRARY_PATH (ld.so(8)).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from stackbuild.findings import Finding, Verdict
from stackbuild.scan.contents.cuda import CudaLibrary, cuda_family
from stackbuild.scan.scan import Scan


def judge_shadowed(scan: Scan) -> Iterator[Finding]:
    """Libraries of which a Python package gets another version than the one that was installed for it."""
    by_path = {item.path: item for item in scan.cuda}
    own: dict[tuple[str, str], CudaLibrary] = {
        (_environment(item.path), item.soname): item for item in scan.cuda if item.owner
    }
    seen: dict[tuple[str, str], list[str]] = defaultdict(list)
    how: dict[tuple[str, str], str] = {}
    for path, library in scan.libraries.items():
        environment = _environment(path)
        if not environment:
            continue
        for name in library.elf.needed:
            mine = own.get((environment, name))
            if mine is None or not cuda_family(name):
                continue
            found = scan.loader.find(name, library)
            if found is not None and found.path != mine.path and found.path in by_path:
                seen[mine.path, found.path].append(path)
                how[mine.path, found.path] = found.by
    for (wanted, taken), users in sorted(seen.items()):
        yield _shadow(by_path[wanted], by_path[taken], sorted(users), how[wanted, taken])


def _shadow(mine: CudaLibrary, taken: CudaLibrary, users: Sequence[str], by: str) -> Finding:
    code = "cudnn-shadowed" if mine.family == "cudnn" else "cuda-library-shadowed"
    same = _same_version(mine.version, taken.version)
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
    """One CUDA library in several places, of whatever versions."""
    places: dict[str, list[CudaLibrary]] = defaultdict(list)
    for item in scan.cuda:
        if item.is_main and "/stubs/" not in item.path:
            places[item.family].append(item)
    for family, items in sorted(places.items()):
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
            + f"; {spare / 1e6:,.0f} MB are spare. {taken}".rstrip(),
            next_step="Keep one: take a -base image where wheels bring CUDA, or lock everything in one resolution.",
            details={
                "copies": [{"path": item.path, "version": item.version} for item in items],
                "bytes": spare,
            },
        )


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
    """One version may be written longer than the other: ``9.1.0`` and ``9.1.0.70``."""
    shorter, longer = sorted((left.split("."), right.split(".")), key=len)
    return bool(left and right) and longer[: len(shorter)] == shorter
