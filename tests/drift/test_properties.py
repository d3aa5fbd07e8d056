"""What holds for any two images."""

from __future__ import annotations

import io
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from stackbuild.drift.compare import compare_images
from stackbuild.drift.model import Drift, FileChange
from stackbuild.progress import SilentObserver
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.layer_scanner import scan_tar
from stackbuild.scan.sources.interface import Done, ImageDescription
from tests.support.layer_tars import Content, digest, layer_tar

PATHS = ["a", "d/x", "d/y", "etc/shadow", "opt/e/f", "var/log/l", "usr/bin/p"]
CONTENT = st.sampled_from(["", "1", "2", "22", "-> a", "-> b"])
LAYER = st.dictionaries(
    st.sampled_from([*PATHS, ".wh.a", "d/.wh.x", "opt/.wh..wh..opq"]), CONTENT, max_size=6
)
IMAGE = st.lists(LAYER, min_size=1, max_size=4)
MIRROR = {"added": "removed", "removed": "added", "changed": "changed"}


class MadeSource:
    """An image in memory."""

    def __init__(self, layers: list[dict[str, Content]]) -> None:
        self._tars = {digest(tar): tar for tar in map(layer_tar, layers)}
        self._ids = tuple(digest(layer_tar(layer)) for layer in layers)

    def describe(self) -> ImageDescription:
        config = {"os": "linux", "architecture": "amd64"}
        return ImageDescription("made", config, self._ids, commands=("",) * len(self._ids))

    def scan_layers(self, wanted: list[str], done: Done) -> None:
        for diff_id in wanted:
            done(diff_id, scan_tar(io.BytesIO(self._tars[diff_id]), seekable=True))

    def read_layers(self, wanted: list[str], reader: object, done: object) -> None:
        for diff_id in wanted:
            done(diff_id, reader.of_tar(io.BytesIO(self._tars[diff_id])))  # type: ignore[attr-defined, operator]

    def tree(self) -> dict[str, tuple[str, int, str]]:
        """What is there: path → kind, size, link target."""
        scanned = [scan_tar(io.BytesIO(self._tars[diff_id]), seekable=True) for diff_id in self._ids]
        placed = ImageFiles(self.describe(), scanned).placed()
        return {f"/{path}": (item.entry.kind, item.entry.size, item.entry.linkname) for path, item in placed}


def drift_of(before: MadeSource, after: MadeSource) -> Drift:
    return compare_images(before, after, observer=SilentObserver())  # type: ignore[arg-type]


def mirrored(file: FileChange) -> tuple[str, str, tuple[str, ...], str, str, str]:
    return (file.path, MIRROR[file.change], file.what, file.after, file.before, file.noise)


def plain(file: FileChange) -> tuple[str, str, tuple[str, ...], str, str, str]:
    return (file.path, file.change, file.what, file.before, file.after, file.noise)


@settings(max_examples=60)
@given(IMAGE)
def test_an_image_does_not_differ_from_itself(layers: list[dict[str, Content]]) -> None:
    drift = drift_of(MadeSource(layers), MadeSource(layers))
    assert not drift.differs
    assert drift.files == ()
    assert drift.first_layer is None


@settings(max_examples=60)
@given(IMAGE, IMAGE)
def test_the_other_way_round_is_the_mirror(
    before: list[dict[str, Content]], after: list[dict[str, Content]]
) -> None:
    one, other = MadeSource(before), MadeSource(after)
    forth, back = drift_of(one, other), drift_of(other, one)
    assert [mirrored(file) for file in forth.files] == [plain(file) for file in back.files]
    assert forth.differs == back.differs


@settings(max_examples=60)
@given(IMAGE, IMAGE)
def test_the_changes_lead_from_one_tree_to_the_other(
    before: list[dict[str, Content]], after: list[dict[str, Content]]
) -> None:
    one, other = MadeSource(before), MadeSource(after)
    then, now = one.tree(), other.tree()
    for file in drift_of(one, other).files:
        if file.change == "removed":
            del then[file.path]
        else:
            assert (file.path in then) is (file.change == "changed")
            then[file.path] = now[file.path]
    assert then == now


def test_what_a_mapping_of_layers_is_for() -> None:
    """A sample that no generator is needed for: one file replaced, one gone, one new."""
    layers: Mapping[str, Content] = {"a": "1", "d/x": "1"}
    drift = drift_of(MadeSource([dict(layers)]), MadeSource([{"a": "2", "d/y": "1"}]))
    assert [plain(file)[:2] for file in drift.files] == [
        ("/a", "changed"),
        ("/d/x", "removed"),
        ("/d/y", "added"),
    ]
