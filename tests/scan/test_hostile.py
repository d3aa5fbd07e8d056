"""Images made to break a scanner: whatever they hold, the answer is a report or an error of ours."""

from __future__ import annotations

import json
import random
from datetime import date
from typing import Any

import pytest

from stackbuild.errors import ScanError
from stackbuild.facts.tables import Facts
from stackbuild.reports.console import render_console
from stackbuild.reports.json_report import render_json
from stackbuild.scan import loader
from stackbuild.scan.gates.judge import Expectations, judge_scan
from stackbuild.scan.report import scan_report
from stackbuild.scan.scan import scan_of
from tests.scan.test_contents import SITE
from tests.support.elf import make_elf
from tests.support.layer_tars import Content, image_files

HUGE = "9" * 6000


def reported(files: dict[str, Content], **run_config: Any) -> str:
    scan = scan_of(image_files(files, **run_config))
    report = scan_report(scan, judge_scan(scan, Expectations(), Facts(), date(2026, 11, 30)))
    render_console(report, colour=False, verbose=True).encode()
    text = render_json(report)
    text.encode()
    return text


@pytest.mark.parametrize(
    "files",
    [
        {"var/lib/dpkg/status": f"Package: a\nVersion: 1\nInstalled-Size: {HUGE}\n"},
        {"lib/apk/db/installed": f"P:a\nV:1\nI:{HUGE}\n\n"},
        {"opt/conda/conda-meta/a.json": r'{"name": "\ud800", "version": {"x": 1}, "channel": null}'},
        {"opt/conda/conda-meta/a.json": "[" * 100_000},
        {f"{SITE}/a-1.dist-info/direct_url.json": r'{"url": "\udfff", "archive_info": 3}'},
        {f"{SITE}/torch-1.dist-info/METADATA": "Name: torch\nVersion: not a version at all\n\n"},
        {f"{SITE}/torch-1.dist-info/METADATA": "Name: torch\nVersion: 1!2.0+cu130\n\n"},
        {f"{SITE}/o-1.dist-info/METADATA": "Name: onnxruntime-gpu\nVersion: v1.99\n\n"},
        {f"{SITE}/n-1.dist-info/METADATA": "Name: nvidia-cudnn-cu12\nVersion: v9.1\n\n"},
        {f"{SITE}/a-1.dist-info/METADATA": "Name: \nVersion:\n\n", f"{SITE}/a-1.dist-info/RECORD": "\0,\0,\0\n"},
        {
            f"{SITE}/a-1.dist-info/METADATA": "Name: a\nVersion: 1\n\n",
            f"{SITE}/a-1.dist-info/RECORD": f"../../../../../../../x,sha256=%%%,{HUGE}\n,,\n" + '"' + "x" * 200_000,
        },
        {"usr/lib/libcuda.so.570.": b"", "usr/lib/libcuda.so.999999.1": make_elf(soname="libcuda.so.1")},
        {"usr/local/cuda/compat/libcuda.so.1..2": make_elf(soname="libcuda.so.1")},
        {"usr/lib/libcudart.so.12.x": make_elf(soname="libcudart.so.")},
        {"etc/os-release": 'ID="\nVERSION_ID=\'\n' + "A=" + "\\" * 60_000},
        {"etc/ld.so.conf": "include *.conf\ninclude\n,,\nhwcap 1\n", "etc/a.conf": "include /etc/a.conf /etc/ld.so.conf\n"},
        {"a": "-> b", "b": "-> a", "etc/os-release": "-> ../a", "c": "=> d", "d": "=> c"},
        {"lib": "-> /lib", "opt/x.so": make_elf(needed=["../../etc/passwd", "", "a" * 3000], runpath="$ORIGIN/" * 50)},
        {"var/lib/rpm/rpmdb.sqlite": b"SQLite format 3\0" + bytes(5000)},
        {f"{SITE}/torch/version.py": "__version__ = \ncuda = 'x\n= = =\n"},
        {"bad\udcff".encode("utf-8", "surrogateescape").decode("latin-1"): "x"},
    ],
)  # fmt: skip
def test_hostile_files_give_a_report(files: dict[str, Content]):
    assert json.loads(reported(files))["kind"] == "scan"


@pytest.mark.parametrize(
    "run_config",
    [
        {"Env": ["CUDA_VERSION=12", "LD_LIBRARY_PATH=:::/$X:${ORIGIN}", "A"]},
        {"Env": {"A": "b"}, "Labels": ["x"]},
        {"Env": ["\ud800_TOKEN=\udfff"], "Labels": {"\ud800": 3}},
        {"Env": None, "Labels": None},
    ],
)
def test_hostile_configurations_give_a_report(run_config: dict[str, Any]):
    library = {"usr/local/cuda/lib64/libcudart.so.12.4.127": make_elf(soname="libcudart.so.12")}
    assert json.loads(reported(library, **run_config))["kind"] == "scan"


def test_libraries_that_load_each_other_in_circles_end():
    files: dict[str, Content] = {
        f"opt/{number}/lib{number}.so": make_elf(
            soname=f"lib{number}.so",
            needed=[f"lib{other}.so" for other in range(12)],
            rpath=":".join(f"/opt/{other}" for other in range(12)),
        )
        for number in range(12)
    }
    assert json.loads(reported(files))["complete"] is True


def test_libraries_that_name_a_hundred_folders_each_are_refused_before_all_are_searched(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(loader, "_MOST_SEARCHES", 50_000)
    names = [f"lib{number}.so" for number in range(100)]
    folders = ":".join(f"/opt/{number}" for number in range(100))
    files: dict[str, Content] = {
        f"opt/x/{number}.so": make_elf(soname=f"{number}.so", needed=names, runpath=folders)
        for number in range(30)
    }
    with pytest.raises(ScanError, match="places to search") as caught:
        reported(files)
    assert caught.value.code == "layer-too-large"


def test_text_files_overwritten_at_random_give_a_report():
    draw = random.Random(20240601)
    texts = {
        "var/lib/dpkg/status": "Package: libc6\nStatus: install ok installed\nVersion: 2.36\nInstalled-Size: 12\n\n",
        f"{SITE}/torch-2.13.0+cpu.dist-info/METADATA": "Name: torch\nVersion: 2.13.0+cpu\nRequires-Dist: a\n\n",
        f"{SITE}/torch-2.13.0+cpu.dist-info/RECORD": "torch/a.py,sha256=AAAA,3\ntorch/b.py,,\n",
        "etc/os-release": 'ID="debian"\nVERSION_ID="12"\n',
        "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n/opt\n",
        "opt/conda/conda-meta/a.json": '{"name": "a", "version": "1", "channel": "c", "subdir": "s"}',
    }
    for _ in range(60):
        files: dict[str, Content] = {}
        for path, text in texts.items():
            data = bytearray(text.encode())
            for _ in range(draw.randint(1, 6)):
                data[draw.randrange(len(data))] = draw.randrange(256)
            files[path] = bytes(data)
        try:
            reported(files)
        except ScanError as error:
            pytest.fail(f"a damaged text file is no damaged layer: {error}")
