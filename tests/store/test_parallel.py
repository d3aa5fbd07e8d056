from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from stackbuild.errors import InterruptedRunError
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.retry import RefusedError, RetryPolicy
from tests.support.loopback import LoopbackServer, Misbehaviour, Request, Response


def answer(request: Request) -> Response:
    return Response(404) if request.path == "/none" else Response(body=request.path.encode())


def test_results_keep_their_order() -> None:
    with LoopbackServer(answer) as server:
        http = HttpClient()
        server.misbehave("/1", Misbehaviour(delay=0.1))
        paths = ["/1", "/2", "/3"]
        assert in_parallel(lambda path: http.read(server.url + path).body, paths, http=http, jobs=3) == [
            path.encode() for path in paths
        ]


def test_a_failure_ends_the_others_waits_too() -> None:
    with LoopbackServer(answer) as server:
        server.misbehave("/limited", Misbehaviour(status=429, headers={"Retry-After": "60"}))
        http = HttpClient(retry=RetryPolicy(attempts=3))
        began = time.monotonic()
        with pytest.raises(RefusedError):
            in_parallel(lambda path: http.read(server.url + path), ["/limited", "/none"], http=http, jobs=2)
        assert time.monotonic() - began < 50, "the limit was waited for"
        with pytest.raises(InterruptedRunError):
            http.read(server.url + "/a")
        assert http.scoped().read(server.url + "/a").body == b"/a"


def test_an_interrupt_while_work_is_handed_out_stops_it() -> None:
    def paths() -> Iterator[str]:
        yield "/1"
        raise KeyboardInterrupt

    http = HttpClient()
    with pytest.raises(KeyboardInterrupt):
        in_parallel(lambda path: path, paths(), http=http, jobs=2)
    with pytest.raises(InterruptedRunError):
        http.check_stopped()
