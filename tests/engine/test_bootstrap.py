"""A bootstrapped base: mmdebstrap for real, over debs of a folder, without network."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import pytest

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import BuildError, NotJudgedError
from stackbuild.layers.bootstrap import bootstrap_key, bootstrap_rootfs
from stackbuild.lock.model import BootstrapBaseLock
from stackbuild.progress import SilentObserver
from stackbuild.publish.layer_cache import LayerCache, SharedStore
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.bases.bootstrap_base import bootstrap_layer
from stackbuild.resolution.bases.mmdebstrap import mmdebstrap_repositories, without_host_options
from stackbuild.resolution.debs.apt_sources import sources_text
from stackbuild.site_config import SiteConfig
from stackbuild.store.scratch import sweep_scratch
from stackbuild.store.store import Store
from tests.build.stacks import CREATED
from tests.engine.conftest import BASE_SOURCES, DebianBase
from tests.support.bookworm_debs import lock_deb, lock_debs
from tests.support.debs import make_deb
from tests.support.loopback import LoopbackServer, Response
from tests.support.registry import Registry

pytestmark = pytest.mark.engine


def test_the_same_debs_give_the_same_bytes(debian_base: DebianBase, tmp_path: Path) -> None:
    # The other one was made earlier, perhaps on another day: the fixture keeps it in the cache.
    again = tmp_path / "again.tar"
    with again.open("wb") as sink:
        bootstrap_rootfs(lock_debs(debian_base.debs / "base"), "bookworm", BASE_SOURCES, sink)
    assert _sha256(again) == _sha256(debian_base.tar)


def test_debs_of_another_architecture_say_what_this_machine_lacks(tmp_path: Path) -> None:
    other = "amd64" if platform.machine() == "aarch64" else "arm64"
    make_deb(tmp_path / "debs", "small", "1.0", architecture=other)
    with pytest.raises(NotJudgedError) as caught, (tmp_path / "root.tar").open("wb") as sink:
        bootstrap_rootfs(lock_debs(tmp_path / "debs"), "bookworm", BASE_SOURCES, sink)
    assert caught.value.code == "foreign-architecture"
    assert "qemu-user-static" in caught.value.do


def test_nothing_of_this_host_or_this_run_is_in_the_base(debian_base: DebianBase) -> None:
    tree = debian_base.tree
    assert not [path for path in tree if path.startswith(("dev/", "proc/", "sys/", "tmp/"))]
    assert not {"etc/hostname", "etc/resolv.conf", "etc/hosts"} & set(tree)
    files = {path for path in tree if (entry := tree.get(path)) is not None and entry.kind == "file"}
    assert not [
        path for path in files if path.startswith(("var/log/", "var/cache/apt/", "var/lib/apt/lists/"))
    ]
    assert not [path for path in files if path.endswith("-old") or "99mmdebstrap" in path]
    for path in ("tmp", "run", "var/log", "var/cache/apt/archives/partial"):
        entry = tree.get(path)
        assert entry is not None
        assert entry.kind == "dir"
    with tarfile.open(debian_base.tar) as archive:
        sources = archive.extractfile("etc/apt/sources.list")
        assert sources is not None
        assert sources.read().decode() == BASE_SOURCES
        for member in archive:
            if member.isreg() and member.name.startswith(("etc/", "var/")):
                content = archive.extractfile(member)
                assert content is not None
                assert b"stackbuild-" not in content.read(), member.name


def test_licences_stay_and_manuals_do_not(debian_base: DebianBase) -> None:
    tree = debian_base.tree
    docs = {path for path in tree if path.startswith("usr/share/doc/") and tree.get(path).kind == "file"}
    assert "usr/share/doc/bash/copyright" in docs
    assert {path.rpartition("/")[2] for path in docs} == {"copyright"}
    assert tree.get("usr/share/man/man1") is not None
    assert tree.get("usr/share/man/man1/ls.1.gz") is None


def test_the_base_runs_and_holds_exactly_the_debs(engine: Engine, debian_base: DebianBase) -> None:
    with engine.container(debian_base.image, ["sleep", "60"]) as container:
        container.start()
        audit = container.exec(["dpkg", "--audit"])
        listed = container.exec(["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n"])
        modes = container.exec(["sh", "-c", "stat -c %a /tmp /etc/shadow; readlink /lib /bin; id -un 33"])
    assert (audit.exit_code, audit.text) == (0, "")
    debs = lock_debs(debian_base.debs / "base")
    assert set(listed.text.splitlines()) == {f"{deb.name} {deb.version} installed" for deb, _ in debs}
    assert modes.text.split() == ["1777", "640", "usr/lib", "usr/bin", "www-data"]


def test_a_set_that_cannot_be_installed_shows_mmdebstraps_last_lines(tmp_path: Path) -> None:
    deb = make_deb(tmp_path, "lonely", "1", control=["Essential: yes", "Depends: missing"])
    with pytest.raises(BuildError) as caught:
        bootstrap_rootfs([lock_deb(deb)], "bookworm", "", io.BytesIO())
    assert caught.value.code == "bootstrap-failed"
    assert "missing" in caught.value.detail


def test_no_mmdebstrap_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotJudgedError, match="mmdebstrap") as caught:
        bootstrap_rootfs([], "bookworm", "", io.BytesIO())
    assert "apt-get install mmdebstrap" in caught.value.do


def _bootstrapping(debian_base: DebianBase, temporary: Path) -> subprocess.Popen[bytes]:
    """A process in whose bootstrap packages are being unpacked."""
    program = (
        "import io, pathlib, sys\n"
        "from stackbuild.layers.bootstrap import bootstrap_rootfs\n"
        "from tests.support.bookworm_debs import lock_debs\n"
        "bootstrap_rootfs(lock_debs(pathlib.Path(sys.argv[1])), 'bookworm', '', io.BytesIO())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(debian_base.debs / "base")],
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 600
    while not list(temporary.glob("stackbuild-*/mmdebstrap.*/var/lib/dpkg/info/*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return process


def test_an_interrupt_leaves_nothing_behind(debian_base: DebianBase, tmp_path: Path) -> None:
    process = _bootstrapping(debian_base, tmp_path)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in errors
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


def test_what_a_kill_leaves_is_removed_later_but_not_under_mmdebstrap(
    debian_base: DebianBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = _bootstrapping(debian_base, tmp_path)
    process.kill()
    process.communicate(timeout=600)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    assert sweep_scratch() == [], "mmdebstrap still works in it"
    os.killpg(os.getpgid(_working_in(left)[0]), signal.SIGTERM)  # it unmounts what it mounted
    deadline = time.monotonic() + 300
    while _working_in(left):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.utime(left, (0, 0))
    assert sweep_scratch() == [left.name]
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


def _working_in(folder: Path) -> list[int]:
    """Processes that have the folder itself open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink() == folder:
                found.append(int(link.parts[2]))
        except OSError:  # ended meanwhile
            continue
    return found


