"""Turns: is each piece of work done once, by its own thread or with others, and does nobody wait who is alone?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernel.turns import Turns

WITHIN_S = 60


class Counter:
    """Work that takes until it is let go; ``groups``: what was done together."""

    def __init__(self, turns: Turns[int]) -> None:
        self.turns = turns
        self.groups: list[list[int]] = []
        self.begun, self.go = threading.Semaphore(0), threading.Event()

    def do(self, number: int) -> list[int]:
        with self.turns.take(number) as group:
            if group:
                self.groups.append(group)
                self.begun.release()
                assert self.go.wait(WITHIN_S)
        return group


def waiting(turns: Turns[int]) -> int:
    return len(turns._waiting)


def crowd(counter: Counter, pool: ThreadPoolExecutor, numbers: list[int]) -> list[list[int]]:
    """What each had to do, where all but the first came while the first was at work."""
    first = pool.submit(counter.do, numbers[0])
    assert counter.begun.acquire(timeout=WITHIN_S)
    others = []
    for at, number in enumerate(numbers[1:], 1):
        others.append(pool.submit(counter.do, number))
        while waiting(counter.turns) < at:
            pass
    counter.go.set()
    return [each.result(WITHIN_S) for each in (first, *others)]


def test_who_is_alone_does_its_own_at_once() -> None:
    turns: Turns[int] = Turns()

    for number in range(3):
        with turns.take(number) as group:
            assert group == [number]


def test_who_comes_meanwhile_is_done_together_by_the_first_of_them() -> None:
    counter = Counter(Turns())

    with ThreadPoolExecutor(5) as pool:
        found = crowd(counter, pool, [1, 2, 3, 4, 5])

    assert found == [[1], [2, 3, 4, 5], [], [], []]
    assert counter.groups == [[1], [2, 3, 4, 5]]


def test_only_what_fits_is_done_together_and_the_rest_follows_in_its_order() -> None:
    counter = Counter(Turns(fits=lambda one, other: one % 2 == other % 2))

    with ThreadPoolExecutor(6) as pool:
        crowd(counter, pool, [0, 1, 2, 3, 4, 5])

    assert counter.groups == [[0], [1, 3, 5], [2, 4]]


def test_a_turn_that_fails_is_over_for_all_who_were_part_of_it() -> None:
    turns: Turns[int] = Turns()
    counter = Counter(turns)

    def fail(number: int) -> None:
        with turns.take(number) as group:
            if group:
                raise LookupError

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(counter.do, 1)
        assert counter.begun.acquire(timeout=WITHIN_S)
        second = pool.submit(fail, 2)
        while waiting(turns) < 1:
            pass
        third = pool.submit(counter.do, 3)
        while waiting(turns) < 2:
            pass
        counter.go.set()
        with pytest.raises(LookupError):
            second.result(WITHIN_S)
        assert (first.result(WITHIN_S), third.result(WITHIN_S)) == ([1], [])

    with turns.take(4) as group:
        assert group == [4]


@pytest.mark.parametrize("its_turn", ["has not come", "has come"])
def test_a_wait_that_is_broken_off_holds_up_nobody(its_turn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: Turns[int] = Turns()
    counter = Counter(turns)

    def break_off(_point: str) -> None:
        if its_turn == "has come":
            counter.go.set()
            while waiting(turns):
                pass
        raise LookupError

    monkeypatch.setattr("kernel.turns.inject_fault", break_off)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(counter.do, 1)
        assert counter.begun.acquire(timeout=WITHIN_S)
        with pytest.raises(LookupError), turns.take(2):
            pass
        assert waiting(turns) == 0
        counter.go.set()
        assert first.result(WITHIN_S) == [1]

    assert not turns._is_busy
    with turns.take(3) as group:
        assert group == [3]
