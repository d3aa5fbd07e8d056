"""Reading and writing ``stacks/NAME.lock``.

The file is canonical JSON: its bytes depend on the lock's content alone, so that two people who lock
the same inputs get the same file and a review shows only what moved.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from stackbuild.errors import LockError
from stackbuild.lock.consistency import contradictions
from stackbuild.lock.model import BaseLock, BootstrapBaseLock, ImageBaseLock, Lock, PlatformLock
from stackbuild.output_file import replace_file
from stackbuild.spec.model import BootstrapBaseSpec, ImageBaseSpec, StackSpec
from stackbuild.spec.requirements_input import lock_inputs_sha256

SCHEMA = 1
INVALID = "lock-invalid"
_CONFLICT_ENDS = ("<<<<<<< ", ">>>>>>> ")
_CONFLICT_MIDDLE = "======="
_SHOWN_PROBLEMS = 5
# Defaults that readers need to tell what they read.
_ALWAYS_WRITTEN = ("schema_", "kind")


def lock_bytes(lock: Lock) -> bytes:
    """The canonical bytes of a lock: UTF-8 JSON, indent 2, lists sorted where their order is free."""
    text = json.dumps(_canonical(_sorted_lock(lock)), indent=2, ensure_ascii=False)
    return (text + "\n").encode()


def lock_sha256(lock: Lock) -> str:
    """The sha256, in hex, of the lock's canonical bytes."""
    return hashlib.sha256(lock_bytes(lock)).hexdigest()


def write_lock(path: Path, lock: Lock) -> bool:
    """Write the lock atomically: readers see the old file or the new one, never a part.

    Args:
        path: Where to write; its folder must exist.
        lock: What to write.

    Returns:
        True when the file's bytes changed; a file that has them already is left alone.

    Raises:
        LockError: The file cannot be written.
    """
    data = lock_bytes(lock)
    try:
        if path.is_file() and path.read_bytes() == data:
            return False
        replace_file(path, data, mode=0o644, durable=True)  # shared like any source file
    except OSError as error:
        raise LockError(
            f"the lock cannot be written: {error.strerror or error}",
            code="lock-unwritable",
            where=str(path),
            do="Give yourself write access to the folder, or free space on its disk, then lock again.",
        ) from error
    return True


def read_lock(path: Path) -> Lock:
    """Read a lock.

    Args:
        path: The lock's file.

    Raises:
        LockError: It is missing (``lock-missing``), cannot be read (``lock-unreadable``), has unresolved
            merge conflicts (``lock-merge-conflict``), was written by a newer version
            (``lock-schema-unknown``) or is not a valid lock (``lock-invalid``).
    """
    again = f"Run `stackbuild lock {path.stem}` to write a new one."
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError(errno.EINVAL, "it is no file")  # a pipe would be waited for
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise LockError(
            "there is no lock yet",
            code="lock-missing",
            where=str(path),
            do=f"Run `stackbuild lock {path.stem}`.",
        ) from None
    except UnicodeDecodeError as error:
        raise LockError(
            "the lock is not UTF-8 text", code="lock-unreadable", where=str(path), do=again
        ) from error
    except OSError as error:
        raise LockError(
            f"the lock cannot be read: {error.strerror or error}",
            code="lock-unreadable",
            where=str(path),
            do="Check that it is a file that you may read.",
        ) from error
    conflict = _first_conflict_line(text)
    if conflict:
        raise LockError(
            f"the lock has an unresolved merge conflict at line {conflict}",
            code="lock-merge-conflict",
            where=str(path),
            do=(
                "Locks cannot be merged by hand: resolve the spec first, take either side's lock whole "
                f"(`git checkout --ours` or `--theirs`), then run `stackbuild lock {path.stem}`."
            ),
        )
    return _parse(text, path, again)


def staleness(lock: Lock, spec: StackSpec, spec_dir: Path) -> str:
    """Why the lock is stale, as a clause for a sentence; empty when it is current.

    Args:
        lock: The lock.
        spec: The spec that it should belong to.
        spec_dir: The folder that the spec's paths are relative to.
    """
    if lock.stack != spec.name:
        return f"it is the lock of the stack {lock.stack!r}"
    missing = sorted(set(spec.platforms) - set(lock.platforms))
    if missing:
        return f"it has no inputs for {', '.join(missing)}"
    if lock.spec_sha256 != lock_inputs_sha256(spec, spec_dir):
        return "the spec, or a requirements file that it reads, has changed since"
    for platform in spec.platforms:
        if why := _other_base(lock.platforms[platform].base, spec.base):
            return f"its base for {platform} is {why}"
    return ""


def _other_base(base: BaseLock, spec: ImageBaseSpec | BootstrapBaseSpec | None) -> str:
    """What the locked base is where the spec asks for another; the spec's hash does not tell an edited lock."""
    if isinstance(spec, ImageBaseSpec):
        if not isinstance(base, ImageBaseLock):
            return f"{base.distribution} {base.suite}, and the spec's is {spec.image}:{spec.tag}"
        if base.tag != spec.tag or not _same_repository(base.image, spec.image):
            return f"{base.image}:{base.tag}, and the spec's is {spec.image}:{spec.tag}"
        if spec.digest not in (None, base.index_digest, base.platform_digest):
            return f"{base.index_digest}, and the spec's is {spec.digest}"
    if isinstance(spec, BootstrapBaseSpec):
        if isinstance(base, ImageBaseLock):
            return f"{base.image}:{base.tag}, and the spec's is {spec.bootstrap} {spec.suite}"
        if (base.distribution, base.suite) != (spec.bootstrap, spec.suite):
            return f"{base.distribution} {base.suite}, and the spec's is {spec.bootstrap} {spec.suite}"
    return ""


