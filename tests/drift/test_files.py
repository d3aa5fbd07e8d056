"""Files of two images against each other."""

from __future__ import annotations

import io
import os
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from stackbuild.drift.files import _needs_content
from stackbuild.drift.layer_content import ContentReader
from stackbuild.drift.model import Drift, FileChange
from stackbuild.errors import ScanError
from stackbuild.findings import Verdict
from stackbuild.scan.entries import FileEntry
from stackbuild.store.store import Store
from tests.drift.images import OS, SITE, archive, compared, deb, dist, of_layers
from tests.drift.test_noise import CODE, compiled
from tests.support.elf import make_elf
from tests.support.layer_tars import Content, layer_tar
from tests.support.rpm_databases import rpm, rpm_database


def changes(drift: Drift) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {file.path: (file.change, file.what) for file in drift.files if not file.noise}


def only(drift: Drift) -> FileChange:
    (file,) = drift.files
    return file


def verdict(drift: Drift, code: str) -> Verdict:
    return next(finding.verdict for finding in drift.findings if finding.code == code)


def test_the_same_image_does_not_differ(tmp_path: Path) -> None:
    drift = of_layers(tmp_path, [OS, {"a": "1"}], [OS, {"a": "1"}])
    assert not drift.differs
    assert (drift.pins, drift.packages, drift.files, drift.metadata, drift.first_layer) == (
        (),
        (),
        (),
        (),
        None,
    )
    assert {finding.verdict for finding in drift.findings} == {Verdict.PASS}


def test_h01_two_clean_builds_differ_in_metadata_only(tmp_path: Path) -> None:
    """Case H01: other digests, the same content: PASS, and not drift."""

    def built(name: str, moment: int) -> Path:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for path in ("app", "app/serve.py"):
                member = tarfile.TarInfo(path)
                member.mtime = moment
                if path == "app":
                    member.type = tarfile.DIRTYPE
                else:
                    member.size = 4
                tar.addfile(member, io.BytesIO(b"run\n"))
        created = f"20{moment % 100:02}-01-01T00:00:00Z"
        return archive(tmp_path / name, layer_tar(OS), stream.getvalue(), created=created)

    drift = compared(built("a.tar", 1_700_000_021), built("b.tar", 1_700_000_022))
    assert drift.before.digest != drift.after.digest
    assert not drift.differs
    assert drift.files == ()
    (finding,) = [item for item in drift.findings if item.code == "nondeterministic-metadata"]
    assert finding.verdict is Verdict.PASS
    assert "created 2021-01-01T00:00:00Z → 2022-01-01T00:00:00Z" in finding.summary
    assert "the times of 2 files" in finding.summary
    assert {item.verdict for item in drift.findings} == {Verdict.PASS}
    assert drift.complete
    assert drift.first_layer is not None
    assert drift.first_layer.number == 2


