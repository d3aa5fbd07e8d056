"""The hash-locked requirements files that the Dockerfile's pip steps install."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stackbuild.lock.model import LockedWheel
from stackbuild.site_config import PYTORCH_CHANNELS, PYTORCH_PREFIX
from stackbuild.spec.model import IndexSpec
from stackbuild.urls import without_credentials

_URL_INDEX = "url"
_DEFAULT_INDEX = "default"


@dataclass(frozen=True)
class PipStep:
    """One pip step.

    Attributes:
        file: The requirements file's name in the context.
        note: What it is for.
        wheels: What it installs, in name order.
        extra_indexes: URLs beside the default index.
    """

    file: str
    note: str
    wheels: tuple[LockedWheel, ...]
    extra_indexes: tuple[str, ...]


def pip_steps(wheels: Sequence[LockedWheel], indexes: Mapping[str, IndexSpec]) -> tuple[PipStep, ...]:
    """The pip steps of a lock: torch with its CUDA libraries before everything else.

    Were torch to come second, libraries of another CUDA major could stay beside its own (case B05).

    Args:
        wheels: The locked wheels.
        indexes: The spec's own indexes.
    """
    first = [wheel for wheel in wheels if wheel.group in ("cuda", "torch")]
    rest = [wheel for wheel in wheels if wheel.group not in ("cuda", "torch")]
    has_torch = any(wheel.group == "torch" for wheel in first)
    steps = []
    if first:
        what = "torch and the CUDA libraries" if has_torch else "The CUDA libraries"
        steps.append(_step("requirements-torch.txt", f"{what}, before all others.", first, indexes))
    if rest:
        steps.append(_step("requirements.txt", "All other wheels.", rest, indexes))
    return tuple(steps)


def requirements_text(wheels: Sequence[LockedWheel], *, from_folder: bool) -> str:
    """A requirements file in which each wheel has its version and hash.

    Args:
        wheels: In name order.
        from_folder: Whether the context brings the wheels; then a wheel that the spec names by URL is named
            by its version, as pip would go to the URL.
    """
    lines = ["# Rendered by stackbuild from the lock; for pip install --require-hashes --no-deps."]
    for wheel in wheels:
        if wheel.url is not None and not from_folder:
            pinned = f"{wheel.name} @ {without_credentials(wheel.url)}"
        else:
            pinned = f"{wheel.name}=={wheel.version}"
        lines.append(f"{pinned} \\\n    --hash=sha256:{wheel.sha256}")
    return "\n".join(lines) + "\n"


def _step(file: str, note: str, wheels: Sequence[LockedWheel], indexes: Mapping[str, IndexSpec]) -> PipStep:
    names = {wheel.index for wheel in wheels} - {_DEFAULT_INDEX, _URL_INDEX}
    urls = tuple(sorted(filter(None, (_index_url(name, indexes) for name in names))))
    return PipStep(file, note, tuple(sorted(wheels, key=lambda wheel: wheel.name)), urls)


def _index_url(name: str, indexes: Mapping[str, IndexSpec]) -> str | None:
    if name in indexes:
        return without_credentials(indexes[name].url)
    if name.startswith(PYTORCH_PREFIX):
        return f"{PYTORCH_CHANNELS}/{name.removeprefix(PYTORCH_PREFIX)}"
    return None
