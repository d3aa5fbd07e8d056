"""``stackbuild diff`` as a person runs it, on saved images, layouts, locks and SBOMs."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.drift.model import Drift
from tests.drift.images import OS, SITE, archive, dist
from tests.drift.test_first_layer import ours
from tests.drift.test_sboms_and_locks import component, lock, sbom, wheel
from tests.nightly.page.pages import Page
from tests.support.layer_tars import Content, image_config, layer_tar, oci_layout_files
from tests.support.loopback import LoopbackServer, Response

GOLDEN = Path(__file__).parent / "golden"
WHEELS = "stackbuild: other wheels: numpy {}, six 1.16.0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STACKBUILD_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def layers(numpy: str, extra: dict[str, Content]) -> list[tuple[str, dict[str, Content]]]:
    wheels = {**dist("numpy", numpy, "License: BSD"), **dist("six", "1.16.0")}
    return [
        ("stackbuild: debian bookworm from 91 locked debs", OS),
        (WHEELS.format(numpy), wheels),
        ("stackbuild: files from app/", {"srv/app/serve.py": "run()\n", **extra}),
    ]


@pytest.fixture
def two(folder: Path) -> tuple[str, str]:
    """Two images: another numpy, one file changed, one of noise."""
    ours(folder / "a.tar", layers("1.26.4", {"srv/app/m.ini": "a=1\n", "var/log/x": "1"}), lock="1" * 64)
    ours(folder / "b.tar", layers("2.1.0", {"srv/app/m.ini": "a=2\n", "var/log/x": "2"}), lock="2" * 64)
    return "a.tar", "b.tar"


@pytest.mark.parametrize(("format_", "suffix"), [("table", "txt"), ("markdown", "md")])
def test_what_a_person_reads(
    two: tuple[str, str], format_: str, suffix: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["diff", *two, "-q", "--format", format_]) == 6
    shown = capfdbinary.readouterr().out.decode()
    golden = GOLDEN / f"diff.{suffix}"
    assert shown == golden.read_text(encoding="utf-8")


def test_json_is_the_whole_drift_and_alone_on_stdout(
    two: tuple[str, str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["diff", *two, "--format", "json"]) == 6
    drift = Drift.model_validate_json(capfdbinary.readouterr().out)
    assert drift.levels == ("pins", "packages", "files")
    assert [(item.name, item.breaking) for item in drift.packages] == [("numpy", True)]
    assert {(file.path, file.noise) for file in drift.files if file.change == "changed"} == {
        (f"/{SITE}/numpy.py", ""),
        ("/srv/app/m.ini", ""),
        ("/var/log/x", "log"),
    }
    assert drift.first_layer is not None
    assert drift.first_layer.inputs == ("numpy 1.26.4 → 2.1.0",)


def test_junit_and_html_have_the_findings(two: tuple[str, str], folder: Path) -> None:
    assert run(["diff", *two, "-q", "--format", "junit", "-o", "out.xml"]) == 6
    names = {case.get("name") for case in ElementTree.parse(folder / "out.xml").iter("testcase")}
    assert {"drift-pins", "drift-packages", "drift-files", "drift-breaking"} <= {
        str(name).split()[0] for name in names
    }
    # A CI system that reads only this must not be green where the exit code is 6.
    suites = ElementTree.parse(folder / "out.xml").getroot()
    assert int(suites.get("failures", "0")) > 0
    assert run(["diff", two[0], two[0], "-q", "--format", "junit", "-o", "same.xml"]) == 0
    assert ElementTree.parse(folder / "same.xml").getroot().get("failures") == "0"


def test_html_says_what_markdown_says(
    two: tuple[str, str], folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["diff", *two, "-q", "--format", "json"]) == 6
    drift = Drift.model_validate_json(capfdbinary.readouterr().out)
    assert run(["diff", *two, "-q", "--format", "html", "-o", "out.html"]) == 6
    text = (folder / "out.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "DRIFT: diff a.tar b.tar" in page.text
    assert "1 package, 8 files differ; 1 may break users." in page.text
    assert "numpy" in page.text
    assert "1.26.4 2.1.0 version yes The major version of numpy moved from 1 to 2." in page.text
    assert "/srv/app/m.ini: changed content" in page.text
    assert drift.before.digest in page.text
    assert drift.after.digest in page.text
    assert page.text.count("The major version of numpy moved") == 1
    assert "complete" not in page.text
    assert run(["diff", two[0], two[0], "-q", "--format", "html", "-o", "same.html"]) == 0
    assert "SAME: diff a.tar a.tar" in (folder / "same.html").read_text(encoding="utf-8")


def test_no_difference_is_0_whatever_the_form(two: tuple[str, str], folder: Path) -> None:
    tars = [layer_tar(content) for _, content in layers("2.1.0", {"a": "1"})]
    one = archive(folder / "one.tar", *tars)
    for compress in (True, False):
        layout = folder / f"layout-{compress}"
        for path, data in oci_layout_files(tars, compress=compress).items():
            (layout / path).parent.mkdir(parents=True, exist_ok=True)
            (layout / path).write_bytes(data)
        assert run(["diff", str(one), str(layout), "-q"]) == 0
        assert run(["diff", str(layout), str(one), "-q", "--no-store"]) == 0


def test_an_external_stack_is_its_image(folder: Path) -> None:
    archive(folder / "a.tar", layer_tar({"a": "1"}))
    (folder / "stacks").mkdir()
    (folder / "stacks/theirs.yaml").write_text("schema: 1\nname: theirs\nexternal: a.tar\n")
    assert run(["diff", "theirs", "a.tar", "-q"]) == 0


def test_an_archive_of_two_images(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    files: dict[str, Content] = {}
    manifest = []
    for number, text in ((1, "one"), (2, "two")):
        layer = layer_tar({"f": text})
        files |= {f"{number}.tar": layer, f"{number}.json": json.dumps(image_config([layer])).encode()}
        manifest.append(
            {"Config": f"{number}.json", "RepoTags": [f"made:{number}"], "Layers": [f"{number}.tar"]}
        )
    (folder / "two.tar").write_bytes(layer_tar({**files, "manifest.json": json.dumps(manifest).encode()}))
    assert run(["diff", "two.tar", "two.tar", "-q"]) == 5
    assert "[archive-has-several]" in capfdbinary.readouterr().err.decode()
    assert run(["diff", "two.tar", "two.tar", "-q", "--image", "made:1"]) == 0
    assert run(["diff", "two.tar", "two.tar", "-q", "--image", "made:1", "--image", "made:2"]) == 6


def test_a_folder_has_files_and_no_configuration(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "root/etc").mkdir(parents=True)
    (folder / "root/etc/os-release").write_text(str(OS["etc/os-release"]))
    (folder / "root/etc/os-release").chmod(0o644)
    (folder / "root/etc").chmod(0o755)
    archive(folder / "a.tar", layer_tar({"etc": None, **OS}), Env=["A=1"], User="7")
    (folder / "root/etc/more").write_text("1")
    assert run(["diff", "a.tar", "root", "-q", "--format", "json"]) == 6
    drift = Drift.model_validate_json(capfdbinary.readouterr().out)
    # Whoever runs this owns the folder.
    assert [file.path for file in drift.files if file.what != ("owner",)] == ["/etc/more"]
    assert (drift.pins, drift.first_layer) == ((), None)


def test_a_level_may_be_enough(two: tuple[str, str], folder: Path) -> None:
    same = ours(folder / "c.tar", layers("1.26.4", {"srv/app/m.ini": "a=3\n"}), lock="1" * 64)
    assert run(["diff", two[0], str(same), "-q"]) == 6
    assert run(["diff", two[0], str(same), "-q", "--level", "packages"]) == 0
    assert run(["diff", two[0], two[1], "-q", "--level", "pins"]) == 0


def write_locks(folder: Path) -> None:
    from stackbuild.lock.file import write_lock

    (folder / "stacks").mkdir()
    (folder / "stacks/demo.yaml").write_text(
        "schema: 1\nname: demo\nbase: {bootstrap: debian, suite: bookworm}\n"
    )
    write_lock(folder / "stacks/demo.lock", lock(wheel("numpy", "2.1.0"), wheel("six", "1.16.0")))
    write_lock(folder / "old.lock", lock(wheel("numpy", "1.26.4"), wheel("six", "1.16.0")))


def test_locks_by_path_and_by_the_stacks_name(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_locks(folder)
    assert run(["diff", "demo", "stacks/demo.lock", "-q"]) == 0
    capfdbinary.readouterr()
    assert run(["diff", "old.lock", "demo", "-q", "--format", "json"]) == 6
    drift = Drift.model_validate_json(capfdbinary.readouterr().out)
    assert (drift.before.kind, drift.after.name, drift.levels) == ("lock", "demo", ("pins", "packages"))
    assert [item.name for item in drift.packages] == ["numpy"]
    # A lock under any other name is a lock all the same.
    (folder / "lock.json").write_bytes((folder / "old.lock").read_bytes())
    assert run(["diff", "old.lock", "lock.json", "-q"]) == 0
    assert run(["diff", "old.lock", "demo", "-q", "--platform", "linux/arm64"]) == 3


def test_an_image_against_a_lock(
    two: tuple[str, str], folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_locks(folder)
    capfdbinary.readouterr()
    assert run(["diff", "demo", "b.tar", "-q", "--format", "json"]) == 6
    drift = Drift.model_validate_json(capfdbinary.readouterr().out)
    # libc6 is in the lock and not in this image; its pin list knows another base.
    assert [(item.name, item.change) for item in drift.packages] == [("libc6", "removed")]


def test_sboms(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (folder / "a.json").write_bytes(sbom(component("pkg:pypi/numpy", "1.26.4")))
    (folder / "b.cdx").write_bytes(b"\xef\xbb\xbf \n" + sbom(component("pkg:pypi/numpy", "2.1.0")))
    assert run(["diff", "a.json", "a.json", "-q"]) == 0
    assert run(["diff", "a.json", "b.cdx", "-q"]) == 6
    assert "numpy 1.26.4 → 2.1.0" in capfdbinary.readouterr().out.decode()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b'{"spdxVersion": "SPDX-2.3"}', "sbom-unreadable"),
        (b"{" * 1000, "sbom-unreadable"),
        (b'{"bomFormat": "CycloneDX", "components": 7}', "sbom-unreadable"),
        (b"garbage", "archive-damaged"),
        (b"", "archive-damaged"),
    ],
)
def test_what_cannot_be_read_is_5_and_has_a_code(
    folder: Path, content: bytes, code: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "x").write_bytes(content)
    (folder / "ok.json").write_bytes(sbom())
    assert run(["diff", "ok.json", "x", "-q"]) == 5
    captured = capfdbinary.readouterr()
    assert captured.out == b""
    assert f"[{code}]" in captured.err.decode()


def test_what_is_no_file_is_told_and_not_waited_for(
    two: tuple[str, str], folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    os.mkfifo(folder / "pipe")
    for name in ("pipe", "./pipe", "/dev/zero"):
        assert run(["diff", two[0], name, "-q"]) == 5
        assert "[archive-unknown]" in capfdbinary.readouterr().err.decode()


@pytest.mark.parametrize("name", ["x" * 300, "./" + "x" * 300, "a\0b", "", "\x1b]0;pwned\x07"])
def test_a_name_that_cannot_be_a_files_is_told(
    two: tuple[str, str], name: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["diff", two[0], name, "-q"]) in (2, 3, 5)
    said = capfdbinary.readouterr().err.decode()
    assert "[internal-error]" not in said
    assert "\x1b]" not in said


def test_a_cut_archive_is_5_at_any_length(two: tuple[str, str], folder: Path) -> None:
    whole = (folder / two[1]).read_bytes()
    for length in range(0, len(whole.rstrip(b"\0")), 4096):
        (folder / "cut.tar").write_bytes(whole[:length])
        assert run(["diff", two[0], "cut.tar", "-q"]) == 5, length


def test_a_layer_that_is_not_what_its_image_says_is_5(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    one = archive(folder / "one.tar", layer_tar({"a": "1"}))
    data = one.read_bytes()
    (folder / "two.tar").write_bytes(data.replace(b"1\0\0\0", b"2\0\0\0", 1))
    archive(folder / "other.tar", layer_tar({"a": "3"}))
    assert run(["diff", "other.tar", "two.tar", "-q"]) == 5
    assert "[layer-changed]" in capfdbinary.readouterr().err.decode()


def test_nothing_of_an_image_acts_on_a_terminal(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    evil = "srv/\x1b]0;pwned\x07\u202e\x9b31m|<b>`x`"
    archive(
        folder / "a.tar",
        layer_tar({evil: "1"}),
        history=["\x1b[2J"],
        Env=["A=\x1b[31m"],
        Labels={"\x1bl": "\r\n# x"},
    )
    archive(
        folder / "b.tar",
        layer_tar({evil: "2"}),
        history=["\x1b[2J"],
        Env=["A=\x1b[32m"],
        Labels={"\x1bl": "\n|y"},
    )
    for format_ in ("table", "markdown", "json", "html", "junit"):
        assert run(["diff", "a.tar", "b.tar", "-q", "-v", "--format", format_]) == 6
        shown = capfdbinary.readouterr().out.decode()
        assert not [letter for letter in shown if ord(letter) < 32 and letter not in "\n\t"], format_
        assert "\u202e" not in shown or format_ == "json"
        assert "\x9b" not in shown or format_ == "json"
        assert "<b>" not in shown or format_ in ("table", "json")


def test_other_platforms_are_told_before_anything_else(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    archive(folder / "a.tar", layer_tar({"a": "1"}))
    write_locks(folder)
    (folder / "arm.json").write_bytes(
        sbom(
            metadata={"component": {"properties": [{"name": "stackbuild:platform", "value": "linux/arm64"}]}}
        )
    )
    assert run(["diff", "a.tar", "arm.json", "-q"]) == 5
    assert "[platforms-differ]" in capfdbinary.readouterr().err.decode()


def test_usage(two: tuple[str, str]) -> None:
    assert run(["diff", two[0]]) == 2
    assert run(["diff", *two, "--level", "bytes"]) == 2
    assert run(["diff", *two, "--image", "a", "--image", "b", "--image", "c"]) == 2
    assert run(["diff", two[0], "./missing.tar", "-q"]) == 5


def test_a_spec_stands_for_its_lock(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_locks(folder)
    assert run(["diff", "old.lock", "stacks/demo.yaml", "--format", "json"]) == 6
    captured = capfdbinary.readouterr()
    drift = Drift.model_validate_json(captured.out)
    assert (drift.after.kind, drift.after.name) == ("lock", "stacks/demo.yaml")
    assert "stacks/demo.yaml is a spec: what is compared is its lock." in captured.err.decode()
    (folder / "stacks/demo.lock").unlink()
    assert run(["diff", "old.lock", "stacks/demo.yaml", "-q"]) == 3
    assert "[lock-missing]" in capfdbinary.readouterr().err.decode()


@pytest.mark.parametrize("name", ["./nope.lock", "nope.lock", "stacks/nope.lock"])
def test_a_lock_that_is_missing_is_told_as_a_lock(
    folder: Path, name: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_locks(folder)
    assert run(["diff", name, "old.lock", "-q"]) == 3
    said = capfdbinary.readouterr().err.decode()
    assert f"{name}: there is no such lock" in said
    assert "git show" in said
    assert "[lock-missing]" in said


def test_where_neither_engine_nor_registry_answers_both_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_locks(folder)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with LoopbackServer(lambda _: Response(403)) as server:
        (folder / "stackbuild.toml").write_text(f'[registries]\n"docker.io" = "127.0.0.1:{server.port}"\n')
        assert run(["diff", "dmeo", "old.lock", "-q"]) == 5
    said = capfdbinary.readouterr().err.decode()
    assert "No Docker engine answers." in said
    assert "Start Docker" in said
    # A word may have been meant as a stack's name.
    assert "No stack is called dmeo either. Did you mean 'demo'?" in said
