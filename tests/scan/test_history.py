"""Case H03: installers that a build fetched without a version, as the image's history tells."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.scan.gates.judge import Expectations, judge_scan
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.scan import scan_of
from tests.support.layer_tars import image_files


def judged(*created_by: str) -> list[Finding]:
    files = image_files({"etc/os-release": "ID=debian\n"})
    history = [{"created_by": command} for command in created_by]
    description = replace(files.description, config={**files.description.config, "history": history})
    scan = scan_of(ImageFiles(description, files.layers))
    findings = judge_scan(scan, Expectations(), Facts(), date(2026, 11, 30))
    return [finding for finding in findings if finding.code == "unpinned-installer"]


@pytest.mark.parametrize(
    ("command", "url"),
    [
        ("ADD https://astral.sh/uv/install.sh /i.sh # buildkit", "https://astral.sh/uv/install.sh"),
        (
            "RUN /bin/sh -c curl -LsSf https://astral.sh/uv/install.sh | sh # buildkit",
            "https://astral.sh/uv/install.sh",
        ),
        (
            "/bin/sh -c apt-get update && wget -qO- https://x.example/get | sudo -E bash -",
            "https://x.example/get",
        ),
        (
            "|1 TOKEN= /bin/sh -c curl https://x.example/rustup.sh | sh -s -- -y",
            "https://x.example/rustup.sh",
        ),
        ("/bin/sh -c curl http://192.0.2.7/install | sh", "http://192.0.2.7/install"),
        ('/bin/sh -c sh -c "$(curl -fsSL https://x.example/install.sh)"', "https://x.example/install.sh"),
        ("/bin/sh -c bash <(curl -s https://x.example/i.sh) --yes", "https://x.example/i.sh"),
        ("/bin/sh -c curl -sSL https://install.example.org | python3 -", "https://install.example.org"),
        ("RUN |2 A=1 B= /bin/sh -c curl https://x.example/i | env X=1 /bin/bash", "https://x.example/i"),
        (
            "ADD --chmod=755 https://x.example/latest/tool /usr/bin/tool # buildkit",
            "https://x.example/latest/tool",
        ),
    ],
)
def test_an_installer_without_a_version_is_a_warning(command: str, url: str) -> None:
    (finding,) = judged('/bin/sh -c #(nop) CMD ["bash"]', command)
    assert (finding.verdict, finding.subject) == (Verdict.WARN, url)
    assert finding.details["step"] == 2
    assert finding.next_step


@pytest.mark.parametrize(
    "command",
    [
        "RUN /bin/sh -c curl -LsSf https://astral.sh/uv/0.5.11/install.sh | sh # buildkit",
        "RUN /bin/sh -c curl https://raw.example/o/r/3f786850e387550fdab836ed7e6dc881de23001b/i.sh | sh",
        "ADD https://x.example/tool-1.2.tar.gz /src/ # buildkit",
        "ADD --checksum=sha256:aa https://x.example/latest /x # buildkit",
        'RUN /bin/sh -c curl -fsSLo i https://x.example/i && echo "aa  i" | sha256sum -c && sh i',
        "RUN /bin/sh -c curl -fsSL https://x.example/key.gpg | gpg --dearmor -o /etc/apt/keyrings/x.gpg",
        "RUN /bin/sh -c curl -s https://x.example/health | grep ok",
        "/bin/sh -c #(nop) ADD file:0a1b in / ",
        "COPY app /srv/app # buildkit",
        "RUN /bin/sh -c pip install https://x.example/a.whl",
    ],
)
def test_what_cannot_move_or_is_not_run_is_well(command: str) -> None:
    (finding,) = judged(command)
    assert finding.verdict is Verdict.PASS


def test_an_image_without_history_has_nothing_to_judge() -> None:
    (finding,) = judged()
    assert (finding.verdict, finding.applies) == (Verdict.SKIP, False)


def test_a_hostile_history_takes_no_time() -> None:
    for text in (
        "curl " * 20_000,
        "curl https://" + "a" * 100_000,
        "env " + "a=" * 50_000,
        "|1 " + "A=" * 50_000,
    ):
        judged(text)
    (finding,) = judged("ADD https://x.example/\udc80 /x")
    finding.summary.encode()
