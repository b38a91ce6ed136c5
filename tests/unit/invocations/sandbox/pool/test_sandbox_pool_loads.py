"""Sandbox pool loads: how often is a tool's code loaded for those who call it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.sandbox.boxes.box import NotLoaded
from invocations.sandbox.pool.loads import REST_S, LoadTimeout
from invocations.sandbox.pool.slots import BoxRequest, BoxTicket, PackageLoad, PoolSlotState
from tests.support.pool_harness import USUAL, Hub

if TYPE_CHECKING:
    import pytest

    from invocations.sandbox.pool.slots import PoolSlot


class Loading(Hub):
    """A hub whose loads end when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.loading: list[PoolSlot[str]] = []
        self.pool._on_load = lambda slot, _: self.loading.append(slot)

    def call(self) -> BoxTicket[str]:
        return self.pool.ask(BoxRequest(USUAL, "t", "a", load=PackageLoad("a", lambda _: b"code")))

    def loaded(self, after: float = 10.0) -> PoolSlot[str]:
        slot = self.loading.pop()
        self.now += after
        self.pool.loaded_one(slot)
        return slot


def test_all_who_wait_are_served_by_the_box_that_is_loaded_for_the_first() -> None:
    hub = Loading()
    tickets = [hub.call() for _ in range(5)]
    assert hub.work() == ["make 1"]
    assert hub.states() == [PoolSlotState.LOADING]

    slot = hub.loaded()
    for ticket in tickets:
        assert ticket.slot is slot
        hub.pool.give_back(slot)

    assert hub.work() == []
    assert hub.loading == []


def test_a_load_goes_on_when_nobody_waits_for_it_any_more() -> None:
    hub = Loading()
    ticket = hub.call()
    hub.work()

    hub.pool.withdraw(ticket, RuntimeError("gave up"))
    slot = hub.loaded()

    assert slot.state is PoolSlotState.LOADED
    assert hub.call().slot is slot


def test_another_box_is_loaded_when_calls_have_waited_as_long_together_as_a_load_takes() -> None:
    hub = Loading()
    hub.call()
    hub.work()
    hub.loaded(after=6.0)
    waiting = [hub.call(), hub.call()]

    hub.later(2.9)
    assert hub.work() == []
    hub.later(0.2)

    assert hub.work() == ["make 2"]
    assert len(hub.loading) == 1
    second = hub.loaded()
    assert [ticket.slot for ticket in waiting].count(second) == 1


def test_who_waited_for_a_load_that_timed_out_is_told_and_so_is_who_calls_soon() -> None:
    hub = Loading()
    tickets = [hub.call(), hub.call()]
    hub.work()
    slot = hub.loading.pop()

    hub.pool.not_loaded(slot, LoadTimeout("too slow"))

    assert all(isinstance(ticket.refusal, LoadTimeout) for ticket in [*tickets, hub.call()])
    hub.work()
    assert hub.states() == []
    hub.later(REST_S)
    assert not hub.call().settled
    assert hub.work() == ["make 2"]


def test_one_looks_for_all_who_wait_whether_another_box_is_worth_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Loading()
    first = hub.call()
    hub.work()
    slot = hub.loaded()
    assert first.slot is slot
    waiting = [hub.call() for _ in range(3)]
    looked: list[float] = []
    match = hub.pool._match

    def look(now: float) -> None:
        looked.append(now)
        match(now)

    monkeypatch.setattr(hub.pool, "_match", look)

    def looks_of(ticket: BoxTicket[str]) -> int:
        """Of one who wakes up five times, and then is served."""
        looked.clear()
        wakes = iter([False] * 5 + [True])
        monkeypatch.setattr(BoxTicket, "wait", lambda *_: next(wakes))
        assert hub.pool.wait_for(ticket, 60)
        return len(looked)

    assert [looks_of(ticket) for ticket in waiting] == [5, 0, 0]
    hub.pool.give_back(slot)
    assert waiting[0].slot is slot
    assert [looks_of(ticket) for ticket in waiting[1:]] == [5, 0]


def test_what_a_load_reached_for_is_told_by_one_of_those_who_waited_for_it() -> None:
    hub = Loading()
    tickets = [hub.call() for _ in range(3)]
    hub.work()
    slot = hub.loading.pop()
    slot.connections = ("one", "two")

    hub.pool.not_loaded(slot, NotLoaded("no"))

    assert [ticket.connections for ticket in tickets] == [("one", "two"), (), ()]
