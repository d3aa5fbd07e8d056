"""Reading layer tars back, and trees to write them over."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

from stackbuild.layers.tar_writer import LayerTarWriter
from stackbuild.layers.tree import Additions, Entry, FileTree

# A base as Debian has it: merged /usr, a sticky /tmp, a mail folder of another group.
MERGED_USR = FileTree(
    {
        "bin": Entry("symlink", 0o777, linkname="usr/bin"),
        "lib": Entry("symlink", 0o777, linkname="usr/lib"),
        "usr": Entry("dir", 0o755),
        "usr/bin": Entry("dir", 0o755),
        "usr/bin/sh": Entry("symlink", 0o777, linkname="dash"),
        "usr/bin/dash": Entry("file", 0o755),
        "usr/lib": Entry("dir", 0o755),
        "tmp": Entry("dir", 0o1777),
        "opt": Entry("dir", 0o755),
        "var": Entry("dir", 0o755),
        "var/mail": Entry("dir", 0o2775, 0, 8, xattrs=(("user.kept", "yes"),)),
        "etc": Entry("dir", 0o755),
        "etc/passwd": Entry("file", 0o644, text="root:x:0:0:root:/root:/bin/sh\n"),
        "etc/group": Entry("file", 0o644, text="root:x:0:\n"),
    }
)


def layer(
    write: Callable[[LayerTarWriter], object], tree: FileTree = MERGED_USR, *, mirror: bool = False
) -> tuple[bytes, Additions]:
    """The tar that ``write`` makes, and its additions."""
    sink = io.BytesIO()
    writer = LayerTarWriter(sink, tree, mirror=mirror)
    write(writer)
    additions = writer.close()
    return sink.getvalue(), additions


def members(tar: bytes) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    """The tar's members by name, in order, with their content; a name twice is an error."""
    found: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for member in archive:
            assert member.name not in found, f"{member.name} is in the tar twice"
            content = archive.extractfile(member) if member.isreg() else None
            found[member.name] = (member, content.read() if content else b"")
    return found
