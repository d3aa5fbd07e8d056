"""Verification in real containers: what the suite brings back, and that nothing is left behind (case F05)."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stackbuild.engine import ownership
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import ExitCode, NotJudgedError, UsageError
from stackbuild.findings import Finding, Verdict, exit_code_of
from stackbuild.progress import SilentObserver
from stackbuild.store.store import Store
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.model import VerificationReport
from stackbuild.verification.promise import Promise, PromisedDistribution
from stackbuild.verification.verify import VerifyOptions, verify_image

pytestmark = pytest.mark.engine

PLAIN = Promise(source="spec", stack="plain", python="3.11", os="debian 12", glibc="2.36")
MakeImage = Callable[..., str]


@pytest.fixture
def make_image(
    engine: Engine, image_name: Callable[[str], str], debian_python_image: str, busybox_image: str
) -> MakeImage:
    """Makes an image of Debian with Python, or of busybox, and some files: path → content."""

    def make(files: Mapping[str, str], *, python: bool = True, **config: Any) -> str:
        ref = image_name("verify")
        # A commit keeps the base where it is; a load would send all of it again for every image.
        with engine.container(debian_python_image if python else busybox_image, ["/"]) as container:
            container.put("/", _layer(files))
            repository, tag = ref.rsplit(":", 1)
            engine._api.commit(container.id, repository, tag, conf={"Entrypoint": None, **config})
        return ref

    return make


@pytest.fixture(autouse=True)
def _nothing_left_behind(engine: Engine) -> Iterator[None]:
    before = _ours(engine)
    yield
    assert _ours(engine) == before


def test_an_image_is_judged_as_its_own_user_without_network_and_with_its_entrypoint_overridden(
    engine: Engine, make_image: MakeImage
) -> None:
    ref = make_image(
        {"entry.sh": "#!/bin/sh\necho a banner\nexit 9\n"}, User="1234:1234", Entrypoint=["/entry.sh"]
    )
    report = _verified(engine, ref, PLAIN)
    assert {finding.verdict for finding in report.findings} == {Verdict.PASS, Verdict.SKIP}
    assert report.complete
    assert report.image.id == engine.image(ref).id  # type: ignore[union-attr]
    assert report.host.kernel
    assert report.log == ""
    found = _by_code(report)
    assert found["python-version"].measured.startswith("3.11.")
    assert found["os-matches-lock"].measured == "debian 12, glibc 2.36"


def test_user_limits_and_a_read_only_root_are_as_asked_for_and_no_health_check_runs(
    engine: Engine, make_image: MakeImage
) -> None:
    ref = make_image(
        {"checks.py": "", "opt/health.sh": "#!/bin/sh\ntouch /run/stackbuild/results/health-check-ran\n"},
        Healthcheck={"Test": ["CMD", "/opt/health.sh"], "Interval": 1_000_000_000},
    )
    promise = PLAIN.model_copy(update={"user": "4321", "ulimits": {"nofile": 321}, "read_only": True})
    observed: dict[str, Any] = {}

    class Listener(SilentObserver):
        def stage(self, name: str, detail: str = "") -> None:
            for container in _ours(engine)[0]:
                observed.update(engine._api.inspect_container(container))

    report = verify_image(engine, ref, promise, VerifyOptions(shm_size="96m"), Listener())
    assert report.complete, report.findings
    assert observed["Config"]["User"] == "4321"
    assert observed["Config"]["Healthcheck"]["Test"] == ["NONE"]
    host = observed["HostConfig"]
    assert (host["ReadonlyRootfs"], host["NetworkMode"], host["ShmSize"]) == (True, "none", 96 << 20)
    assert [(limit["Name"], limit["Hard"]) for limit in host["Ulimits"]] == [("nofile", 321)]


def test_results_come_as_they_are_made(engine: Engine, debian_python_image: str) -> None:
    heard: list[str] = []

    class Listener(SilentObserver):
        def stage(self, name: str, detail: str = "") -> None:
            heard.append(f"{name} {detail}")

    verify_image(engine, debian_python_image, PLAIN, VerifyOptions(), Listener())
    assert {"verify interpreter", "verify distributions"} <= set(heard)


def test_a_module_that_only_root_can_read_fails_as_the_images_user(
    engine: Engine, make_image: MakeImage
) -> None:
    site = "usr/lib/python3/dist-packages"
    files = {
        f"{site}/secret/__init__.py": "",
        f"{site}/secret-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: secret\nVersion: 1.0\n",
        f"{site}/secret-1.0.dist-info/RECORD": "secret/__init__.py,,\n",
    }
    ref = make_image(files, User="1234")
    asked = PromisedDistribution(name="secret", version="1.0", requested=True)
    promise = Promise(source="lock", python="3.11", distributions=(asked,))
    assert _by_code(_verified(engine, ref, promise))["packages-import"].verdict is Verdict.PASS

    closed = {**files, f"{site}/secret/__init__.py": "!0600"}
    finding = _by_code(_verified(engine, make_image(closed, User="1234"), promise))["packages-import"]
    assert finding.verdict is Verdict.FAIL
    assert "PermissionError" in finding.summary


def test_a_promised_gpu_on_a_host_without_toolkit_is_one_sentence_and_exit_5(
    engine: Engine, debian_python_image: str
) -> None:
    promise = PLAIN.model_copy(update={"device": "cuda"})
    report = _verified(engine, debian_python_image, promise, gpus=GpuSelection(count=-1))
    first, *others = report.findings
    assert (first.code, first.verdict) == ("toolkit-not-installed", Verdict.ERROR)
    assert "--gpus none" in first.next_step
    assert {finding.verdict for finding in others} == {Verdict.SKIP}
    assert not report.complete
    assert exit_code_of(report.findings) is ExitCode.NOT_JUDGED


def test_without_gpus_a_gpu_stack_is_judged_as_far_as_it_can_be(
    engine: Engine, make_image: MakeImage
) -> None:
    ref = make_image(
        {
            "usr/lib/python3/dist-packages/torch/__init__.py": (
                "class version: cuda = None; hip = None; git_version = 'x'\n__version__ = '2.14.1+cpu'\n"
            )
        }
    )
    promise = PLAIN.model_copy(update={"device": "cuda", "torch": "2.14.1+cu130", "torch_cuda": "13.0"})
    report = _verified(engine, ref, promise)
    found = _by_code(report)
    assert found["cpu-wheel-in-gpu-image"].verdict is Verdict.FAIL
    assert (found["torch-version"].measured, found["torch-version"].required) == (
        "2.14.1+cpu",
        "2.14.1+cu130",
    )
    assert (found["torch-matmul"].verdict, found["torch-matmul"].applies) == (Verdict.SKIP, True)
    assert not report.complete
    assert exit_code_of(report.findings) is ExitCode.GATE_FAILED


@pytest.mark.parametrize(
    ("body", "verdict", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", Verdict.FAIL, "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Verdict.ERROR, "SIGKILL"),
        (
            "raise ImportError('libcudart.so.13: cannot open shared object file')",
            Verdict.FAIL,
            "libcudart.so.13",
        ),
        ("import os; os.write(1, b'x' * 5_000_000); raise SystemExit(0)", Verdict.FAIL, "SystemExit"),
    ],
)
def test_a_framework_that_breaks_at_import_is_one_finding_and_the_rest_goes_on(
    engine: Engine, make_image: MakeImage, body: str, verdict: Verdict, words: str
) -> None:
    ref = make_image({"usr/lib/python3/dist-packages/torch/__init__.py": body})
    found = _by_code(_verified(engine, ref, PLAIN.model_copy(update={"torch": "2.14.1"})))
    assert found["torch-import"].verdict is verdict
    assert words in found["torch-import"].summary
    assert found["torch-matmul"].verdict is Verdict.SKIP
    assert found["python-version"].verdict is Verdict.PASS


def test_an_image_without_python_is_told_and_is_the_images_fault_where_one_is_promised(
    engine: Engine, busybox_image: str
) -> None:
    first, *_ = _verified(engine, busybox_image, PLAIN).findings
    assert (first.code, first.verdict) == ("image-without-python", Verdict.FAIL)
    first, *_ = _verified(engine, busybox_image, Promise(source="nothing")).findings
    assert (first.code, first.verdict) == ("image-without-python", Verdict.ERROR)


def test_a_python_that_is_too_old_says_so_and_a_newer_one_beside_it_is_used(
    engine: Engine, make_image: MakeImage
) -> None:
    old = '#!/bin/sh\necho \'@stackbuild@ {"event": "python-too-old", "version": "3.6.9"}\'\nexit 3\n'
    ref = make_image({"usr/bin/python": old}, python=False)
    first, *_ = _verified(engine, ref, PLAIN).findings
    assert (first.code, first.measured) == ("python-too-old-for-suite", "3.6.9")

    both = make_image({"usr/local/bin/python": old})
    assert _by_code(_verified(engine, both, PLAIN))["python-version"].verdict is Verdict.PASS


def test_a_container_that_exits_at_once_keeps_its_words(engine: Engine, make_image: MakeImage) -> None:
    script = "#!/bin/sh\necho error while loading shared libraries >&2\nexit 127\n"
    ref = make_image({"usr/bin/python": script}, python=False)
    report = _verified(engine, ref, PLAIN)
    assert report.findings[0].code == "image-without-python"
    assert "exit code 127" in report.findings[0].summary
    assert report.log == "error while loading shared libraries\n"


def test_a_container_that_ends_in_the_middle_is_not_judged_further(
    engine: Engine, make_image: MakeImage
) -> None:
    # The suite is process 1 of the container; only the kernel or the engine can end it so.
    script = (
        "#!/bin/sh\n"
        'echo \'@stackbuild@ {"event": "suite", "version": "1", "python": "3.11.2"}\'\n'
        'echo "some words"\nexit 137\n'
    )
    ref = make_image({"usr/bin/python": script}, python=False)
    report = _verified(engine, ref, PLAIN)
    assert report.findings[0].code == "container-exited"
    assert "exit code 137" in report.findings[0].summary
    assert report.log == "some words\n"


def test_f05_a_run_past_its_limit_is_stopped_and_nothing_is_left(
    engine: Engine, make_image: MakeImage
) -> None:
    ref = make_image({"usr/bin/python": "#!/bin/sh\nsleep 60\n"}, python=False)
    began = time.monotonic()
    report = _verified(engine, ref, PLAIN, limit=1)
    assert time.monotonic() - began < 50, "it was waited for"
    assert (report.findings[0].code, report.findings[0].verdict) == ("verify-timeout", Verdict.ERROR)


def test_f05_an_interrupt_while_results_are_read_leaves_nothing(
    engine: Engine, make_image: MakeImage
) -> None:
    ref = make_image({"usr/lib/python3/dist-packages/torch/__init__.py": "import time; time.sleep(60)"})

    class Interrupting(SilentObserver):
        def stage(self, name: str, detail: str = "") -> None:
            if detail == "torch-import":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_image(
            engine, ref, PLAIN.model_copy(update={"torch": "2.14.1"}), VerifyOptions(), Interrupting()
        )


def test_f05_a_container_killed_from_outside_leaves_nothing(engine: Engine, make_image: MakeImage) -> None:
    ref = make_image({"usr/lib/python3/dist-packages/torch/__init__.py": "import time; time.sleep(60)"})
    begun = threading.Event()

    class Listener(SilentObserver):
        def stage(self, name: str, detail: str = "") -> None:
            if detail == "torch-import":
                begun.set()

    def kill_it() -> None:
        assert begun.wait(300)
        for container in _ours(engine)[0]:
            engine._api.kill(container)

    killer = threading.Thread(target=kill_it, daemon=True)
    killer.start()
    report = verify_image(
        engine, ref, PLAIN.model_copy(update={"torch": "2.14.1"}), VerifyOptions(), Listener()
    )
    killer.join()
    assert report.findings[0].code == "container-exited"
    assert exit_code_of(report.findings) is ExitCode.NOT_JUDGED


def test_a_result_is_remembered_until_anything_it_depends_on_changes(
    engine: Engine, debian_python_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    first = _verified(engine, debian_python_image, PLAIN, store=store)
    with monkeypatch.context() as without_containers:
        without_containers.setattr(engine._api, "create_container", None)
        second = _verified(engine, debian_python_image, PLAIN, store=store)
    assert second == first.model_copy(update={"cached": True})
    assert not first.cached
    assert not _verified(engine, debian_python_image, PLAIN, store=store, fresh=True).cached
    other = PLAIN.model_copy(update={"glibc": "2.41"})
    assert not _verified(engine, debian_python_image, other, store=store).cached


def test_what_could_not_be_judged_is_not_remembered(
    engine: Engine, debian_python_image: str, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    for _ in range(2):
        report = _verified(engine, debian_python_image, PLAIN, gpus=GpuSelection(count=1), store=store)
        assert not report.cached


def test_a_missing_image_and_an_unknown_gate_are_told(engine: Engine, debian_python_image: str) -> None:
    with pytest.raises(NotJudgedError, match="does not have this image") as missing:
        _verified(engine, "stackbuild-test/none:1", PLAIN)
    assert missing.value.code == "image-missing"
    with pytest.raises(UsageError, match="no runtime gate torch") as unknown:
        _verified(engine, debian_python_image, PLAIN, gates=("torch",))
    assert "torch-matmul" in unknown.value.do


def _verified(
    engine: Engine, ref: str, promise: Promise, *, store: Store | None = None, **options: Any
) -> VerificationReport:
    return verify_image(engine, ref, promise, VerifyOptions(**options), SilentObserver(), store=store)


def _by_code(report: VerificationReport) -> dict[str, Finding]:
    return {finding.code: finding for finding in report.findings}


def _ours(engine: Engine) -> tuple[set[str], set[str]]:
    """Containers and volumes that this process has made, whatever their state."""
    api, label = engine._api, {"label": f"{ownership.LABEL}={ownership.owner_label()}"}
    containers = api.containers(all=True, filters=label)
    volumes = api.volumes(filters=label).get("Volumes") or []
    return {entry["Id"] for entry in containers}, {entry["Name"] for entry in volumes}


def _layer(files: Mapping[str, str]) -> bytes:
    """A tar; content such as ``!0600`` is the mode of an empty file, scripts are executable."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path, text in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.mode = 0o755 if text.startswith("#!") else 0o644
            if text.startswith("!"):
                entry.mode, text = int(text[1:], 8), ""
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return raw.getvalue()
