"""What differs between two images without being content: times, history, and files of known noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stackbuild.counting import counted
from stackbuild.drift.files import FileDrift
from stackbuild.drift.subject import ImageSubject

_OF_THE_BUILD = ("created", "version", "revision")
_OCI = "org.opencontainers.image."


def metadata_differences(before: ImageSubject, after: ImageSubject, files: FileDrift) -> tuple[str, ...]:
    """The differences as clauses; none of them is drift.

    Args:
        before: One image.
        after: The other.
        files: What became of their files.
    """
    return tuple(_differences(before, after, files))


def _differences(before: ImageSubject, after: ImageSubject, files: FileDrift) -> Iterator[str]:
    then, now = before.scan.files.description, after.scan.files.description
    stated = [side.config.get("created") for side in (then, now)]
    if all(stated) and stated[0] != stated[1]:
        yield f"created {stated[0]} → {stated[1]}"
    labels = [
        name for name in _OF_THE_BUILD if then.labels.get(f"{_OCI}{name}") != now.labels.get(f"{_OCI}{name}")
    ]
    if labels:
        yield f"the labels {', '.join(labels)} of the build"
    if then.commands != now.commands:
        yield "the history of commands"
    if files.times:
        yield f"the times of {counted(files.times, 'file')}"
    noise = Counter(change.noise for change in files.changes if change.noise)
    if noise:
        rows = ", ".join(f"{code} {count:,}" for code, count in sorted(noise.items()))
        yield f"{counted(sum(noise.values()), 'file')} of known noise ({rows})"
    only_noise = all(change.noise for change in files.changes)
    if then.diff_ids != now.diff_ids and only_noise and not (files.times or noise):
        yield "how the layers are cut or written; every file is the same"
