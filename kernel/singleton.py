"""Singleton: how a process has one of something that many threads ask for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Once(Generic[T]):
    """Called, makes it the first time and returns the same ever after; ``functools.cache`` lets threads that come together
    make one each.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._lock = threading.Lock()
        self.__doc__ = make.__doc__

    def __call__(self) -> T:
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]

    def cache_clear(self) -> None:
        """Forget it: the next call makes another. For tests."""
        with self._lock:
            self._made.clear()
