from __future__ import annotations

import json

import pytest
from packaging.version import Version

from stackbuild.resolution.wheels.index_bindings import Bindings
from stackbuild.resolution.wheels.index_page import JSON_TYPE, IndexFile, parse_page, write_page

SHA256 = "a" * 64
NAME = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"


def test_a_json_page() -> None:
    page = {
        "meta": {"api-version": "1.1"},
        "name": "torch",
        "files": [
            {
                "filename": NAME,
                "url": "../files/torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl",
                "hashes": {"sha256": SHA256, "md5": "x"},
                "size": 5,
                "upload-time": "2026-01-02T03:04:05.000Z",
                "requires-python": ">=3.10",
                "yanked": "too big",
                "core-metadata": {"sha256": SHA256},
            },
            {"filename": "torch-1.0.tar.gz", "url": "https://x.example/t", "hashes": {}, "yanked": True},
        ],
    }
    wheel, sdist = parse_page(json.dumps(page).encode(), JSON_TYPE, "https://i.example/simple/torch/")
    assert wheel == IndexFile(
        name=NAME,
        url="https://i.example/simple/files/torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl",
        sha256=SHA256,
        size=5,
        uploaded="2026-01-02T03:04:05.000Z",
        requires_python=">=3.10",
        yanked="too big",
        core_metadata=True,
    )
    assert wheel.version == Version("2.13.0+cpu")
    assert (sdist.version, sdist.is_wheel, sdist.yanked, sdist.sha256) == (Version("1.0"), False, "", None)


def test_an_html_page_as_torchs_channels_serve_it() -> None:
    html = f"""<!DOCTYPE html><html><body><h1>Links for torch</h1>
    <a href="/whl/cpu/torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl#sha256={SHA256}"
       data-requires-python="&gt;=3.10" data-dist-info-metadata="sha256=1" data-core-metadata="sha256=1">{NAME}</a><br/>
    <a href="https://other.example/torch-2.12.0-cp311-cp311-linux_x86_64.whl" data-yanked="">t</a><br/>
    <a href="odd.exe">odd.exe</a></body></html>"""
    first, second, odd = parse_page(
        html.encode(), "text/html; charset=utf-8", "https://d.example/whl/cpu/torch/"
    )
    assert first == IndexFile(
        name=NAME,
        url="https://d.example/whl/cpu/torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl",
        sha256=SHA256,
        requires_python=">=3.10",
        core_metadata=True,
    )
    assert (second.url, second.yanked, second.sha256) == (
        "https://other.example/torch-2.12.0-cp311-cp311-linux_x86_64.whl",
        "",
        None,
    )
    assert odd.version is None


def test_what_is_written_reads_back_the_same() -> None:
    files = (
        IndexFile(NAME, "https://h.example/x", SHA256, 7, "2026-01-02T03:04:05Z", ">=3.9", "why", True),
        IndexFile("a-1.0.tar.gz", "https://h.example/y"),
    )
    page = write_page("torch", [(file, file.url) for file in files])
    assert parse_page(page, JSON_TYPE, "https://h.example/simple/torch/") == files


def test_no_page() -> None:
    with pytest.raises(ValueError, match="without 'files'"):
        parse_page(b"{}", JSON_TYPE, "https://i.example/")


def test_case_b03_by_label_alone_the_last_in_the_alphabet_would_win() -> None:
    """PEP 440 orders local labels as text; so a variant is bound, never left to the order."""
    builds = ["2.9.1", "2.9.1+cpu", "2.9.1+cu126", "2.9.1+cu130", "2.9.1+rocm6.4", "2.9.1+xpu"]
    assert max(builds, key=Version) == "2.9.1+xpu"
    assert Version("2.0+cu92") > Version("2.0+cu110")
    bindings = Bindings({"torch": "pytorch-cu130"}, {"torch": "cu130"})
    assert [build for build in builds if bindings.admits("torch", Version(build))] == ["2.9.1", "2.9.1+cu130"]


@pytest.mark.parametrize(
    "body",
    [
        b"\x93\x00\xff binary",
        b"It works!",
        b"<html><a href='/login'>Log in</a> to go on</html>",
        b"<html><form action='/login'><input name='user'></form></html>",
    ],
)
def test_what_is_no_page_of_an_index_is_not_taken_for_one_without_files(body: bytes) -> None:
    with pytest.raises(ValueError, match="neither JSON nor HTML"):
        parse_page(body, "text/html", "https://i.example/simple/torch/")


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><html></html>", b"<html><a href='../'>Parent</a></html>"])
def test_a_project_may_have_no_files(body: bytes) -> None:
    files = parse_page(body, "text/html", "https://i.example/simple/torch/")
    assert not [file for file in files if file.is_wheel]


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[" * 100_000,
        b'{"files": [3]}',
        b'{"files": [{}]}',
        b'{"files": [{"filename": "a", "url": 3}]}',
    ],
)
def test_json_of_another_form_is_no_page(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its words are the caller's detail
        parse_page(body, JSON_TYPE, "https://i.example/simple/torch/")
