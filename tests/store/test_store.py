from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stackbuild.errors import BuildError, LockError, NotJudgedError, UsageError
from stackbuild.progress import SilentObserver
from stackbuild.store.disk import file_sha256
from stackbuild.store.download import growing_file
from stackbuild.store.eviction import IN_USE
from stackbuild.store.root import default_root
from stackbuild.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def left_over(store: Store) -> list[str]:
    return [path.name for path in (store.root / "tmp").iterdir()]


def test_a_file_is_found_by_its_hash(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello")
    sha256 = store.add_file(tmp_path / "a")
    assert sha256 == hashlib.sha256(b"hello").hexdigest()
    path = store.blob(sha256)
    assert path is not None
    assert path.read_bytes() == b"hello"
    assert store.blob("0" * 64) is None


def test_a_stream_with_another_hash_is_not_kept(store: Store) -> None:
    with pytest.raises(LockError) as caught:
        store.add_stream([b"hello"], sha256="0" * 64)
    assert caught.value.code == "artifact-changed"
    assert left_over(store) == []
    assert store.blob(hashlib.sha256(b"hello").hexdigest()) is None


def test_a_temporary_file_is_its_blocks_own(store: Store) -> None:
    with store.temporary([b"hel", b"lo"]) as first, store.temporary([b"hello"]) as second:
        assert first.path != second.path
        assert (first.sha256, first.size) == (hashlib.sha256(b"hello").hexdigest(), 5)
        assert first.path.read_bytes() == b"hello"
    assert left_over(store) == []


def test_a_file_that_was_written_to_later_is_not_handed_out(store: Store) -> None:
    sha256 = store.add_stream([b"hello"])
    path = store.blob(sha256)
    assert path is not None
    path.write_bytes(b"HELLO")
    assert store.blob(sha256) is None
    assert store.add_stream([b"hello"]) == sha256
    assert store.blob(sha256) == path
    assert path.read_bytes() == b"hello"


def test_what_took_the_place_of_a_changed_file_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finds the file changed, too, and puts a good one there while this one still hashes."""
    sha256 = store.add_stream([b"hello"])
    path = store.blob(sha256)
    assert path is not None
    path.write_bytes(b"HELLO")

    def measured(path: Path) -> str:
        wrong = file_sha256(path)
        store.add_stream([b"hello"])
        return wrong

    monkeypatch.setattr("stackbuild.store.store.file_sha256", measured)
    assert store.blob(sha256) is None
    assert store.blob(sha256) == path


def test_a_touched_file_with_the_right_content_is_handed_out(store: Store) -> None:
    sha256 = store.add_stream([b"hello"])
    path = store.blob(sha256)
    assert path is not None
    os.utime(path)
    assert store.blob(sha256) == path


def test_a_layer_is_hashed_while_it_is_written(store: Store) -> None:
    with store.new_layer("wheels:abc") as sink:
        sink.write(b"one")
        sink.write(memoryview(b"two"))
        sink.extra["entries"] = 2
        assert store.layer("wheels:abc") is None
    layer = store.layer("wheels:abc")
    assert layer is not None
    assert layer == sink.layer
    assert layer.diff_id == "sha256:" + hashlib.sha256(b"onetwo").hexdigest()
    assert (layer.size, layer.extra, layer.path.read_bytes()) == (6, {"entries": 2}, b"onetwo")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_a_layer_that_was_interrupted_is_not_there(store: Store, stop: type[BaseException]) -> None:
    with pytest.raises(stop), store.new_layer("k") as sink:  # noqa: PT012
        sink.write(b"x" * 5_000_000)
        raise stop
    assert store.layer("k") is None
    assert left_over(store) == []


def test_a_full_disk_is_a_build_error_and_leaves_nothing(store: Store) -> None:
    with pytest.raises(BuildError) as caught, store.new_layer("k") as sink:  # noqa: PT012
        sink.write(b"x")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.code == "disk-full"
    assert left_over(store) == []


def test_a_really_full_disk(tmp_path: Path) -> None:
    """/dev/full answers every write with ENOSPC."""
    store = Store(tmp_path)
    with (  # noqa: PT012
        pytest.raises(BuildError) as caught,
        store.new_layer("k") as sink,
        Path("/dev/full").open("wb", 0) as full,
    ):
        sink._stream = full
        sink.write(b"x")
    assert caught.value.code == "disk-full"
    assert store.layer("k") is None


def test_a_truncated_layer_is_not_handed_out(store: Store) -> None:
    with store.new_layer("k") as sink:
        sink.write(b"onetwo")
    layer = store.layer("k")
    assert layer is not None
    os.truncate(layer.path, 3)
    assert store.layer("k") is None


def test_records(store: Store) -> None:
    assert store.record("tree", "sha256:1") is None
    store.put_record("tree", "sha256:1", {"a": [1]})
    store.put_record("tree", "sha256:1", {"a": [2]})
    assert store.record("tree", "sha256:1") == {"a": [2]}


class Notes(SilentObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.heard = threading.Event()

    def note(self, message: str) -> None:
        self.notes.append(message)
        self.heard.set()


def test_the_second_holder_of_a_lock_waits_and_says_so(store: Store) -> None:
    order: list[str] = []
    notes = Notes()

    def second() -> None:
        with store.lock("stack demo", observer=notes):
            order.append("second")

    with store.lock("stack demo", observer=SilentObserver()):
        thread = threading.Thread(target=second)
        thread.start()
        assert notes.heard.wait(60)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert notes.notes == [f"waiting for stack demo: process {os.getpid()} is at it"]


def test_eviction_takes_what_was_used_longest_ago(store: Store) -> None:
    old, kept = store.add_stream([b"o" * 100]), store.add_stream([b"k" * 100])
    with store.new_layer("oldest") as sink:
        sink.write(b"l" * 100)
    assert sink.layer is not None
    for age, path in ((3, sink.layer.path), (2, store.root / "blobs" / old[:2] / old)):
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns - age * 10**9, status.st_mtime_ns))
    evicted = store.evict(max_bytes=150)
    assert (evicted.files, evicted.bytes, evicted.left) == (2, 200, 100)
    assert store.blob(kept)
    assert store.blob(old) is None
    assert store.layer("oldest") is None


def test_eviction_sweeps_what_dead_processes_left(store: Store) -> None:
    (store.root / "tmp" / "999999999-x").write_bytes(b"half")
    assert store.evict(max_bytes=10**9).bytes == 4
    assert left_over(store) == []


def test_no_eviction_while_somebody_builds(store: Store) -> None:
    with store.lock("demo", observer=SilentObserver()), pytest.raises(NotJudgedError) as caught:
        store.evict(max_bytes=None)
    assert caught.value.code == "store-in-use"


def test_who_comes_while_the_store_is_emptied_waits_until_it_is(store: Store) -> None:
    notes = Notes()
    order: list[str] = []

    def build() -> None:
        with store.lock("demo", observer=notes):
            order.append("build")

    with (store.root / IN_USE).open("a") as emptied:
        fcntl.flock(emptied, fcntl.LOCK_EX)
        thread = threading.Thread(target=build)
        thread.start()
        assert notes.heard.wait(60)
        order.append("emptied")
    thread.join()
    assert order == ["emptied", "build"]
    assert notes.notes == ["waiting for demo: the store is being emptied"]


def test_eviction_holds_a_growing_file_until_it_is_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who begins to download into it meanwhile would write into a file without a name."""
    idle = store.partial("1" * 64)
    idle.write_bytes(b"half")
    unlink = Path.unlink

    def watched(path: Path, missing_ok: bool = False) -> None:
        if path == idle:
            with path.open("rb") as other, pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", watched)
    assert store.evict(max_bytes=None).files == 1
    assert not idle.exists()


def test_eviction_leaves_a_file_that_somebody_downloads(store: Store) -> None:
    idle, growing = store.partial("1" * 64), store.partial("2" * 64)
    idle.write_bytes(b"half")
    with growing_file(growing, print, keep=True):
        growing.write_bytes(b"half")
        evicted = store.evict(max_bytes=None)
        assert (evicted.files, evicted.bytes) == (1, 4)
        assert (idle.exists(), growing.exists()) == (False, True)


def test_a_store_is_measured_and_checked_while_others_work_in_it(store: Store) -> None:
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            store.put_record("kind", "key", {})
            path = store.blob(store.add_stream([b"x"]))
            assert path is not None
            path.unlink()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(300):
            assert {row.kind for row in store.usage()} == {"blobs", "layers", "records", "partial", "tmp"}
            assert list(store.damaged()) == []
            assert store.blob("0" * 64) is None
    finally:
        over.set()
        thread.join()


def test_damage_is_found(store: Store) -> None:
    good, bad = store.add_stream([b"good"]), store.add_stream([b"bad"])
    path = store.blob(bad)
    assert path is not None
    path.write_bytes(b"BAD")
    (found,) = store.damaged()
    assert (found.expected, found.path) == (bad, path)
    assert store.blob(good)
    store.add_stream([b"bad"])
    found.remove()
    assert store.blob(bad) == path, "a good one has taken its place meanwhile"
    path.write_bytes(b"BAD")
    (found,) = store.damaged()
    found.remove()
    assert not path.exists()


def test_what_a_killed_run_left_is_swept_and_what_is_being_written_is_not(store: Store) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from stackbuild.store.store import Store\n"
        "with Store(Path(sys.argv[1])).new_layer('killed') as sink:\n"
        "    sink.write(b'x' * 5_000_000); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code, str(store.root)], env=environ, check=False)
    (left,) = (store.root / "tmp").iterdir()
    with store.new_layer("written") as sink:
        sink.write(b"x" * 5_000_000)
        assert store.sweep() == [], "a young one may belong to a process that has just begun"
        for path in (store.root / "tmp").iterdir():
            os.utime(path, (0, 0))
        assert store.sweep() == [left.name]
    assert store.layer("written")
    assert list((store.root / "tmp").iterdir()) == []


@pytest.mark.parametrize("root", ["file", "file/below", "/proc/nowhere/store"])
def test_a_store_that_is_no_folder(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as caught:
        Store(tmp_path / root)
    assert caught.value.code == "store-unusable"


def test_default_root(tmp_path: Path) -> None:
    assert default_root({"STACKBUILD_STORE": "/s", "XDG_CACHE_HOME": "/c"}) == Path("/s")
    assert default_root({"XDG_CACHE_HOME": "/c"}) == Path("/c/stackbuild")
    assert default_root({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache/stackbuild"
