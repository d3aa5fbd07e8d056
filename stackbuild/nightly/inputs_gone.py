"""A wheel that is gone from its index: which package, which index, and who pins it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from stackbuild.counting import some_of
from stackbuild.errors import InterruptedRunError, StackbuildError
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.model import LockedWheel
from stackbuild.lock.wheels_target import Target
from stackbuild.nightly.inputs_words import place
from stackbuild.resolution.wheels.choice import near
from stackbuild.resolution.wheels.dependencies import applies, declared_requirements
from stackbuild.resolution.wheels.index_metadata import MetadataReader
from stackbuild.resolution.wheels.index_page import IndexFile
from stackbuild.resolution.wheels.index_sources import URL_INDEX, Indexes
from stackbuild.resolution.wheels.request import pin_of
from stackbuild.site_config import DEFAULT_INDEX, PYTORCH_PREFIX

_MOST_NAMES = 10  # of files in one sentence


@dataclass(frozen=True)
class GoneWheels:
    """Explains wheels that are gone.

    Args:
        wheels: All locked wheels of the platform: one of them may be the pinning parent.
        indexes: Where the parents' files are.
        metadata: Reads what a parent asks for, word by word.
        target: What the parents' markers are evaluated for; None where the platform has no Python.
    """

    wheels: Sequence[LockedWheel]
    indexes: Indexes
    metadata: MetadataReader
    target: Target | None

    def finding(self, wheel: LockedWheel, page: Sequence[IndexFile] | None) -> Finding:
        """Gate ``broken-upstream``: a clean rebuild cannot fetch this wheel any more.

        Args:
            wheel: The locked wheel.
            page: What its index lists of the project now; None when it does not know the project.
        """
        name = f"{wheel.name}=={wheel.version}"
        parents = [parent for parent in self.wheels if wheel.name in parent.requires]
        pinned = [self._asks(parent, wheel.name) for parent in parents]
        if wheel.requested:
            pinned.insert(0, "the spec names it")
        why = f" {_sentence(pinned)}" if pinned else ""
        return Finding(
            code="broken-upstream",
            verdict=Verdict.FAIL,
            subject=f"{wheel.name} {wheel.version}",
            measured=_measured(wheel, page),
            required=wheel.file,
            summary=f"{name} is gone from {place(wheel)}: {_measured(wheel, page)}.{why}",
            next_step=_next_step(wheel, page),
            details={
                "index": wheel.index,
                "file": wheel.file,
                "pinned-by": [f"{parent.name} {parent.version}" for parent in parents],
            },
        )

    def _asks(self, parent: LockedWheel, package: str) -> str:
        """``torch 2.5.1 (from the channel pytorch-cu121) pins nvidia-cudnn-cu12==9.1.0.70``."""
        who = f"{parent.name} {parent.version} (from {place(parent)})"
        requirement = self._requirement(parent, package)
        if requirement is None:
            return f"{who} requires {package}"
        return f"{who} {'pins' if pin_of(requirement) else 'requires'} {package}{requirement.specifier}"

    def _requirement(self, parent: LockedWheel, package: str) -> Requirement | None:
        """What the parent's own METADATA says; None when it cannot be read, as the parent may be gone too."""
        try:
            file = self._file(parent)
            if file is None or self.target is None:
                return None
            declared = declared_requirements(self.metadata.read(parent.index, file))
        except InterruptedRunError:
            raise
        except StackbuildError:
            return None
        extras = [extra for item in declared if item.marker for extra in _extras(item)]
        return next(
            (
                item
                for item in declared
                if canonicalize_name(item.name) == package and applies(item, self.target, extras)
            ),
            None,
        )

    def _file(self, parent: LockedWheel) -> IndexFile | None:
        if parent.index == URL_INDEX:
            return IndexFile(parent.file, str(parent.url), sha256=parent.sha256, size=parent.size)
        page = self.indexes.page(parent.index, parent.name) or ()
        return next((file for file in page if file.name == parent.file), None)


def _measured(wheel: LockedWheel, page: Sequence[IndexFile] | None) -> str:
    if wheel.index == URL_INDEX:
        return "nothing is there"
    if not page:
        return f"it has no {wheel.name} at all"
    locked = Version(wheel.version)
    if any(file.version == locked for file in page):
        others = [file.name for file in page if file.version == locked and file.is_wheel]
        return f"of that version it has {_some(others)}" if others else "of that version it has only sources"
    published = near(locked, (file.version for file in page if file.version is not None))
    return f"it has {', '.join(published)}" if published else "it has no version of it"


def _some(names: Iterable[str]) -> str:
    """The names, of many the first: an index may list thousands."""
    return some_of(dict.fromkeys(names), _MOST_NAMES)


def _next_step(wheel: LockedWheel, page: Sequence[IndexFile] | None) -> str:
    keep = (
        f"Put {wheel.file}, from the store of a machine that built with it, into a wheelhouse or mirror and map the"
        f" index {wheel.index} to it in the site file"
    )
    if wheel.index == URL_INDEX:
        return f"Put {wheel.file}, from the store of a machine that built with it, elsewhere, and name that in the spec."
    bind = (
        f"; or take {wheel.name} from the default index, with 'index: {DEFAULT_INDEX}'"
        if wheel.index.startswith(PYTORCH_PREFIX)
        else ""
    )
    again = f"; or lock again with --upgrade {wheel.name}" if page else ""
    return f"{keep}{bind}{again}."


def _extras(requirement: Requirement) -> list[str]:
    """The extras that a marker names; whether the lock asked for one is known by the package being locked."""
    found = []
    for part in str(requirement.marker).split("extra ==")[1:]:
        found.append(part.strip().strip("\"'").partition('"')[0].partition("'")[0])
    return found


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text.startswith("the ") else f"{text}."
