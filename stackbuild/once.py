"""What several threads ask for, made once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Once(Generic[K, V]):
    """Values by key, each made by the first thread that asks; others that ask for the same wait for it.

    What fails is not kept: the next one who asks tries again.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._turns: dict[K, threading.Lock] = {}
        self._made: dict[K, V] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The key's value, made now where it is not there yet."""
        with self._guard:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]
