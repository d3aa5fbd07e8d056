"""What made each layer of an image in the engine, which gives sizes in place of a mark for layers."""

from __future__ import annotations

from stackbuild.engine.models import ImageInfo
from stackbuild.scan.sources.engine import _history
from stackbuild.scan.sources.interface import commands_of


def commands(layers: int, *entries: tuple[str, int]) -> tuple[str, ...]:
    image = ImageInfo(
        id="sha256:1",
        config={},
        diff_ids=tuple(f"sha256:{number}" for number in range(layers)),
        repo_tags=(),
        repo_digests=(),
        created="",
        size=0,
        architecture="amd64",
        os="linux",
        history=tuple({"CreatedBy": text, "Size": size} for text, size in reversed(entries)),
    )
    return commands_of({"history": _history(image)}, layers)


def test_entries_without_size_are_without_layer() -> None:
    found = commands(1, ("ADD rootfs", 100), ("RUN /bin/sh -c true # buildkit", 0), ("CMD sh", 0))
    assert found == ("ADD rootfs",)


def test_a_layer_of_folders_alone_has_no_size_and_is_one() -> None:
    made = "/bin/sh -c install -d /home/app"
    found = commands(
        3,
        ("ADD rootfs", 100),
        ("/bin/sh -c useradd app", 5),
        (made, 0),
        ("/bin/sh -c #(nop)  ENV A=1", 0),
        ("/bin/sh -c #(nop)  CMD [bash]", 0),
        ("USER app", 0),
        ("LABEL a=b", 0),
    )
    assert found == ("ADD rootfs", "/bin/sh -c useradd app", made)


def test_what_does_not_fit_is_not_known() -> None:
    assert commands(3, ("ADD rootfs", 100), ("CMD sh", 0)) == ("", "", "")
