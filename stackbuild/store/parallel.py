"""Doing several transfers at a time, and stopping all of them when one fails or the person interrupts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from stackbuild.store.http import HttpClient

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(function: Callable[[T], R], items: Iterable[T], *, http: HttpClient, jobs: int) -> list[R]:
    """Call a function for every item and return the results in the items' order.

    The first failure is raised, after the client was stopped, so that nobody is left waiting for a server.

    Args:
        function: Called in several threads.
        items: What it is called with.
        http: The client that the function uses; its own, not one that others go on using.
        jobs: Threads.
    """
    with ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="transfer") as pool:
        futures: list[Future[R]] = []
        try:
            futures.extend(pool.submit(function, item) for item in items)
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future in done:
                    future.result()
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            http.stop()
            raise
