"""What several threads ask for is made once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from stackbuild.once import Once


def test_who_asks_for_what_is_being_made_waits_for_it() -> None:
    once = Once[str, object]()
    asked, made = threading.Barrier(8), list[str]()

    def make() -> object:
        made.append("a")
        return object()

    def ask(_: int) -> object:
        asked.wait()
        return once.get("a", make)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert made == ["a"]


def test_one_key_does_not_wait_for_another() -> None:
    once = Once[str, str]()
    assert once.get("a", lambda: once.get("b", lambda: "value")) == "value"


def test_a_failure_is_not_kept() -> None:
    once = Once[str, int]()
    with pytest.raises(ZeroDivisionError):
        once.get("a", lambda: 1 // 0)
    assert once.get("a", lambda: 1) == 1
