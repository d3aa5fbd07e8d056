"""What is read out of an image's files: packages, Python, secrets, what is hidden."""

from __future__ import annotations

import base64
import hashlib
import io
import random
import sqlite3
import struct
import tracemalloc
from pathlib import Path

import pytest

from stackbuild.scan.layer_scanner import scan_tar
from stackbuild.scan.readers.rpm import RpmReader
from stackbuild.scan.readers.system import DpkgReader
from stackbuild.scan.scan import Scan, scan_of
from tests.support.layer_tars import Content, image_files, layer_tar

RPM = Path(__file__).parent / "fixtures/rpm"
SITE = "opt/venv/lib/python3.12/site-packages"


def record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def distribution(name: str, version: str, files: dict[str, bytes], site: str = SITE) -> dict[str, Content]:
    info = f"{name}-{version}.dist-info"
    record = "".join(record_line(path, data) for path, data in files.items())
    record += f"{info}/METADATA,,\n{info}/RECORD,,\n"
    return {
        site: None,
        **{f"{site}/{path}": data for path, data in files.items()},
        f"{site}/{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nText\n",
        f"{site}/{info}/RECORD": record,
    }


def scanned(*layers: dict[str, Content], **run_config: object) -> Scan:
    return scan_of(image_files(*layers, **run_config))


def test_debs_from_status_and_from_status_d():
    status = (
        "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\nArchitecture: amd64\n"
        "Installed-Size: 13000\nDescription: GNU C\n more text\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
        "Package: held\nStatus: hold ok installed\nVersion: 2\n\n"
    )
    scan = scanned(
        {"var/lib/dpkg/status": status, "var/lib/dpkg/status.d/base": "Package: base-files\nVersion: 12\n"}
    )
    assert [(item.kind, item.name, item.version) for item in scan.packages] == [
        ("deb", "base-files", "12"),
        ("deb", "held", "2"),
        ("deb", "libc6", "2.36-9"),
    ]
    assert scan.glibc == "2.36"


def test_apk_and_conda_packages():
    scan = scanned(
        {
            "lib/apk/db/installed": "C:Q1x\nP:musl\nV:1.2.5-r0\nA:x86_64\nI:622592\no:musl\n\nP:busybox\nV:1.36\n",
            "opt/conda/conda-meta/numpy-2.0-py312_0.json": '{"name": "numpy", "version": "2.0", "channel": "c"}',
            "opt/conda/conda-meta/broken.json": "{",
        }
    )
    assert [(item.kind, item.name, item.version, item.size) for item in scan.packages] == [
        ("apk", "busybox", "1.36", 0),
        ("apk", "musl", "1.2.5-r0", 622592),
        ("conda", "numpy", "2.0", 0),
    ]
    assert any("broken.json" in sentence for sentence in scan.unknown)


def rpm_header(**values: str) -> bytes:
    tags = {"name": 1000, "version": 1001, "release": 1002, "architecture": 1022}
    index, data = b"", b""
    for key, text in values.items():
        index += struct.pack(">IIII", tags[key], 6, len(data), 1)
        data += text.encode() + b"\0"
    return struct.pack(">II", len(values), len(data)) + index + data


def test_rpms_from_the_sqlite_database(tmp_path: Path):
    path = tmp_path / "rpmdb.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
    header = rpm_header(name="glibc", version="2.34", release="100.el9", architecture="x86_64")
    database.executemany("INSERT INTO Packages (blob) VALUES (?)", [(header,), (b"\0\0\0\xff",), (b"",)])
    database.commit()
    database.close()
    scan = scanned({"var/lib/rpm/rpmdb.sqlite": path.read_bytes()})
    assert [(item.name, item.version, item.architecture) for item in scan.packages] == [
        ("glibc", "2.34-100.el9", "x86_64")
    ]
    assert scan.glibc == "2.34"


