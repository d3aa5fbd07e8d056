"""Which tags that exist a person may have meant by one that does not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

# nvidia/cuda's grammar: VERSION[-cudnn[N]]-FLAVOUR-OS. Up to 12.4.0 the cuDNN major is in the tag, from
# 12.4.1 on it is not; since 11.x the patch number is mandatory (NVIDIA's tag list of nvidia/cuda).
_CUDA_TAG = re.compile(
    r"(?P<version>\d+(?:\.\d+){1,2})(?:-(?P<cudnn>cudnn\d*))?(?:-(?P<flavour>base|runtime|devel))?"
    r"-(?P<distribution>[a-z]+)(?P<release>[\d.]+)"
)


@dataclass(frozen=True)
class _CudaTag:
    text: str
    version: tuple[int, ...]
    cudnn: str
    flavour: str
    distribution: str
    release: str


def near_tags(wanted: str, available: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Choose the tags nearest to one that does not exist, nearest first.

    For tags in nvidia/cuda's grammar, what the image is for (with cuDNN or not, its flavour) counts most,
    then the CUDA version, then the operating system. Other tags are compared as text.

    Args:
        wanted: The tag that was asked for.
        available: The repository's tags.
        limit: How many to return at most.
    """
    tags = sorted(set(available) - {wanted})
    parsed = _parse(wanted)
    if parsed is not None:
        candidates = [tag for tag in map(_parse, tags) if tag is not None]
        same_major = [tag for tag in candidates if tag.version[0] == parsed.version[0]]
        ranked = sorted(same_major or candidates, key=lambda tag: _distance(parsed, tag))
        if ranked:
            return tuple(tag.text for tag in ranked[:limit])
    return tuple(difflib.get_close_matches(wanted, tags, n=limit, cutoff=0.6))


def _parse(tag: str) -> _CudaTag | None:
    match = _CUDA_TAG.fullmatch(tag)
    if match is None:
        return None
    return _CudaTag(
        text=tag,
        version=tuple(int(part) for part in match["version"].split(".")),
        cudnn=match["cudnn"] or "",
        flavour=match["flavour"] or "",
        distribution=match["distribution"],
        release=match["release"],
    )


def _distance(wanted: _CudaTag, tag: _CudaTag) -> tuple[object, ...]:
    if tag.version == wanted.version:
        version = 0
    elif tag.version[: len(wanted.version)] == wanted.version or tag.version[:2] == wanted.version[:2]:
        version = 1
    else:
        version = 2
    return (
        bool(tag.cudnn) != bool(wanted.cudnn),
        tag.flavour != wanted.flavour,
        version,
        abs(tag.version[1] - wanted.version[1]),
        tag.distribution != wanted.distribution,
        tag.release != wanted.release,
        tag.cudnn != wanted.cudnn,
        tuple(-part for part in tag.version),
        tag.text,
    )
