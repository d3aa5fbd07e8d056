from __future__ import annotations

import io
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import docker.errors
import pytest

from stackbuild.engine import ownership
from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import DeviceRequest, Mount
from stackbuild.errors import BuildError, InterruptedRunError, NotJudgedError, UsageError
from stackbuild.progress import SilentObserver
from tests.support.base_image import busybox_rootfs, docker_archive

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def busybox(engine: Engine) -> Iterator[str]:
    """A busybox image whose entrypoint says something, as vendors' do."""
    name = f"stackbuild-test-{uuid.uuid4().hex[:10]}:busybox"
    archive, _ = docker_archive(
        [busybox_rootfs()],
        ref=name,
        config={"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"], "Entrypoint": ["/bin/echo", "banner"]},
    )
    engine.load([archive])
    yield name
    engine.remove_image(name)


def tar_of(**files: str) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return sink.getvalue()


def ours(engine: Engine) -> set[str]:
    """Containers and volumes of this process in the engine."""
    api = engine._api
    label = {"label": f"{ownership.LABEL}={ownership.owner_label()}"}
    containers = {item["Id"] for item in api.containers(all=True, filters=label)}
    return containers | {item["Name"] for item in api.volumes(filters=label)["Volumes"] or []}


def test_info_describes_the_engine(engine: Engine) -> None:
    info = engine.info()
    assert info.server_version
    assert info.storage_driver
    assert info.architecture in ("x86_64", "aarch64")
    assert "runc" in info.runtimes


def test_no_engine_is_not_the_images_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(NotJudgedError) as caught:
        Engine.connect()
    assert caught.value.code == "engine-unreachable"
    assert caught.value.exit_code == 5
    assert "DOCKER_HOST" in caught.value.do


