"""What a drift says as findings: a gate for each level, one for what users may notice, one for mere metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from stackbuild.counting import counted
from stackbuild.drift.model import Drift, FileChange, LayerChange, PackageChange, PinChange
from stackbuild.findings import Finding, Verdict

_SHOWN = 5
_LONGEST_VALUE = 80
_KINDS = {"changed": "changed", "added": "added", "removed": "removed"}


def drift_findings(drift: Drift, unread: Sequence[str] = ()) -> tuple[Finding, ...]:
    """The findings of a comparison. Drift is a WARN: exit code 6 comes from the drift itself, not from a gate.

    Args:
        drift: What differs.
        unread: Paths whose content could not be read: nobody can say that they are the same.
    """
    return (*_findings(drift), *_unread(unread))


def _findings(drift: Drift) -> Iterator[Finding]:
    if "pins" in drift.levels:
        yield _level("drift-pins", "pins", [pin_text(pin) for pin in drift.pins], "")
    if "packages" in drift.levels:
        kinds = _kinds(Counter(package.change for package in drift.packages))
        yield _level(
            "drift-packages", "packages", [package_text(package) for package in drift.packages], kinds
        )
    if "files" in drift.levels:
        yield _files(drift)
    breaking = [
        *(f"{pin.pin}: {pin.why}" for pin in drift.pins if pin.breaking),
        *(f"{package.name}: {package.why}" for package in drift.packages if package.breaking),
    ]
    if breaking:
        yield Finding(
            code="drift-breaking",
            verdict=Verdict.WARN,
            summary=f"{counted(len(breaking), 'change')} that users may have to follow: {_first(breaking)}",
            next_step="Tell the image's users before it gets a tag they use, or pin what must not move.",
            details={"problems": breaking},
        )
    if drift.metadata:
        yield Finding(
            code="nondeterministic-metadata",
            verdict=Verdict.PASS,
            summary=f"Differs without being content: {'; '.join(drift.metadata)}.",
        )


def _unread(paths: Sequence[str]) -> Iterator[Finding]:
    if paths:
        yield Finding(
            code="drift-files",
            verdict=Verdict.ERROR,
            summary=f"The content of {counted(len(paths), 'file')} could not be read: {_first(paths)}.",
            next_step="Save or pull the images again.",
        )


def pin_text(pin: PinChange) -> str:
    """A pin's move in a few words: ``cuda 12.8 → 13.0``."""
    before, after = (_value(value) for value in pin.sides)
    return f"{pin.pin} {before} → {after}"


def package_text(package: PackageChange) -> str:
    """A package's change in a few words: ``numpy 2.1.0 → 2.2.0``, ``pip 25 removed``."""
    if "version" in package.what:  # its licence and hash follow from it
        versions = (value.partition("; ")[0] for value in (package.before, package.after))
        return f"{package.name} {' → '.join(versions)}"
    if package.change == "changed":
        return f"{package.name} {change_text(package, _value)}"
    return f"{package.name} {package.after or package.before} {package.change}"


def own_files(drift: Drift) -> tuple[str, ...]:
    """The files that count and are of no package, each in a few words: ``/srv/app/serve.py changed``."""
    return tuple(
        f"{file.path} {file.change}"
        for file in drift.files
        if not (file.noise or file.owner or file.kind in ("directory", "byte-code"))
    )


def change_text(package: PackageChange, value: Callable[[str], str] = str) -> str:
    """Both sides of a package that changed; once where the newer one says all: a version whose files differ.

    Args:
        package: The change.
        value: Makes a side fit.
    """
    if package.after == package.before or package.after.startswith(f"{package.before}; "):
        return value(package.after)
    return f"{value(package.before)} → {value(package.after)}"


def layer_text(layer: LayerChange) -> str:
    """The first differing layer in a sentence without its end: its place, its maker, its inputs."""
    if not layer.inputs_known:
        return f"layer {layer.number} from the bottom{f', {layer.maker}' if layer.maker else ''}"
    inputs = ", ".join(layer.inputs[:_SHOWN])
    more = len(layer.inputs) - _SHOWN
    if more > 0:
        inputs += f" and {more} more"
    return (
        f"layer {layer.number} from the bottom, {layer.maker or 'of unknown origin'}: "
        f"{inputs or 'all its inputs are the same, so it is not reproducible'}"
    )


def _level(code: str, word: str, told: Sequence[str], kinds: str) -> Finding:
    if not told:
        return Finding(code=code, verdict=Verdict.PASS, summary=f"The {word} are the same.")
    return Finding(
        code=code,
        verdict=Verdict.WARN,
        summary=f"{counted(len(told), word.removesuffix('s'))} differ{'s' if len(told) == 1 else ''}"
        f"{f' ({kinds})' if kinds else ''}: {_first(told)}.",
        next_step="If nobody changed spec or lock, look at what served other content; else review the change.",
    )


def _files(drift: Drift) -> Finding:
    counting = [file for file in drift.files if not file.noise]
    if not counting:
        return Finding(
            code="drift-files", verdict=Verdict.PASS, summary="The files are the same, but for declared noise."
            if drift.files else "The files are the same.",
        )  # fmt: skip
    kinds = _kinds(Counter(file.change for file in counting))
    summary = f"{counted(len(counting), 'file')} differ{'s' if len(counting) == 1 else ''} ({kinds}): {_owners(counting)}."
    if drift.first_layer is not None:
        summary += f" The first difference is in {layer_text(drift.first_layer)}."
    return Finding(
        code="drift-files",
        verdict=Verdict.WARN,
        summary=summary,
        next_step="Look at the first layer that differs: what lies above it follows from it.",
    )


def _owners(files: Sequence[FileChange]) -> str:
    counts = Counter(file.owner or "files of no package" for file in files)
    return _first([f"{count} of {owner}" for owner, count in counts.most_common()])


def _kinds(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {word}" for kind, word in _KINDS.items() if counts[kind])


def _first(told: Sequence[str]) -> str:
    more = len(told) - _SHOWN
    return "; ".join(told[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _value(text: str) -> str:
    if not text:
        return "none"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