RPM_DATABASES = {
    # Written by rpm 4.20 and by Berkeley DB 5.3; rpm 4.18 lists the same packages of the latter.
    "usr/lib/sysimage/rpm/Packages.db": ("Packages.db", ["alpha 1.5-3", "beta 2:1.4-3"]),
    "var/lib/rpm/Packages": ("Packages", ["alpha 1.5-3", "beta 2:1.4-3", "gamma 1.5-3"]),
    "usr/lib/sysimage/rpm/Packages": (
        "Packages.big-endian", ["alpha 1.5-3", "beta 2:1.4-3", "gamma 1.5-3", "tiny 9-1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", RPM_DATABASES)
def test_rpms_from_the_databases_of_suse_and_of_older_red_hats(path: str):
    name, expected = RPM_DATABASES[path]
    scan = scanned({path: (RPM / name).read_bytes()})
    assert [f"{item.name} {item.version}" for item in scan.packages] == expected
    assert {item.architecture for item in scan.packages} == {"noarch"}
    assert scan.packages[0].licences == ("MIT",)
    assert not any("rpm" in sentence for sentence in scan.unknown)


@pytest.mark.parametrize("path", RPM_DATABASES)
def test_a_damaged_rpm_database_is_told_and_never_raises(path: str):
    whole = (RPM / RPM_DATABASES[path][0]).read_bytes()
    draw = random.Random(98)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0xFF, draw.randrange(256)))
        # What is left of it may be read; what cannot be is None, and a sentence of the layer says so.
        assert isinstance(RpmReader().read(path, io.BytesIO(bytes(data))), list | None)
    for length in range(0, len(whole), 97):
        assert isinstance(RpmReader().read(path, io.BytesIO(whole[:length])), list | None)
    assert any("could not be read" in sentence for sentence in scanned({path: whole[:600]}).unknown)


def test_an_rpm_database_whose_entries_lie_over_each_other_does_not_fill_memory():
    """Two hundred slots that all lead to one blob."""
    data = bytearray((RPM / "Packages.db").read_bytes())
    used = next(at for at in range(32, 4096, 16) if data[at + 4 : at + 8] != bytes(4))
    for at in range(32, 4096, 16):
        data[at : at + 16] = data[used : used + 16]
    assert RpmReader().read("var/lib/rpm/Packages.db", io.BytesIO(bytes(data))) is None


def test_an_rpm_database_that_is_not_read_is_told():
    scan = scanned({"var/lib/rpm/Packages": b"\0" * 100})
    assert scan.packages == ()
    assert any("not known" in sentence for sentence in scan.unknown)


