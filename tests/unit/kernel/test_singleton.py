"""Singleton: do all threads get the same one?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from kernel.singleton import Once

THREADS = 8


def test_threads_that_come_together_get_the_same_one() -> None:
    together, made = threading.Barrier(THREADS), []

    @Once
    def thing() -> object:
        made.append(object())
        return made[-1]

    def ask(_: int) -> object:
        together.wait(timeout=30)
        return thing()

    with ThreadPoolExecutor(THREADS) as pool:
        found = set(pool.map(ask, range(THREADS)))

    assert found == set(made)
    assert len(made) == 1
    thing.cache_clear()
    assert thing() is not made[0]
