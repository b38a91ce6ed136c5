"""Waiters: how long does one who waits for a call go without looking at it?"""

from __future__ import annotations

from uuid import uuid4

import pytest

from invocations.answer.wake_ups import LOOK_ANYWAY_S, LOOK_DEAF_S, InProcessWaker


@pytest.mark.req("TOOLS-32")
def test_one_of_many_looks_seldom_unless_nothing_is_heard() -> None:
    waker = InProcessWaker()
    with waker.listen(uuid4()) as waiter:
        assert waiter._at_most(60) == LOOK_ANYWAY_S
        waiter.look_anyway_s = 10.0
        assert (waiter._at_most(60), waiter._at_most(2)) == (10.0, 2)
        waker.deaf = True
        assert waiter._at_most(60) == LOOK_DEAF_S


@pytest.mark.req("TOOLS-32")
def test_who_was_woken_knows_it() -> None:
    waker, id = InProcessWaker(), uuid4()
    with waker.listen(id) as waiter, waker.listen(uuid4()) as other:
        waker.wake(id)
        assert (waiter.was_poked, other.was_poked) == (True, False)
        waker.wake_all()
        assert other.was_poked