def _same_repository(one: str, other: str) -> bool:
    if one == other:
        return True
    # Imported here: mostly they are spelled the same.
    from stackbuild.registry.reference import parse_repository

    return parse_repository(one) == parse_repository(other)


def require_current(lock: Lock, spec: StackSpec, spec_dir: Path, path: Path) -> None:
    """Refuse a stale lock.

    Raises:
        LockError: code ``lock-stale``, saying why.
    """
    why = staleness(lock, spec, spec_dir)
    if why:
        raise LockError(
            f"the lock is stale: {why}",
            code="lock-stale",
            where=str(path),
            do=f"Run `stackbuild lock {spec.name}`.",
        )


def _parse(text: str, path: Path, again: str) -> Lock:
    try:
        data = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise LockError(
            f"the lock is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            code=INVALID,
            where=str(path),
            do=_restored(path),
        ) from error
    except ValueError as error:
        raise LockError(f"the lock is not valid: {error}", code=INVALID, where=str(path), do=again) from error
    if not isinstance(data, dict) or "schema" not in data or "stack" not in data:
        raise LockError(
            "this is JSON, but not a lock of stackbuild: it has no 'schema' and 'stack'",
            code=INVALID,
            where=str(path),
            do=f"Another tool's lock goes into the spec's 'packages' as `from:`. {again}",
        )
    schema = data["schema"]
    if schema != SCHEMA:
        raise LockError(
            f"the lock has schema {schema!r}; this version of stackbuild reads schema {SCHEMA}",
            code="lock-schema-unknown",
            where=str(path),
            do="Install the version of stackbuild that wrote it, or lock again with this one.",
        )
    try:
        lock = Lock.model_validate(data)
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_url=False)
        ]
        raise LockError(
            "the lock does not have the form of a lock; was it edited by hand?",
            code=INVALID,
            where=str(path),
            do=_restored(path),
            detail=_first(problems),
        ) from error
    if problems := contradictions(lock):
        raise LockError(
            f"the lock contradicts itself ({problems[0]}); was it edited by hand?",
            code=INVALID,
            where=str(path),
            do=_restored(path),
            detail=_first(problems[1:]),
        )
    return lock


def _first(problems: Sequence[str]) -> str:
    more = len(problems) - _SHOWN_PROBLEMS
    return "\n".join([*problems[:_SHOWN_PROBLEMS], *([f"and {more} more"] if more > 0 else [])])


def _restored(path: Path) -> str:
    return (
        f"Take back what was committed (`git checkout -- {shlex.quote(str(path))}`), or run `stackbuild lock "
        f"{path.stem}` to write a new one."
    )


def _first_conflict_line(text: str) -> int:
    """The number of the first line that git left as a conflict marker, or 0."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line == _CONFLICT_MIDDLE or line.startswith(_CONFLICT_ENDS):
            return number
    return 0


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # A merge that git thought clean can leave one key twice; JSON readers would silently take the last.
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        raise ValueError(f"the key {repeated[0]!r} appears twice in one object")
    return result


def _sorted_lock(lock: Lock) -> Lock:
    return lock.model_copy(
        update={"platforms": {name: _sorted_platform(platform) for name, platform in lock.platforms.items()}}
    )


def _sorted_platform(platform: PlatformLock) -> PlatformLock:
    base = platform.base
    if isinstance(base, BootstrapBaseLock):
        base = base.model_copy(update={"debs": tuple(sorted(base.debs, key=_deb_order))})
    return platform.model_copy(
        update={
            "base": base,
            "debs": tuple(sorted(platform.debs, key=_deb_order)),
            "base_upgrades": tuple(sorted(platform.base_upgrades)),
            "wheels": tuple(sorted(platform.wheels, key=lambda wheel: (wheel.name, wheel.file))),
            "bytecode_left_out": tuple(sorted(platform.bytecode_left_out)),
            "bytecode_failed": tuple(sorted(platform.bytecode_failed)),
            "findings": tuple(
                sorted(
                    platform.findings, key=lambda finding: (finding.code, finding.subject, finding.summary)
                )
            ),
        }
    )


def _deb_order(deb: Any) -> tuple[str, str]:
    return (deb.name, deb.architecture)


def _canonical(value: Any) -> Any:
    """Models in the order of their fields, free mappings in the order of their keys; defaults are left out."""
    if isinstance(value, BaseModel):
        fields: dict[str, Any] = {}
        for name, field in type(value).model_fields.items():
            content = getattr(value, name)
            if name not in _ALWAYS_WRITTEN and content == field.get_default(call_default_factory=True):
                continue
            fields[field.alias or name] = _canonical(content)
        return fields
    if isinstance(value, Mapping):
        return {key: _canonical(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return value
