"""The files of two images: merged trees against each other, content only where layers are not the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stackbuild.digests import short_hex
from stackbuild.drift.contents import read_contents
from stackbuild.drift.layer_content import FileContent, LayerContent
from stackbuild.drift.model import ChangeKind, FileChange
from stackbuild.drift.noise import noise_of
from stackbuild.drift.normal_forms import form_of
from stackbuild.drift.owners import Owners, file_kind
from stackbuild.drift.subject import ImageSubject
from stackbuild.progress import Observer
from stackbuild.scan.entries import FileEntry
from stackbuild.scan.image_files import ImageFiles, PlacedFile
from stackbuild.store.store import Store

_MOST_LINKS = 8


@dataclass(frozen=True)
class FileDrift:
    """What became of the files.

    Attributes:
        changes: By path; those that the noise table covers among them.
        times: Number of files that are the same but for their time.
        unread: Paths, with their leading slash, whose content could not be read.
    """

    changes: tuple[FileChange, ...]
    times: int = 0
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """A path on one side: its entry, hard links followed, and the layer that it comes from."""

    entry: FileEntry
    diff_id: str


def compare_files(
    before: ImageSubject, after: ImageSubject, *, store: Store | None, observer: Observer
) -> FileDrift:
    """Compare two images file by file.

    Args:
        before: The older one.
        after: The newer one.
        store: Keeps the content of layers, by diff ID.
        observer: Told of each layer that is read.

    Raises:
        ScanError: A layer cannot be read.
    """
    return _Comparison(before, after).run(store, observer)


class _Comparison:
    def __init__(self, before: ImageSubject, after: ImageSubject) -> None:
        self._before, self._after = before, after
        self._then, self._now = before.scan.files, after.scan.files
        self._contents: tuple[Mapping[str, LayerContent], Mapping[str, LayerContent]] = ({}, {})

    def run(self, store: Store | None, observer: Observer) -> FileDrift:
        paths = sorted(self._differing())
        self._read(paths, store, observer)
        owners = (
            Owners(self._before.scan, self._contents[0].values()),
            Owners(self._after.scan, self._contents[1].values()),
        )
        changes, times, unread = [], 0, []
        for path in paths:
            old, new = self._sides(path)
            if old is not None and new is not None:
                what, known, timed = self._what(path, old, new)
                times += timed
                if not known:
                    unread.append(f"/{path}")
                if what:
                    changes.append(self._changed(path, old, new, what, owners))
            else:
                changes.append(self._came_or_went(path, old, new, owners))
        return FileDrift(tuple(changes), times, tuple(unread))

    def _differing(self) -> Iterator[str]:
        """Paths that do not come from one layer that both have; what is there is looked up when it is needed."""
        then, now = self._then, self._now
        old_ids, new_ids = then.description.diff_ids, now.description.diff_ids
        for path, new in now.placed():
            old = then.get(path)
            if old is None:
                if not _is_implied(path, new, then):
                    yield path
            elif old_ids[old.layer] != new_ids[new.layer] or not new_ids[new.layer]:
                yield path
        for path, old in then.placed():
            if path not in now and not _is_implied(path, old, now):
                yield path

    def _sides(self, path: str) -> tuple[_Place | None, _Place | None]:
        old, new = self._then.get(path), self._now.get(path)
        return (
            _place(old, self._then) if old is not None else None,
            _place(new, self._now) if new is not None else None,
        )

    def _read(self, paths: Sequence[str], store: Store | None, observer: Observer) -> None:
        wanted: tuple[dict[str, None], dict[str, None]] = ({}, {})
        for path in paths:
            old, new = self._sides(path)
            if old is not None and new is not None and _needs_content(path, old.entry, new.entry):
                wanted[0][old.diff_id] = None
                wanted[1][new.diff_id] = None
        then = read_contents(self._before.source, wanted[0], store=store, observer=observer)
        both = {diff_id: then[diff_id] for diff_id in wanted[1] if diff_id and diff_id in then}
        rest = [diff_id for diff_id in wanted[1] if diff_id not in both]
        now = read_contents(self._after.source, rest, store=store, observer=observer)
        self._contents = then, {**both, **now}

    def _row(self, number: int, path: str, place: _Place) -> FileContent | None:
        content = self._contents[number].get(place.diff_id)
        return content.files.get(path) if content is not None else None

    def _what(self, path: str, old: _Place, new: _Place) -> tuple[tuple[str, ...], bool, bool]:
        """What differs, whether all could be told, and whether only the time differs."""
        what = _entry_differences(old.entry, new.entry)
        if "kind" in what:
            return ("kind",), True, False
        row, other = self._row(0, path, old), self._row(1, path, new)
        known = True
        if old.entry.kind == "file" and "content" not in what and old.entry.size:
            if row is None or other is None or not (row.sha256 and other.sha256):
                known = False
            elif row.sha256 != other.sha256:
                what = (*what, "content")
        if row is not None and other is not None and row.xattrs != other.xattrs:
            what = (*what, "xattrs")
        timed = not what and row is not None and other is not None and row.mtime != other.mtime
        order = ("content", "mode", "owner", "link", "xattrs")
        return tuple(name for name in order if name in what), known, timed

    def _changed(
        self, path: str, old: _Place, new: _Place, what: tuple[str, ...], owners: tuple[Owners, Owners]
    ) -> FileChange:
        row, other = self._row(0, path, old), self._row(1, path, new)
        form = form_of(path)
        same = row is not None and other is not None and bool(row.normal) and row.normal == other.normal
        return FileChange(
            path=f"/{path}",
            change="changed",
            what=what,
            owner=owners[1].owner(path) or owners[0].owner(path),
            kind=file_kind(path, new.entry, self._after.scan),
            noise=noise_of(path, "changed", what, form.name if form is not None and same else ""),
            before=_shown(old.entry, row, what),
            after=_shown(new.entry, other, what),
        )

    def _came_or_went(
        self, path: str, old: _Place | None, new: _Place | None, owners: tuple[Owners, Owners]
    ) -> FileChange:
        change: ChangeKind = "added" if new is not None else "removed"
        number, scan = (1, self._after.scan) if new is not None else (0, self._before.scan)
        place = new or old
        assert place is not None
        shown = _shown(place.entry, self._row(number, path, place), ())
        return FileChange(
            path=f"/{path}",
            change=change,
            what=(),
            owner=owners[number].owner(path),
            kind=file_kind(path, place.entry, scan),
            noise=noise_of(path, change, (), ""),
            before="" if new else shown,
            after=shown if new else "",
        )


def _place(placed: PlacedFile, files: ImageFiles) -> _Place:
    """Where the content is: names of a hard link are files, which is what whoever opens them sees."""
    entry, layer = placed
    entries = files.layers[layer].entries
    for _ in range(_MOST_LINKS):
        if entry.kind != "hardlink":
            break
        target = entries.get(entry.linkname)
        if target is None:
            found = files.get(entry.linkname)
            if found is None:
                break
            target = found.entry
        entry = target
    return _Place(entry, files.description.diff_ids[layer])


def _is_implied(path: str, placed: PlacedFile, other: ImageFiles) -> bool:
    """A folder that the other side has without an entry of its own, because something is in it."""
    return placed.entry.kind == "dir" and bool(other.names_in(path))


def _needs_content(path: str, old: FileEntry, new: FileEntry) -> bool:
    if old.kind != "file" or new.kind != "file":
        return False
    return (old.size == new.size and old.size > 0) or form_of(path) is not None


def _entry_differences(old: FileEntry, new: FileEntry) -> tuple[str, ...]:
    if old.kind != new.kind:
        return ("kind",)
    what = []
    if old.kind == "file" and old.size != new.size:
        what.append("content")
    if old.mode != new.mode and old.kind != "symlink":
        what.append("mode")
    if (old.uid, old.gid) != (new.uid, new.gid):
        what.append("owner")
    if old.linkname != new.linkname and old.kind == "symlink":
        what.append("link")
    return tuple(what)


def _shown(entry: FileEntry, row: FileContent | None, what: tuple[str, ...]) -> str:
    """What a person needs to see of one side; of a file that came or went its size or target."""
    parts = []
    if "kind" in what:
        parts.append(entry.kind)
    if entry.kind == "file" and (not what or "content" in what or "kind" in what):
        parts.append(f"{entry.size} bytes")
        if row is not None and row.sha256 and what:
            parts.append(f"sha256 {short_hex(row.sha256)}")
    if entry.kind == "symlink" and (not what or "link" in what or "kind" in what):
        parts.append(f"-> {entry.linkname}")
    if "mode" in what:
        parts.append(f"mode {entry.mode:04o}")
    if "owner" in what:
        parts.append(f"owner {entry.uid}:{entry.gid}")
    if "xattrs" in what:
        parts.append(f"xattrs {short_hex(row.xattrs)}" if row is not None and row.xattrs else "no xattrs")
    return ", ".join(parts) or entry.kind
