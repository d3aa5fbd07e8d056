"""The first layer, from the bottom, that is not the same on both sides: what made it, and from what."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stackbuild.digests import short_digest
from stackbuild.drift.findings import package_text
from stackbuild.drift.model import LayerChange, PackageChange
from stackbuild.drift.subject import Subject

_OURS = "stackbuild: "
_DEBS = "apt-get install --no-download "
_SHELL = re.compile(r"^(?:/bin/sh -c (?:#\(nop\) *)?|RUN /bin/sh -c )")
# A base as build.base titles its layers.
_BASE = re.compile(
    r"FROM (?P<image>\S+?)@(?P<digest>sha256:[0-9a-f]+)|stackbuild: (?P<distribution>\S+ \S+) from \d+ locked debs"
)
_LONGEST = 160
_NOT_RECORDED = "its command and the versions in it are the same; what else it read is not recorded"


def first_layer(before: Subject, after: Subject, packages: Sequence[PackageChange]) -> LayerChange | None:
    """The first layer that differs; None when all are the same.

    Args:
        before: One image.
        after: The other.
        packages: What became of their packages.
    """
    if before.image is None or after.image is None:
        return None
    then, now = (side.image.scan.files.description for side in (before, after) if side.image is not None)
    if not all((*then.diff_ids, *now.diff_ids)):
        return None  # a folder is no layer
    number = next(
        (
            place
            for place, (old, new) in enumerate(zip(then.diff_ids, now.diff_ids, strict=False))
            if old != new
        ),
        min(len(then.diff_ids), len(now.diff_ids)),
    )
    if number == max(len(then.diff_ids), len(now.diff_ids)):
        return None
    old, new = (side.diff_ids[number] if number < len(side.diff_ids) else "" for side in (then, now))
    commands = tuple(side.commands[number] if number < len(side.commands) else "" for side in (then, now))
    return LayerChange(
        number=number + 1,
        maker=layer_maker(commands[1] or commands[0]),
        before=old,
        after=new,
        inputs=_inputs(before, after, old, new, commands, packages),
    )


def layer_maker(command: str) -> str:
    """What made a layer, in few words: of ours the group, of others' the command.

    Args:
        command: As the image's history has it.
    """
    base = _BASE.fullmatch(command)
    if base is not None:
        return f"base {base['image'] or base['distribution']}"
    if command.startswith(_OURS):
        return _short(command.removeprefix(_OURS).partition(": ")[0]) + (
            f" of {command.rpartition(': ')[2]}" if command.startswith(f"{_OURS}byte-code") else ""
        )
    if command.startswith(_DEBS):
        return "debs"
    return _short(_SHELL.sub("", command).strip())


def _inputs(
    before: Subject,
    after: Subject,
    old: str,
    new: str,
    commands: tuple[str, ...],
    packages: Sequence[PackageChange],
) -> tuple[str, ...]:
    """Which inputs differ, as sentences; none when all are the same."""
    if not old or not new:
        return ("only one of the images has such a layer",)
    moved = _moved(commands)
    if moved and not _BASE.fullmatch(commands[1]):
        return moved
    in_it = {
        (item.kind, item.name)
        for side, diff_id in ((before, old), (after, new))
        for item in side.packages.packages
        if item.layer == diff_id
    }
    told = tuple(package_text(change) for change in packages if (change.kind, change.name) in in_it)
    if moved or told:
        return (*moved, *told)
    if all(commands) and commands[0] != commands[1]:
        return (f"{_short(commands[0])} → {_short(commands[1])}",)
    if before.inputs and before.inputs == after.inputs:
        return ()
    if commands[0].startswith(f"{_OURS}files ") and before.inputs and after.inputs:
        return ("the content of the spec's files",)
    return (_NOT_RECORDED,)


def _moved(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Another maker than before, or the digest of a base that moved under its tag."""
    old, new = (layer_maker(command) for command in commands)
    if not all(commands):
        return ()  # where the history is not known, neither is whether the maker is the same
    if old != new:
        return (f"{old} → {new}",)
    digests = [match["digest"] if (match := _BASE.fullmatch(command)) else None for command in commands]
    if digests[0] != digests[1] and all(digests):
        return (f"digest {short_digest(str(digests[0]))} → {short_digest(str(digests[1]))}",)
    return ()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
