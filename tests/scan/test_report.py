"""The report of a scan: its schema is committed, and it says what it is about."""

from __future__ import annotations

import json
from datetime import date

from stackbuild.facts.tables import Facts
from stackbuild.reports.console import render_console
from stackbuild.reports.json_report import render_json
from stackbuild.scan.gates.judge import Expectations, judge_scan
from stackbuild.scan.report import ScanReport, scan_report
from stackbuild.scan.scan import scan_of
from tests.support.elf import make_elf, make_fatbin
from tests.support.layer_tars import image_files
from tests.support.report_schemas import committed_schema, report_schema


def made() -> ScanReport:
    files = image_files(
        {
            "etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n',
            "var/lib/dpkg/status": "Package: libc6\nStatus: install ok installed\nVersion: 2.39-0ubuntu8\n\n",
            "opt/lib/libk.so": make_elf(
                soname="libk.so", fatbin=make_fatbin(cubins=["sm_80"], ptx=["compute_90"])
            ),
            "opt/old": "12345",
        },
        {"opt/.wh.old": ""},
    )
    scan = scan_of(files)
    return scan_report(scan, judge_scan(scan, Expectations(), Facts(), date(2026, 11, 30)))


def test_the_committed_schema_is_current():
    assert committed_schema("scan.schema.json") == report_schema(ScanReport)


def test_the_report_holds_what_the_image_holds():
    value = json.loads(render_json(made()))
    assert value["kind"] == "scan"
    assert value["os"] == "Ubuntu 24.04 LTS"
    assert value["glibc"] == "2.39"
    assert [layer["hidden"] for layer in value["layers"]] == [5, 0]
    assert value["packages"] == [
        {"kind": "deb", "name": "libc6", "version": "2.39-0ubuntu8", "architecture": "", "layer": 0}
    ]
    assert value["gpu-code"][0]["cubins"] == {"sm_80": 1}
    assert value["gpu-code"][0]["ptx"] == {"compute_90": 1}
    assert ScanReport.model_validate_json(render_json(made())) == made()


def test_without_a_gpu_named_the_report_is_not_complete_where_there_is_gpu_code():
    assert made().complete is False
    assert "complete: false; not judged: arch-not-covered" in render_console(made(), colour=False)


def test_the_same_image_gives_the_same_bytes():
    assert render_json(made()) == render_json(made())