@pytest.mark.parametrize("name", ["", "Upper:1", "a b", "x:y:z", "-"])
def test_what_is_no_image_name_is_the_callers_mistake(engine: Engine, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        engine.image(name)
    assert caught.value.code == "bad-image-name"


def test_load_keeps_our_diff_ids(engine: Engine) -> None:
    name = f"stackbuild-test-{uuid.uuid4().hex[:8]}:x"
    extra = tar_of(hello="hello\n")
    archive, config_digest = docker_archive(
        [busybox_rootfs(), extra], config={"Labels": {"a": "b"}}, ref=name
    )
    engine.load(archive[start : start + 100_000] for start in range(0, len(archive), 100_000))
    try:
        image = engine.image(name)
        assert image is not None
        assert len(image.diff_ids) == 2
        assert image.labels == {"a": "b"}
        if not engine.info().containerd_store:
            assert image.id == config_digest
    finally:
        engine.remove_image(name)
    assert engine.image(name) is None
    engine.remove_image(name)  # absent: no error


def test_a_broken_archive_is_an_error(engine: Engine) -> None:
    with pytest.raises(NotJudgedError) as caught:
        engine.load([tar_of(nothing="x")])
    assert caught.value.code in ("image-load-failed", "engine-refused")


def test_an_interrupted_load_leaves_no_image(engine: Engine) -> None:
    name = f"stackbuild-test-{uuid.uuid4().hex[:8]}:cut"
    archive, digest = docker_archive([busybox_rootfs()], config={"Labels": {"cut": name}}, ref=name)

    def cut() -> object:
        yield archive[:500_000]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.load(cut())  # type: ignore[arg-type]
    assert engine.image(name) is None
    assert engine.image(digest) is None


def test_exec_put_get_changes(engine: Engine, busybox: str) -> None:
    with engine.container(busybox, ["/bin/sleep", "60"]) as container:
        container.start()
        container.put("/root", tar_of(note="written\n"))
        result = container.exec(
            ["/bin/sh", "-c", "cat /root/note; echo bad >&2; exit 7"], environment={"A": "1"}
        )
        assert (result.exit_code, sorted(result.text.split())) == (7, ["bad", "written"])
        with tarfile.open(fileobj=io.BytesIO(b"".join(container.get("/root/note")))) as tar:
            assert tar.getnames() == ["note"]
        container.exec(["/bin/rm", "/etc/passwd"])
        changes = dict(container.changes())
        assert changes["/root/note"] == "added"
        assert changes["/etc/passwd"] == "deleted"
    assert ours(engine) == set()


def test_the_entrypoint_is_overridden_and_can_be_kept(engine: Engine, busybox: str) -> None:
    for entrypoint, expected in (((), b"x\n"), (None, b"banner /bin/echo x\n")):
        with engine.container(busybox, ["/bin/echo", "x"], entrypoint=entrypoint) as container:
            container.start()
            assert container.wait(300) == 0
            assert container.logs() == expected


def test_a_container_of_another_architecture_is_told_as_that(
    engine: Engine, image_name: Callable[[str], str]
) -> None:
    program = bytearray(Path(shutil.which("busybox") or "").read_bytes())
    # ELF's e_machine (System V ABI, figure 4-3): 183 is AArch64, 62 is x86-64.
    program[18:20] = (62 if platform.machine() == "aarch64" else 183).to_bytes(2, "little")
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        member = tarfile.TarInfo("sleep")
        member.mode, member.size = 0o755, len(program)
        archive.addfile(member, io.BytesIO(program))
    ref = image_name("foreign")
    engine.load([docker_archive([raw.getvalue()], ref=ref)[0]])
    with (  # noqa: PT012 - engines notice it at either
        engine.container(ref, ["/sleep", "infinity"]) as container,
        pytest.raises(NotJudgedError) as caught,
    ):
        container.start()
        container.exec(["/sleep", "1"])
    assert caught.value.code == "foreign-architecture"
    assert "exec format error" in caught.value.detail


def test_a_container_that_ended_early_shows_its_last_words(engine: Engine, busybox: str) -> None:
    with engine.container(busybox, ["sh", "-c", "echo going; exit 3"]) as container:
        container.start()
        container.wait(300)
        with pytest.raises(NotJudgedError) as caught:
            container.exec(["true"])
    assert caught.value.code == "container-ended"
    assert caught.value.detail == "going"


def test_exec_past_its_limit_is_stopped(engine: Engine, busybox: str) -> None:
    began = time.monotonic()
    with engine.container(busybox, ["/bin/sleep", "60"]) as container:
        container.start()
        with pytest.raises(NotJudgedError) as caught:
            container.exec(["/bin/sleep", "50"], limit=0.5)
    assert caught.value.code == "step-timeout"
    assert time.monotonic() - began < 40, "it was waited for"


def test_wait_past_its_limit(engine: Engine, busybox: str) -> None:
    with engine.container(busybox, ["/bin/sleep", "60"]) as container:
        container.start()
        with pytest.raises(NotJudgedError) as caught:
            container.wait(1)
        assert caught.value.code == "verify-timeout"
        container.kill()
        container.kill()  # no longer runs: no error


def test_a_read_only_container_reads_a_filled_volume(engine: Engine, busybox: str) -> None:
    with engine.volume() as volume:
        with engine.container(busybox, ["/bin/sh"], mounts=[Mount(volume, "/v", read_only=False)]) as helper:
            helper.put("/v", tar_of(suite="here"))
        with engine.container(
            busybox, ["/bin/cat", "/v/suite"], mounts=[Mount(volume, "/v")], read_only=True, network="none"
        ) as container:
            container.start()
            assert container.wait(300) == 0
            assert container.logs() == b"here"
    assert ours(engine) == set()


def test_an_interrupt_while_a_container_is_removed_removes_its_volume_as_well(
    engine: Engine, busybox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = engine._api.remove_container
    asked = []

    def interrupted(*arguments: object, **options: object) -> None:
        asked.append(arguments)
        if len(asked) > 1:
            remove(*arguments, **options)
            return
        begun = threading.Thread(target=remove, args=arguments, kwargs=options)
        begun.start()
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)
        begun.join()

    monkeypatch.setattr(engine._api, "remove_container", interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        engine.volume() as volume,
        engine.container(busybox, ["/bin/sleep", "60"], mounts=[Mount(volume, "/v")]) as container,
    ):
        container.start()
    assert ours(engine) == set()


def test_an_interrupt_stays_one_where_not_all_can_be_removed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = engine._api.remove_volume

    def refused(name: str, **_: object) -> None:
        remove(name)
        raise docker.errors.APIError("the volume is in use")

    monkeypatch.setattr(engine._api, "remove_volume", refused)
    with pytest.raises(InterruptedRunError) as caught, engine.volume():
        raise KeyboardInterrupt
    assert "in use" in caught.value.detail


def test_a_sweep_leaves_a_volume_to_the_process_that_removes_its_container(
    engine: Engine, busybox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        engine.volume() as volume,
        engine.container(busybox, ["/bin/sleep", "60"], mounts=[Mount(volume, "/v")]),
    ):
        described = {"Volumes": [{"Name": volume, "Labels": {ownership.LABEL: "killed"}}]}
        monkeypatch.setattr(engine._api, "containers", lambda **_: [])
        monkeypatch.setattr(engine._api, "volumes", lambda **_: described)
        monkeypatch.setattr(engine._api, "images", lambda **_: [])
        monkeypatch.setattr(ownership, "owner_is_gone", lambda label: label == "killed")
        assert engine.sweep() == []


def test_a_start_that_fails_leaves_no_container(engine: Engine, busybox: str) -> None:
    with (
        pytest.raises(NotJudgedError) as caught,
        engine.container(busybox, ["/no/such/program"]) as container,
    ):
        container.start()
    assert caught.value.code == "container-start-failed"
    assert "/no/such/program" in caught.value.detail
    assert ours(engine) == set()


def test_a_gpu_without_a_toolkit_says_what_the_engine_said(engine: Engine, busybox: str) -> None:
    if "nvidia" in engine.info().runtimes:
        request = DeviceRequest(driver="no-such-driver", count=-1, capabilities=(("gpu",),))
    else:
        request = DeviceRequest(count=-1, capabilities=(("gpu",),))
    with (
        pytest.raises(NotJudgedError) as caught,
        engine.container(busybox, ["/bin/echo"], device_requests=[request]) as container,
    ):
        container.start()
    assert "could not select device driver" in caught.value.detail


def test_export_gives_the_file_system(engine: Engine, busybox: str) -> None:
    with ChunkReader(engine.export(busybox)) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        names = tar.getnames()
    assert "usr/bin/busybox" in names
    assert ours(engine) == set()


def test_an_export_given_up_early_leaves_no_container(engine: Engine, busybox: str) -> None:
    stream = engine.export(busybox)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert ours(engine) == set()


def test_build_gives_the_image_and_its_lines(engine: Engine, busybox: str) -> None:
    lines: list[str] = []
    tag = f"stackbuild-test-{uuid.uuid4().hex[:8]}:b"
    context = io.BytesIO(tar_of(Dockerfile=f"FROM {busybox}\nENTRYPOINT []\nRUN /bin/echo made-it\n"))
    image_id = engine.build(context, tag=tag, on_line=lines.append)
    try:
        image = engine.image(tag)
        assert image is not None
        assert image.id == image_id
        assert any("made-it" in line for line in lines)
    finally:
        engine.remove_image(tag)


def test_a_failed_step_is_shown_with_its_own_lines_and_leaves_nothing(engine: Engine, busybox: str) -> None:
    label = f"built={uuid.uuid4().hex}"
    dockerfile = (
        f"FROM {busybox}\nLABEL {label}\nENTRYPOINT []\nRUN /bin/echo earlier-step\n"
        "RUN /bin/echo No matching distribution found for torch==2.12.0+cu128 && exit 3\n"
    )
    with pytest.raises(BuildError) as caught:
        engine.build(io.BytesIO(tar_of(Dockerfile=dockerfile)), tag="stackbuild-test:never")
    assert caught.value.code == "wheel-not-found"
    assert caught.value.where.startswith("Step 5/5 : RUN")
    assert "No matching distribution found for torch==2.12.0+cu128" in caught.value.detail
    assert "earlier-step" not in caught.value.detail
    assert engine._api.images(all=True, filters={"label": label}) == []
    assert engine.image("stackbuild-test:never") is None


def test_a_pull_from_nowhere_is_not_judged(engine: Engine) -> None:
    with pytest.raises(NotJudgedError) as caught:
        engine.pull("127.0.0.1:9/none:tag", platform="linux/amd64", observer=SilentObserver())
    assert caught.value.code == "registry-unreachable"


def test_sweep_takes_what_a_killed_run_left_and_nothing_else(
    engine: Engine, busybox: str, tmp_path: Path
) -> None:
    script = textwrap.dedent(
        f"""
        import sys, time
        from stackbuild.engine.docker_engine import Engine
        with Engine.connect() as engine, engine.volume() as volume:
            with engine.container({busybox!r}, ["/bin/sleep", "60"]) as container:
                container.start()
                print(container.id, volume, flush=True)
                time.sleep(60)
        """
    )
    with engine.container(busybox, ["/bin/sh"]) as mine:
        for _ in range(5):
            with subprocess.Popen(
                [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None
                container_id, volume = process.stdout.readline().split()
                process.send_signal(signal.SIGKILL)
            removed = engine.sweep()
            left = {item["Id"] for item in engine._api.containers(all=True)}
            assert container_id not in left
            assert volume not in {item["Name"] for item in engine._api.volumes()["Volumes"] or ()}
            assert mine.id in left
            if volume in removed and len(removed) >= 2:
                return
        pytest.fail("each time a build of another test process, which sweeps as well, would have been first")


def test_ctrl_c_while_a_container_runs_removes_it(engine: Engine, busybox: str) -> None:
    script = textwrap.dedent(
        f"""
        from stackbuild.engine.docker_engine import Engine
        with Engine.connect() as engine, engine.container({busybox!r}, ["/bin/sleep", "60"]) as container:
            container.start()
            print(container.id, flush=True)
            container.exec(["/bin/sleep", "50"])
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        container_id = process.stdout.readline().strip()
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGINT)
        process.wait(200)
    assert container_id not in {item["Id"] for item in engine._api.containers(all=True)}