def test_a_large_dpkg_status_is_read_line_by_line():
    entry = b"Package: p\nStatus: install ok installed\nVersion: 1\nDescription: " + b"x" * 900 + b"\n\n"

    class Endless(io.RawIOBase):
        left = 100 << 20

        def readable(self) -> bool:
            return True

        def readinto(self, buffer) -> int:
            size = min(len(buffer), self.left)
            buffer[:size] = (entry * (size // len(entry) + 1))[:size]
            self.left -= size
            return size

    # A thousandth of it tells whether memory grows with the file.
    Endless.left = 8 << 20
    tracemalloc.start()
    found = DpkgReader().read("var/lib/dpkg/status", io.BufferedReader(Endless(), 1 << 16))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) > 1000
    assert peak < 6 << 20


def test_a_line_without_an_end_does_not_fill_memory():
    layer = scan_tar(io.BytesIO(layer_tar({"var/lib/dpkg/status": b"Package: " + b"a" * (2 << 20)})))
    (row,) = layer.facts["dpkg"]["var/lib/dpkg/status"]
    assert len(row[0]) <= 1 << 16


def test_metadata_in_latin_1_is_read():
    scan = scanned(
        {
            f"{SITE}/old-1.0.dist-info/METADATA": "Name: old\nVersion: 1.0\nSummary: Müller\n\n".encode(
                "latin-1"
            )
        }
    )
    (item,) = scan.python.distributions
    assert (item.name, item.metadata["summary"]) == ("old", "Müller")


def test_a_record_is_held_against_the_files():
    files = {"pkg/__init__.py": b"a = 1\n", "pkg/b.py": b"b = 2\n", "pkg/c.py": b"c\n"}
    made = distribution("pkg", "1.0", files)
    del made[f"{SITE}/pkg/c.py"]
    made[f"{SITE}/pkg/b.py"] = b"b = 3\n"
    (item,) = scanned(made).python.distributions
    assert item.record.listed == 5
    assert item.record.missing == (f"{SITE}/pkg/c.py",)
    assert item.record.changed == (f"{SITE}/pkg/b.py",)


def test_a_file_replaced_by_a_later_layer_counts_as_changed():
    made = distribution("pkg", "1.0", {"pkg/__init__.py": b"a = 1\n"})
    (item,) = scanned(made, {f"{SITE}/pkg/__init__.py": b"a = 2\n"}).python.distributions
    assert item.record.changed == (f"{SITE}/pkg/__init__.py",)


def test_a_record_in_another_layer_than_its_files_is_checked_too():
    made = distribution("pkg", "1.0", {"pkg/__init__.py": b"a = 1\n", "pkg/b.py": b"b\n"})
    files = {path: data for path, data in made.items() if "dist-info" not in path}
    rest = {path: data for path, data in made.items() if "dist-info" in path}
    (item,) = scanned(files, rest).python.distributions
    assert (item.record.changed, item.record.missing, item.record.unchecked) == ((), (), 0)
    files[f"{SITE}/pkg/b.py"] = b"other\n"
    (item,) = scanned(files, rest).python.distributions
    assert item.record.changed == (f"{SITE}/pkg/b.py",)


def test_vendored_distributions_are_marked():
    scan = scanned(
        {
            **distribution("setuptools", "80", {"setuptools/__init__.py": b""}),
            f"{SITE}/setuptools/_vendor/wheel-0.45.dist-info/METADATA": "Name: wheel\nVersion: 0.45\n\n",
        }
    )
    assert {item.name: item.vendored for item in scan.python.distributions} == {
        "setuptools": False,
        "wheel": True,
    }


KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ" * 4 + "\n"


def test_secrets_by_content_by_name_and_by_variable_hidden_ones_too():
    scan = scanned(
        {"root/.ssh/id_ed25519": KEY, "app/conf.ini": f"token = ghp_{'a1B2' * 9}\n", "srv/deploy": KEY},
        {"srv/.wh.deploy": "", "root/.netrc": "machine h login u password p\n"},
        Env=["HF_TOKEN=hf_x", "PATH=/bin", "EMPTY_TOKEN="],
    )
    assert {(item.where, item.hidden) for item in scan.secrets} == {
        ("root/.ssh/id_ed25519", False),
        ("app/conf.ini", False),
        ("srv/deploy", True),
        ("root/.netrc", False),
        ("HF_TOKEN", False),
    }


def test_samples_in_documentation_and_in_published_packages_are_no_secrets():
    scan = scanned(
        {
            "usr/share/doc/openssh/sample_key": KEY,
            **distribution("pkg", "1.0", {"pkg/sample.pem": KEY.encode()}),
        }
    )
    assert scan.secrets == ()


def test_a_key_put_beside_a_published_package_is_one():
    scan = scanned({**distribution("pkg", "1.0", {"pkg/a.py": b""}), f"{SITE}/pkg/mine.pem": KEY})
    assert [item.where for item in scan.secrets] == [f"{SITE}/pkg/mine.pem"]


def test_the_value_of_a_secret_is_never_kept():
    layer = scan_tar(io.BytesIO(layer_tar({"app/conf.ini": f"token = ghp_{'a1B2' * 9}\n"})))
    assert "a1B2" not in str(layer.to_record())


def test_set_uid_files_and_leftovers():
    tar = layer_tar({"opt/tool": "x", "usr/bin/su": "x"}, modes={"opt/tool": 0o4755, "usr/bin/su": 0o4755})
    assert {path for path, entry in scan_tar(io.BytesIO(tar)).entries.items() if entry.mode & 0o4000} == {
        "opt/tool",
        "usr/bin/su",
    }
    scan = scanned({"root/.cache/pip/http/a": b"x" * 2000, "var/lib/apt/lists/deb_Packages": b"y" * 3000})
    assert [(item.kind, item.size) for item in scan.leftovers] == [
        ("apt's package lists", 3000),
        ("pip's cache", 2000),
    ]


def test_savings_name_cuda_in_base_and_wheels():
    from tests.support.elf import make_elf

    library = make_elf(soname="libcublas.so.12") + bytes(4000)
    scan = scanned(
        {"usr/local/cuda-12.4/lib64/libcublas.so.12.4.5.8": library},
        distribution("nvidia_cublas_cu12", "12.4.5.8", {"nvidia/cublas/lib/libcublas.so.12": library}),
    )
    assert scan.savings[0].size == len(library)
    assert "cublas" in scan.savings[0].what


def test_a_metadata_field_without_a_colon_is_none():
    name = f"{SITE}/x-1.dist-info/METADATA"
    scan = scanned({name: "Name: x\nLicense\n a text\nVersion: 1\n"})
    assert [(item.name, item.version, item.metadata) for item in scan.python.distributions] == [
        ("x", "1", {"name": "x", "version": "1"})
    ]
