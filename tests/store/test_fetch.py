from __future__ import annotations

import hashlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.errors import BuildError, LockError, NotJudgedError, StackbuildError
from stackbuild.progress import SilentObserver
from stackbuild.store.download import Measured, growing_file
from stackbuild.store.fetch import FetchRequest, classify_wrong_transfers, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RetryPolicy
from stackbuild.store.store import Store
from tests.support.loopback import LoopbackServer, Misbehaviour, Request, Response

CONTENT = bytes(range(256)) * 4096  # 1 MiB
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HTTP = HttpClient(retry=RetryPolicy(attempts=3, first_delay=0.01), timeout=60)


class Progress(SilentObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.last: dict[str, tuple[int, int | None]] = {}

    def note(self, message: str) -> None:
        self.notes.append(message)

    def advance(self, name: str, done: int, total: int | None, unit: str = "bytes") -> None:
        self.last[name] = (done, total)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    def answer(request: Request) -> Response:
        return Response(body=CONTENT) if request.path.startswith("/a") else Response(404)

    with LoopbackServer(answer) as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def request(server: LoopbackServer, path: str = "/a", **changes: object) -> FetchRequest:
    values: dict[str, object] = {
        "name": "a",
        "candidates": (server.url + path,),
        "sha256": SHA256,
        "size": len(CONTENT),
    }
    return FetchRequest(**(values | changes))  # type: ignore[arg-type]


def fetch(store: Store, *requests: FetchRequest) -> dict[str, Path]:
    return fetch_all(requests, store, observer=SilentObserver(), http=HTTP)


def failure(store: Store, wanted: FetchRequest) -> StackbuildError:
    with pytest.raises(StackbuildError) as caught:
        fetch(store, wanted)
    assert store.blob(SHA256) is None
    assert list((store.root / "tmp").iterdir()) == []
    return caught.value


def test_a_file_arrives_with_progress_and_is_not_fetched_twice(server: LoopbackServer, store: Store) -> None:
    progress = Progress()
    paths = fetch_all([request(server)], store, observer=progress, http=HTTP)
    assert paths["a"].read_bytes() == CONTENT
    assert progress.last == {"a": (len(CONTENT), len(CONTENT))}
    assert fetch(store, request(server)) == paths
    assert len(server.requested("/a")) == 1
    assert list((store.root / "partial").iterdir()) == []


def test_a_limit_is_waited_out(server: LoopbackServer, store: Store) -> None:
    server.misbehave("/a", Misbehaviour(status=429, headers={"Retry-After": "1"}, times=1))
    began = time.monotonic()
    assert fetch(store, request(server))["a"].read_bytes() == CONTENT
    assert time.monotonic() - began >= 1


def test_a_limit_that_stays_is_not_judged(server: LoopbackServer, store: Store) -> None:
    server.misbehave("/a", Misbehaviour(status=429, headers={"Retry-After": "0"}))
    error = failure(store, request(server))
    assert (error.code, int(error.exit_code)) == ("index-rate-limited", 5)
    assert "127.0.0.1 limits its clients: 429" in error.what
    assert len(server.requested("/a")) == 3


def test_404_everywhere_is_the_code_of_the_request(server: LoopbackServer, store: Store) -> None:
    error = failure(
        store,
        request(server, candidates=(server.url + "/x", server.url + "/y"), not_found_code="deb-superseded"),
    )
    assert isinstance(error, LockError)
    assert error.code == "deb-superseded"
    assert error.detail.count(": 404 Not Found") == 2
    assert len(server.requested("/[xy]")) == 2  # not tried again


def test_the_next_candidate_is_taken(server: LoopbackServer, store: Store) -> None:
    assert fetch(store, request(server, candidates=(server.url + "/x", server.url + "/a")))["a"].exists()


def test_one_candidate_down_and_one_without_it_says_nothing_of_the_file(
    server: LoopbackServer, store: Store
) -> None:
    error = failure(store, request(server, candidates=(server.url + "/x", "http://127.0.0.1:1/a")))
    assert isinstance(error, NotJudgedError)
    assert error.code == "index-unreachable"


def test_a_cut_body_is_resumed_where_it_stopped(server: LoopbackServer, store: Store) -> None:
    server.misbehave("/a", Misbehaviour(cut_after=700_000, times=1))
    assert fetch(store, request(server))["a"].read_bytes() == CONTENT
    first, second = server.requested("/a")
    assert "Range" not in first.headers
    begin = int(second.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    assert 0 < begin <= 700_000


def test_what_an_earlier_run_left_is_resumed(server: LoopbackServer, store: Store) -> None:
    store.partial(SHA256).write_bytes(CONTENT[:1000])
    assert fetch(store, request(server))["a"].read_bytes() == CONTENT
    assert [asked.headers["Range"] for asked in server.requested("/a")] == ["bytes=1000-"]


def test_a_spoilt_left_over_is_started_anew(server: LoopbackServer, store: Store) -> None:
    store.partial(SHA256).write_bytes(b"x" * 1000)
    assert fetch(store, request(server))["a"].read_bytes() == CONTENT
    assert ["Range" in asked.headers for asked in server.requested("/a")] == [True, False]


def test_a_server_without_ranges(store: Store) -> None:
    def answer(asked: Request) -> Response:
        return Response(203 if asked.path == "/odd" else 200, CONTENT)

    class Plain(LoopbackServer):
        def _respond(self, request: Request) -> tuple[Response, int | None]:
            self.requests.append(request)
            return answer(request), None

    with Plain(answer) as server:
        store.partial(SHA256).write_bytes(CONTENT[:1000])
        assert fetch(store, request(server))["a"].read_bytes() == CONTENT


def test_the_same_wrong_bytes_twice_is_a_changed_file(server: LoopbackServer, store: Store) -> None:
    wrong = b"w" * len(CONTENT)
    server.misbehave("/a", Misbehaviour(replace=wrong))
    error = failure(store, request(server))
    assert isinstance(error, LockError)
    assert (error.code, int(error.exit_code)) == ("artifact-changed", 3)
    assert SHA256 in error.detail
    assert hashlib.sha256(wrong).hexdigest() in error.detail
    assert len(server.requested("/a")) == 2


def test_the_old_file_is_kept_when_the_served_one_changes(server: LoopbackServer, store: Store) -> None:
    path = fetch(store, request(server))["a"]
    server.misbehave("/a", Misbehaviour(replace=b"w" * len(CONTENT)))
    assert fetch(store, request(server))["a"] == path
    assert path.read_bytes() == CONTENT


def test_other_wrong_bytes_each_time_is_a_bad_line(server: LoopbackServer, store: Store) -> None:
    for letter in b"abcdef":
        server.misbehave("/a", Misbehaviour(replace=bytes([letter]) * len(CONTENT), times=1))
    error = failure(store, request(server))
    assert isinstance(error, NotJudgedError)
    assert (error.code, int(error.exit_code)) == ("transfer-corrupt", 5)
    assert error.detail.count("got:") == 4


def test_one_garbled_transfer_is_tried_again(server: LoopbackServer, store: Store) -> None:
    server.misbehave("/a", Misbehaviour(replace=b"g" * len(CONTENT), times=1))
    assert fetch(store, request(server))["a"].read_bytes() == CONTENT


def test_a_short_answer_is_a_bad_line_even_when_it_is_the_same_each_time(
    server: LoopbackServer, store: Store
) -> None:
    server.misbehave("/a", Misbehaviour(replace=b"<html>please log in</html>"))
    assert failure(store, request(server)).code == "transfer-corrupt"


@pytest.mark.parametrize(
    ("got", "code"),
    [(["e3a", "98d", "b71"], "transfer-corrupt"), (["f1a", "f1a", "f1a"], "artifact-changed")],
)
def test_case_h05(got: list[str], code: str) -> None:
    assert classify_wrong_transfers([Measured(sha256, 100) for sha256 in got], 100) == code


def test_short_transfers_prove_nothing() -> None:
    assert classify_wrong_transfers([Measured("f1a", 50), Measured("f1a", 50)], 100) == "transfer-corrupt"


def test_a_server_that_comes_up_late(store: Store) -> None:
    server = LoopbackServer(lambda request: Response(body=CONTENT))
    server.misbehave("/a", Misbehaviour(status=503, times=2))
    with server:
        assert fetch(store, request(server))["a"].read_bytes() == CONTENT


def test_a_refused_connection_is_tried_again_until_it_is_accepted(store: Store) -> None:
    listener = socket.socket()

    def serve_one() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(10_000)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(CONTENT)}\r\n\r\n"
            connection.sendall(head.encode() + CONTENT)

    class Refused(Progress):
        def note(self, message: str) -> None:
            super().note(message)
            if len(self.notes) == 2:
                listener.listen()
                threading.Thread(target=serve_one, daemon=True).start()

    progress = Refused()
    with listener:
        listener.bind(("127.0.0.1", 0))  # nobody else gets the port, and nobody listens yet
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/a"
        wanted = FetchRequest("a", (url,), SHA256, len(CONTENT))
        assert fetch_all([wanted], store, observer=progress, http=HTTP)["a"].read_bytes() == CONTENT
    assert [("Connection refused" in note) for note in progress.notes] == [True, True]


def test_an_unknown_hash_is_found_out(server: LoopbackServer, store: Store) -> None:
    server.misbehave("/a", Misbehaviour(cut_after=1000, times=1))
    path = fetch(store, request(server, sha256=None, size=None))["a"]
    assert path.name == SHA256
    assert ["Range" in asked.headers for asked in server.requested("/a")] == [False, False]
    assert list((store.root / "partial").iterdir()) == []


def test_local_files(server: LoopbackServer, store: Store, tmp_path: Path) -> None:
    source = tmp_path / "a b.whl"
    source.write_bytes(CONTENT)
    for candidate in (str(source), f"file://{tmp_path}/a%20b.whl"):
        assert fetch(store, request(server, candidates=(candidate,)))["a"].read_bytes() == CONTENT
        store.evict(max_bytes=None)
    source.write_bytes(b"changed")
    assert failure(store, request(server, candidates=(str(source),))).code == "artifact-changed"


@pytest.mark.parametrize("size", [len(CONTENT) - 1, len(CONTENT) + 1])
def test_a_right_hash_with_another_size_is_a_lock_at_fault(
    size: int, server: LoopbackServer, store: Store, tmp_path: Path
) -> None:
    local = tmp_path / "a.whl"
    local.write_bytes(CONTENT)
    for asked in (request(server, size=size), request(server, size=size, candidates=(str(local),))):
        with pytest.raises(LockError) as caught:
            fetch(store, asked)
        assert caught.value.code == "lock-invalid"
        assert f"{len(CONTENT)} bytes, and the lock says {size}" in caught.value.what
    assert len(server.requests) == 1, "it says so at once"


def test_credentials_are_never_shown(store: Store) -> None:
    error = failure(store, FetchRequest("a", ("http://me:hidden@127.0.0.1:1/a",), SHA256))
    assert "hidden" not in str(error)


def test_a_full_disk(server: LoopbackServer, store: Store) -> None:
    store.partial(SHA256).symlink_to("/dev/full")
    with pytest.raises(BuildError) as caught:
        fetch(store, request(server))
    assert caught.value.code == "disk-full"
    assert store.blob(SHA256) is None


def test_many_at_once_and_the_first_failure_ends_all(server: LoopbackServer, store: Store) -> None:
    several = [request(server, name=f"a{number}", path=f"/a{number}") for number in range(8)]
    assert len(fetch(store, *several)) == 8
    with pytest.raises(LockError):
        fetch(store, *several, request(server, path="/x", name="x", sha256="0" * 64))


def test_two_runs_fetching_one_file_fetch_it_once(server: LoopbackServer, store: Store) -> None:
    server.misbehave("/a", Misbehaviour(delay=0.3, times=1))
    results: list[Path] = []
    threads = [
        threading.Thread(target=lambda: results.append(fetch(store, request(server))["a"])) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[1]
    assert len(server.requested("/a")) == 1


def test_many_names_of_one_content_are_fetched_once(store: Store, tmp_path: Path) -> None:
    content = b"x" * 1000
    sha256 = hashlib.sha256(content).hexdigest()
    with LoopbackServer(lambda asked: Response(body=content)) as server:
        for turn in range(20):  # each was a race that one in two lost
            wanted = [FetchRequest(f"a{n}", (f"{server.url}/{turn}/a{n}",), sha256, 1000) for n in range(16)]
            store = Store(tmp_path / str(turn))
            paths = fetch_all(wanted, store, observer=SilentObserver(), jobs=16, http=HTTP)
            assert {path.read_bytes() for path in paths.values()} == {content}
            assert len(server.requested(f"^/{turn}/")) == 1
            assert list((store.root / "partial").iterdir()) == []


def test_who_is_done_with_a_growing_file_leaves_the_next_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    with growing_file(path, print, keep=False):
        path.rename(tmp_path / "whole")
        path.touch()  # by another, who has just begun
    assert path.exists()


@pytest.mark.parametrize(
    ("keep", "content", "stays"), [(True, b"x", True), (True, b"", False), (False, b"x", False)]
)
def test_what_stays_of_a_growing_file(tmp_path: Path, keep: bool, content: bytes, stays: bool) -> None:
    path = tmp_path / "growing"
    with growing_file(path, print, keep=keep):
        path.write_bytes(content)
    assert path.exists() == stays


def test_a_download_begins_anew_in_the_file_that_others_wait_for(
    server: LoopbackServer, store: Store
) -> None:
    server.misbehave("/a", Misbehaviour(replace=b"w" * len(CONTENT), times=1))
    files = set[int]()

    class Watch(SilentObserver):
        def advance(self, name: str, done: int, total: int | None, unit: str = "bytes") -> None:
            files.add(store.partial(SHA256).stat().st_ino)

    paths = fetch_all([request(server)], store, observer=Watch(), http=HTTP)
    assert paths["a"].read_bytes() == CONTENT
    assert len(files) == 1
    assert len(server.requested("/a")) == 2


STALLED = """
import sys
from pathlib import Path
from stackbuild.progress import SilentObserver
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store

class Tell(SilentObserver):
    def advance(self, name, done, total, unit="bytes"):
        print(done, flush=True)

url, root, sha256 = sys.argv[1:]
http = HttpClient(timeout=600)
fetch_all([FetchRequest("a", (url,), sha256)], Store(Path(root)), observer=Tell(), http=http)
"""


def test_an_interrupt_ends_a_stalled_download_and_leaves_nothing_half_made(store: Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        child = subprocess.Popen(
            [sys.executable, "-c", STALLED, f"http://127.0.0.1:{port}/a", str(store.root), SHA256],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        connection, _ = listener.accept()
        with connection:
            connection.recv(10_000)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(CONTENT)}\r\n\r\n"
            connection.sendall(head.encode() + CONTENT[: 600 * 1024])
            assert child.stdout is not None
            while int(child.stdout.readline()) < 512 * 1024:
                pass
            time.sleep(0.2)  # mostly, the rest is waited for by now
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=100)
    assert b"KeyboardInterrupt" in errors
    assert store.blob(SHA256) is None
    assert list((store.root / "tmp").iterdir()) == []
    kept = store.partial(SHA256).read_bytes()  # what arrived is resumed next time
    assert kept
    assert CONTENT.startswith(kept)