@pytest.mark.parametrize(
    ("before", "after", "what", "shown"),
    [
        ("one", "two", ("content",), ("3 bytes, sha256 7692c3ad3540", "3 bytes, sha256 3fc4ccfe7458")),
        ("one", "three", ("content",), ("3 bytes", "5 bytes")),
        ("-> a", "-> b", ("link",), ("-> a", "-> b")),
        ("one", "-> b", ("kind",), ("file", "symlink")),
        (None, "x", ("kind",), ("dir", "file")),
        ("", "", (), ()),
    ],
)
def test_what_differs_in_one_file(
    tmp_path: Path, before: Content, after: Content, what: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    drift = of_layers(tmp_path, [{"srv/f": before}], [{"srv/f": after, "z": "1"}])
    if not what:
        assert [file.path for file in drift.files] == ["/z"]
        return
    file = next(item for item in drift.files if item.path == "/srv/f")
    assert (file.change, file.what) == ("changed", what)
    for text, value in zip(shown, (file.before, file.after), strict=True):
        assert text in value


def test_mode_owner_and_capabilities_are_told_apart(tmp_path: Path) -> None:
    def layer(mode: int, uid: int, capability: str) -> bytes:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            member = tarfile.TarInfo("usr/bin/ping")
            member.mode, member.uid, member.size = mode, uid, 4
            capabilities = {"SCHILY.xattr.security.capability": capability} if capability else {}
            member.pax_headers = {**capabilities, "SCHILY.xattr.security.selinux": f"label of host {uid}"}
            tar.addfile(member, io.BytesIO(b"\x7fEL?"))
        return stream.getvalue()

    before = archive(tmp_path / "a.tar", layer(0o755, 0, ""))
    for number, (mode, uid, capability, what) in enumerate(
        [
            (0o4755, 0, "", ("mode",)),
            (0o755, 7, "", ("owner",)),
            (0o755, 0, "\x01net_raw", ("xattrs",)),
            (0o711, 7, "\x01net_raw", ("mode", "owner", "xattrs")),
        ]
    ):
        drift = compared(before, archive(tmp_path / f"{number}.tar", layer(mode, uid, capability)))
        assert only(drift).what == what
    assert only(drift).before == "mode 0755, owner 0:0, no xattrs"
    assert only(drift).after.startswith("mode 0711, owner 7:0, xattrs ")


def test_whiteouts_and_opaque_folders_count(tmp_path: Path) -> None:
    base: dict[str, Content] = {"a": "1", "d": None, "d/x": "1", "d/y": "2"}
    drift = of_layers(tmp_path, [base], [base, {".wh.a": "", "d": None, "d/.wh..wh..opq": "", "d/y": "2"}])
    assert changes(drift) == {"/a": ("removed", ()), "/d/x": ("removed", ())}


def test_the_same_file_from_another_layer_is_no_difference(tmp_path: Path) -> None:
    """How files are spread over layers is not content."""
    drift = of_layers(tmp_path, [{"a": "1", "b": "2"}], [{"a": "1"}, {"b": "2"}])
    assert not drift.differs
    assert drift.metadata[-1] == "how the layers are cut or written; every file is the same"


def test_a_folder_that_only_its_files_imply_is_there(tmp_path: Path) -> None:
    drift = of_layers(tmp_path, [{"d": None, "d/x": "1"}], [{"d/x": "1"}])
    assert not drift.differs
    drift = of_layers(tmp_path, [{"d": None, "e": "1"}], [{"e": "1"}])
    assert changes(drift) == {"/d": ("removed", ())}


def test_names_of_a_hard_link_are_files(tmp_path: Path) -> None:
    linked: dict[str, Content] = {"bin/a": "code", "bin/b": "=> bin/a"}
    copied: dict[str, Content] = {"bin/a": "code", "bin/b": "code"}
    assert not of_layers(tmp_path, [linked], [copied]).differs
    changed: dict[str, Content] = {"bin/a": "code", "bin/b": "mode"}
    assert changes(of_layers(tmp_path, [linked], [changed])) == {"/bin/b": ("changed", ("content",))}


def test_stamps_of_byte_code_are_noise_and_code_is_not(tmp_path: Path) -> None:
    path = f"{SITE}/__pycache__/m.cpython-311.pyc"
    stamped = [compiled(tmp_path, CODE, moment=moment) for moment in (1_700_000_000, 1_800_000_000)]
    drift = of_layers(tmp_path, [{path: stamped[0]}], [{path: stamped[1]}])
    assert only(drift).noise == "byte-code-stamp"
    assert not drift.differs
    assert "1 file of known noise (byte-code-stamp 1)" in drift.metadata
    other = compiled(tmp_path, CODE.replace("1", "2"))
    drift = of_layers(tmp_path, [{path: stamped[0]}], [{path: other}])
    assert only(drift).noise == ""
    assert only(drift).kind == "byte-code"
    assert drift.differs
    assert verdict(drift, "drift-files") is Verdict.WARN


def test_each_file_has_its_owner_and_kind(tmp_path: Path) -> None:
    before: dict[str, Content] = {
        "var/lib/dpkg/status": deb("libx1", "2.0") + deb("tool", "1.0"),
        "var/lib/dpkg/info/libx1:amd64.list": "/.\n/lib/x86_64-linux-gnu/libx.so.1\n",
        "var/lib/dpkg/info/tool.list": "/usr/bin/tool\n/usr/share/tool\n/usr/share/tool/data\n",
        "usr/lib/x86_64-linux-gnu/libx.so.1": make_elf(soname="libx.so.1"),
        "usr/bin/tool": "#!/bin/sh\n",
        "usr/share/tool": None,
        "usr/share/tool/data": "1",
        "usr/share/doc/tool/copyright": "1",
        "srv/own": "1",
        **dist("Thing", "1.0"),
        f"{SITE}/__pycache__/Thing.cpython-311.pyc": b"1",
    }
    after = {
        **before,
        "usr/lib/x86_64-linux-gnu/libx.so.1": make_elf(soname="libx.so.1", needed=["liby.so.1"]),
        "usr/share/tool/data": "2",
        "usr/share/doc/tool/copyright": "2",
        "srv/own": "2",
        f"{SITE}/Thing.py": "V = '1.1'\n",
        f"{SITE}/__pycache__/Thing.cpython-311.pyc": b"2",
    }
    drift = of_layers(tmp_path, [before], [after])
    assert {file.path: (file.owner, file.kind) for file in drift.files} == {
        "/usr/lib/x86_64-linux-gnu/libx.so.1": ("libx1 2.0", "library"),
        "/usr/share/tool/data": ("tool 1.0", "data"),
        "/usr/share/doc/tool/copyright": ("tool 1.0", "documentation"),
        "/srv/own": ("", "data"),
        f"/{SITE}/Thing.py": ("thing 1.0", "python"),
        f"/{SITE}/__pycache__/Thing.cpython-311.pyc": ("thing 1.0", "byte-code"),
    }
    replaced = {package.name: (package.what, package.before, package.after) for package in drift.packages}
    assert replaced == {
        "libx1": (("hash",), "2.0", "2.0; 1 of its files differs"),
        "thing": (("hash",), "1.0", "1.0; 1 of its files differs"),
        "tool": (("hash",), "1.0", "1.0; 2 of its files differ"),
    }


def test_a_folder_is_of_the_only_package_that_lists_it(tmp_path: Path) -> None:
    files: dict[str, Content] = {
        "usr": None,
        "usr/share": None,
        "usr/share/tool": None,
        "var/lib/dpkg/status": deb("libx1", "2.0") + deb("tool", "1.0"),
        "var/lib/dpkg/info/libx1.list": "/usr\n/usr/share\n",
        "var/lib/dpkg/info/tool.list": "/usr\n/usr/share\n/usr/share/tool\n",
        f"{SITE}/thing": None,
        **dist("thing", "1.0", files={"thing/a.py": "1", "thing/b/c.py": "1"}),
        f"{SITE}/thing/b": None,
    }
    folders = ("usr/share", "usr/share/tool", f"{SITE}/thing", f"{SITE}/thing/b")
    before = archive(tmp_path / "a.tar", layer_tar(files))
    after = archive(tmp_path / "b.tar", layer_tar(files, dict.fromkeys(folders, 0o700)))
    owners = {file.path[1:]: (file.owner, file.kind) for file in compared(before, after).files}
    named = ("", "tool 1.0", "thing 1.0", "thing 1.0")
    assert owners == {path: (owner, "directory") for path, owner in zip(folders, named, strict=True)}


def test_files_of_rpms_are_told_with_their_package_and_replaced_ones_are_packages(tmp_path: Path) -> None:
    """What a package names and others write (%ghost) does not make it another."""
    before: dict[str, Content] = {
        "lib64": "-> usr/lib64",
        "usr/lib64": None,
        "usr/lib64/liba.so.1": make_elf(soname="liba.so.1"),
        "usr/share/shared": "1",
        "var/lib/a/state": "1",
        "srv/loose": "1",
        "usr/lib/sysimage/rpm/rpmdb.sqlite": rpm_database(
            rpm("liba", "2", files=["/lib64/liba.so.1", "/usr/share/shared"], ghosts=["/var/lib/a/state"]),
            rpm("other", "1", files=["/usr/share/shared"]),
        ),
    }
    after = {
        **before,
        "usr/lib64/liba.so.1": make_elf(soname="liba.so.1", needed=["libc.so.6"]),
        **dict.fromkeys(("usr/share/shared", "var/lib/a/state", "srv/loose"), "2"),
    }
    drift = of_layers(tmp_path, [before], [after])
    assert {file.path: file.owner for file in drift.files} == {
        "/srv/loose": "",
        "/usr/lib64/liba.so.1": "liba 2-1",
        "/usr/share/shared": "",
        "/var/lib/a/state": "",
    }
    assert [(item.kind, item.name, item.after) for item in drift.packages] == [
        ("rpm", "liba", "2-1; 1 of its files differs")
    ]


def test_configuration_and_entry_points_do_not_make_a_package_another(tmp_path: Path) -> None:
    script = "opt/venv/bin/thing"
    installed = dist("thing", "1.0")
    installed[f"{SITE}/thing-1.0.dist-info/RECORD"] = (
        "thing.py,,\n../../../bin/thing,,\nthing-1.0.dist-info/METADATA,,\n"
    )
    before: dict[str, Content] = {**installed, script: "#!/a\n", "etc/thing.conf": "1"}
    drift = of_layers(tmp_path, [before], [{**before, script: "#!/b\n", "etc/thing.conf": "2"}])
    assert drift.packages == ()
    assert len(drift.files) == 2


def test_shared_layers_are_not_read_and_others_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big = layer_tar({f"lib/{number}": "x" * 100 for number in range(50)})
    one, two = layer_tar({"a": "1", "b": "22"}), layer_tar({"a": "2", "b": "333"})
    read: list[str] = []
    original = ContentReader.of_tar

    def counted(self: ContentReader, *arguments: object, **options: object) -> object:
        read.append(str(options["where"]))
        return original(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ContentReader, "of_tar", counted)
    store = Store(tmp_path / "store")
    before, after = archive(tmp_path / "a.tar", big, one), archive(tmp_path / "b.tar", big, two)
    first = compared(before, after, store=store)
    assert [name.rpartition(": ")[2] for name in read] == ["1/layer.tar", "1/layer.tar"]
    assert compared(before, after, store=store) == first
    assert len(read) == 2  # the store has the content of both


def test_content_is_not_read_where_sizes_say_enough() -> None:
    one, two = FileEntry("file", 0o644, size=1), FileEntry("file", 0o644, size=2)
    assert not _needs_content("srv/a", one, two)
    assert _needs_content("srv/a", one, one)
    assert _needs_content("etc/shadow", one, two)
    assert not _needs_content("srv/a", one, FileEntry("dir", 0o755))
    assert not _needs_content("srv/a", one._replace(size=0), one._replace(size=0))


@pytest.mark.parametrize("attribute", ["trusted.overlay.redirect", "trusted.overlay.metacopy"])
def test_a_layer_whose_content_lies_in_another_folder_is_not_read_from_its_own(
    tmp_path: Path, attribute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("1")
    monkeypatch.setattr(os, "listxattr", lambda path, *, follow_symlinks: [attribute])
    with pytest.raises(ScanError) as caught:
        ContentReader().of_folder(tmp_path)
    assert caught.value.code == "layer-unreadable"


def test_a_layer_gives_the_same_content_from_its_folder_and_its_tar(tmp_path: Path) -> None:
    root = tmp_path / "layer"
    (root / "d").mkdir(parents=True)
    (root / "d/a").write_bytes(b"content" * 1000)
    (root / "d/empty").write_bytes(b"")
    (root / "m.pyc").write_bytes(compiled(tmp_path, CODE))
    (root / "d/z").hardlink_to(root / "d/a")
    (root / "d/s").symlink_to("a")
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    (root / "var/lib/dpkg/info/p.list").write_text("/.\n/d/a\n")
    tar_path = tmp_path / "layer.tar"
    with tarfile.open(tar_path, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, str(path.relative_to(root)), recursive=False)
    with tar_path.open("rb") as stream:
        from_tar = ContentReader().of_tar(stream)
    from_folder = ContentReader().of_folder(root)
    assert from_tar == from_folder
    assert from_folder.files["d/z"] == from_folder.files["d/a"]
    assert from_folder.deb_files == {"p:": (".", "d/a")}
    assert from_folder.from_record(from_folder.to_record()) == from_folder


def test_one_of_very_many_changes_takes_little_memory() -> None:
    paths = [f"/opt/{number}" for number in range(2_000)]
    tracemalloc.start()
    try:
        made = [FileChange(path, "changed", ("content",), "numpy 2.1.0", "text") for path in paths]
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken / len(made) < 200
    assert TypeAdapter(tuple[FileChange, ...]).dump_python((made[0],), mode="json") == [
        {
            "path": "/opt/0",
            "change": "changed",
            "what": ["content"],
            "owner": "numpy 2.1.0",
            "kind": "text",
            "noise": "",
            "before": "",
            "after": "",
        }
    ]
