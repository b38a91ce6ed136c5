"""How often is a tool's code loaded for those who call it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.sandbox.loads import REST_S, LoadTimedOut
from invocations.sandbox.slots import State, Want
from tests.pools import USUAL, Hub

if TYPE_CHECKING:
    from invocations.sandbox.slots import Slot, Ticket


class Loading(Hub):
    """A hub whose loads end when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.loading: list[Slot[str]] = []
        self.pool._on_load = lambda slot, _: self.loading.append(slot)

    def call(self) -> Ticket[str]:
        return self.pool.ask(Want(USUAL, "t", "a", load=lambda: b"code"))

    def loaded(self, after: float = 10.0) -> Slot[str]:
        slot = self.loading.pop()
        self.now += after
        self.pool.loaded_one(slot)
        return slot


def test_all_who_wait_are_served_by_the_box_that_is_loaded_for_the_first() -> None:
    hub = Loading()
    tickets = [hub.call() for _ in range(5)]
    assert hub.work() == ["make 1"]
    assert hub.states() == [State.LOADING]

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

    assert slot.state is State.LOADED
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

    hub.pool.not_loaded(slot, LoadTimedOut("too slow"))

    assert all(isinstance(ticket.refusal, LoadTimedOut) for ticket in [*tickets, hub.call()])
    hub.work()
    assert hub.states() == []
    hub.later(REST_S)
    assert not hub.call().settled
    assert hub.work() == ["make 2"]
