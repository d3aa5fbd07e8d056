"""The image's own entrypoint as a service: started, awaited, asked from inside, without network."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stackbuild.engine.docker_engine import Engine
from stackbuild.findings import Finding, Verdict
from stackbuild.progress import SilentObserver
from stackbuild.spec.model import StackSpec
from stackbuild.verification.promise import promise_of_spec
from stackbuild.verification.verify import VerifyOptions, verify_image

pytestmark = pytest.mark.engine

SERVER = """
import http.server, json, os, sys
if os.environ.get("FAILS"):
    sys.exit("no model at " + os.environ["FAILS"])
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer("ready")
    def do_POST(self):
        numbers = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer({"sum": sum(numbers) * float(os.environ.get("FACTOR", "1")), "label": "total"})
print("listening", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
"""
CODES = ("service-ready", "service-answer", "service-latency")


@pytest.fixture
def image(engine: Engine, debian_python_image: str, image_name: Callable[[str], str]) -> str:
    """Debian with Python, whose entrypoint is a small service."""
    ref = image_name("service")
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        entry = tarfile.TarInfo("srv/server.py")
        entry.size = len(SERVER)
        archive.addfile(entry, io.BytesIO(SERVER.encode()))
    with engine.container(debian_python_image, ["/"]) as container:
        container.put("/", raw.getvalue())
        repository, tag = ref.rsplit(":", 1)
        started = {"Entrypoint": ["python3"], "Cmd": ["/srv/server.py"], "User": "1234"}
        engine._api.commit(container.id, repository, tag, conf=started)
    return ref


def test_a_service_that_answers_as_recorded_passes(engine: Engine, image: str, tmp_path: Path) -> None:
    found = _verified(engine, image, tmp_path)
    assert [found[code].verdict for code in CODES] == [Verdict.PASS] * 3
    assert "20 requests, 4 at a time" in found["service-latency"].summary


def test_another_answer_and_a_late_one_fail(engine: Engine, image: str, tmp_path: Path) -> None:
    found = _verified(engine, image, tmp_path, environment={"FACTOR": "1.01"}, latency=0.001)
    assert found["service-answer"].verdict is Verdict.FAIL
    assert "answer.sum is 6.06" in found["service-answer"].summary
    assert found["service-latency"].verdict is Verdict.FAIL


def test_an_entrypoint_that_ends_fails_with_its_words(engine: Engine, image: str, tmp_path: Path) -> None:
    found = _verified(engine, image, tmp_path, environment={"FAILS": "/models"})
    assert found["service-ready"].verdict is Verdict.FAIL
    assert "exit code 1" in found["service-ready"].summary
    assert "no model at /models" in found["service-ready"].details["log"]
    assert found["service-answer"].verdict is Verdict.SKIP


def test_a_service_that_is_never_ready_fails(engine: Engine, image: str, tmp_path: Path) -> None:
    found = _verified(engine, image, tmp_path, port=8081, **{"ready-within": 1})
    assert found["service-ready"].verdict is Verdict.FAIL
    assert "ConnectionRefused" in found["service-ready"].summary
    assert "listening" in found["service-ready"].details["log"]


def _verified(engine: Engine, image: str, folder: Path, **changes: Any) -> dict[str, Finding]:
    (folder / "request.json").write_text("[1, 2, 3]")
    (folder / "answer.json").write_text('{"label": "total", "sum": 6}')
    service = {
        "port": 8080,
        "request": "request.json",
        "answer": "answer.json",
        "tolerance": 1e-6,
        "latency": 5000,
        "ready-within": 30,
        **changes,
    }
    spec = StackSpec.model_validate(
        {
            "schema": 1,
            "name": "service",
            "external": image,
            "verify": {"service": service, "concurrency": 4},
        }
    )
    promise = promise_of_spec(spec, "linux/amd64", folder)
    report = verify_image(engine, image, promise, VerifyOptions(), SilentObserver())
    return {finding.code: finding for finding in report.findings}