def test_the_key_moves_with_debs_and_sources(tmp_path: Path) -> None:
    one, _ = lock_deb(make_deb(tmp_path, "one", "1"))
    two, _ = lock_deb(make_deb(tmp_path, "two", "1"))
    keys = {
        bootstrap_key([one], "bookworm", ""),
        bootstrap_key([one, two], "bookworm", ""),
        bootstrap_key([one], "bookworm", BASE_SOURCES),
    }
    assert len(keys) == 3
    assert bootstrap_key([two, one], "bookworm", "") == bootstrap_key([one, two], "bookworm", "")


def test_a_base_that_the_layer_cache_has_needs_no_deb(registry: Registry, tmp_path: Path) -> None:
    deb, path = lock_deb(make_deb(tmp_path / "pool", "one", "1"))
    base = BootstrapBaseLock(
        distribution="debian", suite="bookworm", debs=(deb,), diff_id=f"sha256:{'f' * 64}", created=CREATED
    )
    with RegistryClient() as client, LoopbackServer(lambda _: Response(404)) as mirror:
        cache = LayerCache(client, f"{registry.address}/team/bootstrap-{tmp_path.name}")
        site = SiteConfig(repositories={"debian": mirror.url, "debian-security": mirror.url})
        first = Store(tmp_path / "first")
        sources = sources_text(without_host_options(mmdebstrap_repositories("bookworm")))
        with first.new_layer(bootstrap_key([deb], "bookworm", sources)) as sink:
            sink.write(path.read_bytes())
        assert sink.layer is not None
        assert cache.push(sink.layer, first)

        second = SharedStore(tmp_path / "second", cache, lambda _: None)
        locked = base.model_copy(update={"diff_id": sink.layer.diff_id})
        found = bootstrap_layer(locked, store=second, site=site, observer=SilentObserver())
        assert found.path.read_bytes() == path.read_bytes()
        assert mirror.requests == []
        # The cache's word is not enough: a base that is not the locked one is refused.
        with pytest.raises(BuildError) as differs:
            bootstrap_layer(base, store=second, site=site, observer=SilentObserver())
        assert differs.value.code == "bootstrap-differs"


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
