"""Which sources are compiled, and in which job."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from stackbuild.layers.bytecode_sources import STDLIB_FOLDER, WHEEL_FOLDER, find_sources, read_sources

SITE = "opt/venv/lib/python3.11/site-packages"


def _layer(path: Path, files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return path


def test_each_wheel_is_a_job_and_what_nobody_lists_is_one_more(tmp_path: Path) -> None:
    layer = _layer(
        tmp_path / "layer.tar",
        {
            f"{SITE}/nvidia/b/z.py": b"",
            f"{SITE}/nvidia/b/a.py": b"",
            f"{SITE}/nvidia/a/x.py": b"",
            f"{SITE}/nvidia/a/x.so": b"",
            f"{SITE}/stray.py": b"",
            f"{SITE}/nvidia/a/__pycache__/odd.py": b"",
            "opt/venv/bin/script.py": b"",
            f"{SITE}/a-1.dist-info/RECORD": b"nvidia/a/x.py,sha256=x,1\nnvidia/a/x.so,,\n../../../bin/script.py,,\n",
            f"{SITE}/b-1.dist-info/RECORD": b'nvidia/b/a.py,,\n"nvidia/b/z.py",,\n',
        },
    )
    sources = find_sources([layer], WHEEL_FOLDER)
    assert sources.jobs == (
        ("", (f"{SITE}/stray.py",)),
        ("a-1.dist-info", (f"{SITE}/nvidia/a/x.py",)),
        ("b-1.dist-info", (f"{SITE}/nvidia/b/a.py", f"{SITE}/nvidia/b/z.py")),
    )
    assert sources.count == 4


def test_a_shared_file_has_one_job_whatever_the_order_of_the_layers(tmp_path: Path) -> None:
    record = b"shared/__init__.py,,\n"
    one = _layer(
        tmp_path / "1.tar", {f"{SITE}/shared/__init__.py": b"", f"{SITE}/a-1.dist-info/RECORD": record}
    )
    two = _layer(
        tmp_path / "2.tar", {f"{SITE}/shared/__init__.py": b"", f"{SITE}/b-1.dist-info/RECORD": record}
    )
    expected = (("a-1.dist-info", (f"{SITE}/shared/__init__.py",)),)
    assert find_sources([one, two], WHEEL_FOLDER).jobs == expected
    assert find_sources([two, one], WHEEL_FOLDER).jobs == expected


def test_the_stdlib_is_jobbed_by_debian_package_and_takes_links(tmp_path: Path) -> None:
    layer = _layer(
        tmp_path / "debs.tar",
        {
            "usr/lib/python3.11/os.py": b"",
            "usr/lib/python3/dist-packages/yaml/__init__.py": b"",
            "usr/share/python3/debpython/files.py": b"",
            "var/lib/dpkg/info/libpython3.11-minimal:amd64.list": b"/.\n/usr\n/usr/lib/python3.11/os.py\n",
            "var/lib/dpkg/info/python3-yaml.list": b"/lib/python3/dist-packages/yaml/__init__.py\n",
        },
        links={"usr/lib/python3.11/sitecustomize.py": "/etc/python3.11/sitecustomize.py"},
    )
    assert find_sources([layer], STDLIB_FOLDER, links=True).jobs == (
        ("", ("usr/lib/python3.11/sitecustomize.py",)),
        ("libpython3.11-minimal:amd64", ("usr/lib/python3.11/os.py",)),
        ("python3-yaml", ("usr/lib/python3/dist-packages/yaml/__init__.py",)),
    )


def test_only_sources_are_sent(tmp_path: Path) -> None:
    layer = _layer(
        tmp_path / "layer.tar",
        {f"{SITE}/x/a.py": b"A = 1\n", f"{SITE}/x/lib.so": b"big", f"{SITE}/x/d.txt": b""},
    )
    assert list(read_sources([layer], WHEEL_FOLDER)) == [(f"/{SITE}/x/a.py", b"A = 1\n")]
