"""Whatever happens in whatever order: caps, keys, fair shares, and nothing lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from invocations.sandbox.pool.inventory import compute_full_weight
from invocations.sandbox.pool.pool import BoxPool
from invocations.sandbox.pool.slots import (
    MIB,
    BoxRefused,
    BoxRequest,
    BoxTicket,
    PoolCaps,
    PoolJob,
    PoolSlot,
    PoolSlotState,
)

BOXES, MEMORY = 4, 2048 * MIB


@dataclass(frozen=True)
class Shape:
    memory_bytes: int

    @property
    def kind(self) -> int:
        return self.memory_bytes


SHAPES = [Shape(256 * MIB), Shape(900 * MIB)]


@dataclass(eq=False)
class Box:
    """Knows itself what was done with it."""

    shape: Shape
    own: BoxRequest | None
    keys: set[object] = field(default_factory=set)
    calls: int = 0
    busy: bool = False
    ended: bool = False


@dataclass(frozen=True)
class Grant:
    """Who got a box, and who waited then."""

    tenant: str
    before: float
    after: float
    tenants: int
    waiting: list[tuple[int, str, float]]


class WatchedPool(BoxPool[Box]):
    grants: list[Grant]

    def _grant(self, ticket: BoxTicket[Box], slot: PoolSlot[Box]) -> None:
        share = self.ledger.share
        others = [one for one in self._waiting.values() if one is not ticket]
        if not ticket.want.own:  # its room was given to it when the box was begun
            tenants = {one.want.tenant for one in (ticket, *others)} | set(self.ledger.held)
            coming = Counter(one.want.tenant for one in others if not one.blocked)
            waiting = [(one.number, one.want.tenant, share(one.want, coming[one.want.tenant])) for one in others]
            self.grants.append(
                Grant(ticket.want.tenant, share(ticket.want), share(ticket.want, 1), len(tenants), waiting)
            )
        super()._grant(ticket, slot)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.pool = WatchedPool(
            PoolCaps(boxes=BOXES, memory_bytes=MEMORY, ready=1, idle_s=30, calls=5, age_s=120), clock=lambda: self.now
        )
        self.pool.grants = []
        self.pool.sizing.keep_ready(SHAPES[0])
        self.tickets: list[BoxTicket[Box]] = []
        self.running: list[PoolSlot[Box]] = []
        self.jobs: list[PoolJob[Box]] = []
        self.boxes: list[Box] = []
        self.failed: set[int] = set()

    # -- what may happen

    @rule(
        tenant=st.sampled_from("ABC"),
        version=st.sampled_from((1, 2, None)),
        shape=st.sampled_from(SHAPES),
        own=st.booleans(),
    )
    def a_call_comes(self, tenant: str, version: int | None, shape: Shape, own: bool) -> None:
        key = None if version is None or own else (tenant, version, shape)
        self.tickets.append(self.pool.ask(BoxRequest(shape, tenant, key, own=own and version is None)))

    @rule(tenant=st.sampled_from("ABC"), version=st.sampled_from((1, 2)), count=st.integers(2, BOXES))
    def several_calls_come(self, tenant: str, version: int, count: int) -> None:
        for _ in range(count):
            self.a_call_comes(tenant, version, SHAPES[0], own=False)

    @precondition(lambda self: self.running)
    @rule()
    def the_oldest_call_ends_well(self) -> None:
        self.a_call_ends(0, unfit="", used=True)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 99), unfit=st.sampled_from(("", "", "", "dirty", "lost")), used=st.booleans())
    def a_call_ends(self, which: int, unfit: str, used: bool) -> None:
        slot = self.running.pop(which % len(self.running))
        assert slot.box is not None
        slot.box.busy = False
        slot.box.calls += used
        if not slot.box.calls:
            slot.box.keys.clear()
        self.pool.give_back(slot, unfit=unfit, used=used)

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 99))
    def a_caller_gives_up(self, which: int) -> None:
        ticket = self.tickets[which % len(self.tickets)]
        if self.pool.withdraw(ticket, BoxRefused("given up")):
            self.tickets.remove(ticket)

    @rule()
    def a_job_begins(self) -> None:
        job = self.pool.next_job()
        if job is not None:
            self.jobs.append(job)

    @precondition(lambda self: self.jobs)
    @rule(which=st.integers(0, 99), outcome=st.sampled_from(("good", "good", "good", "refused", "broken", "died")))
    def a_job_ends(self, which: int, outcome: str) -> None:
        self.end_job(self.jobs.pop(which % len(self.jobs)), outcome)

    @rule()
    def all_work_is_done(self) -> None:
        self.take_jobs()
        while self.jobs:
            self.end_job(self.jobs.pop(), "good")
            self.take_jobs()

    @rule(seconds=st.sampled_from((0.1, 2.5, 10.0, 60.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.pool.tick()

    @rule(which=st.integers(0, 99))
    def a_box_is_found_dead(self, which: int) -> None:
        slots = self.pool.slots()
        if slots:
            self.pool.discard([slots[which % len(slots)]], "died")

    # -- what must hold

    def take_jobs(self) -> None:
        while (job := self.pool.next_job()) is not None:
            self.jobs.append(job)

    def end_job(self, job: PoolJob[Box], outcome: str) -> None:
        slot = job.slot
        if not job.make and outcome == "broken":
            self.pool.not_gone(slot)
        elif not job.make:
            assert slot.box is not None
            assert not slot.box.busy
            assert not slot.box.ended
            slot.box.ended = True
            self.pool.gone(slot)
        elif outcome == "good":
            assert isinstance(slot.shape, Shape)
            self.boxes.append(Box(slot.shape, slot.want))
            self.pool.made_one(slot, self.boxes[-1], 0.3)
        else:
            self.pool.not_made(slot, RuntimeError(outcome), broken=outcome == "broken", died=outcome == "died")

    @invariant()
    def all_is_well(self) -> None:
        self.what_was_granted_is_right()
        self.caps_are_kept()
        self.nothing_is_lost()
        self.nobody_waits_for_nothing()
        self.nobody_gets_more_than_a_share_out_of_turn_while_somebody_waits_for_room()

    def what_was_granted_is_right(self) -> None:
        for ticket in [ticket for ticket in self.tickets if ticket.settled]:
            self.tickets.remove(ticket)
            assert (ticket.slot is None) != (ticket.refusal is None)
            if ticket.slot is None:
                continue
            box = ticket.slot.box
            assert box is not None
            assert not box.busy, "two callers in one box"
            assert not box.ended, "a box that is gone"
            assert box.shape == ticket.want.shape
            assert box.keys <= {ticket.want.key}, "a box of another key"
            assert box.own in (None, ticket.want)
            assert not (ticket.want.own and box.own is None), "not made for this call"
            assert box.calls < (5 if ticket.want.key else 1), "used once too often"
            box.busy = True
            box.keys.add(ticket.want.key)
            self.running.append(ticket.slot)

    def caps_are_kept(self) -> None:
        slots = self.pool.slots()
        assert len(slots) <= BOXES
        assert sum(slot.weight for slot in slots) == self.pool.ledger.bytes <= MEMORY
        for slot in slots:
            key = slot.key
            busy = any(each.loaded and each.key == key and each.state is PoolSlotState.BUSY for each in slots)
            assert self.pool.ledger.has_loaded(key) == busy
            if slot.state in (PoolSlotState.BUSY, PoolSlotState.CREATING):
                assert slot.weight == compute_full_weight(slot.shape)

    def nothing_is_lost(self) -> None:
        slots = self.pool.slots()
        alive = [box for box in self.boxes if not box.ended]
        assert {id(slot.box) for slot in slots if slot.box} == {id(box) for box in alive}
        assert [slot for slot in slots if slot.state is PoolSlotState.BUSY] == sorted(
            self.running, key=lambda slot: slot.number
        )
        in_hand = [job.slot for job in self.jobs]
        to_do = [*self.pool.ledger.doomed, *self.pool._plans._planned]
        for slot in slots:
            if slot.state in (PoolSlotState.CREATING, PoolSlotState.RETIRING):
                assert (in_hand + to_do).count(slot) == 1

    def nobody_waits_for_nothing(self) -> None:
        """Who waits is either blocked by what others hold or by boxes on their way out, or its box is being made."""
        busy = any(
            slot.state in (PoolSlotState.BUSY, PoolSlotState.RETIRING, PoolSlotState.CREATING)
            for slot in self.pool.slots()
        )
        assert busy or not self.tickets

    def nobody_gets_more_than_a_share_out_of_turn_while_somebody_waits_for_room(self) -> None:
        waits_only_for_room = {
            ticket.want.tenant: all(one.blocked for one in self.tickets if one.want.tenant == ticket.want.tenant)
            for ticket in self.tickets
        }
        for grant in self.pool.grants:
            for number, tenant, share in grant.waiting:
                still = any(ticket.number == number for ticket in self.tickets) and waits_only_for_room[tenant]
                if still and tenant != grant.tenant and share < grant.before:
                    assert grant.after <= 1 / grant.tenants, grant
        self.pool.grants.clear()

    def teardown(self) -> None:
        self.pool.close()
        self.what_was_granted_is_right()
        assert not self.tickets
        for _ in range(20):  # a box that could not be ended is tried again later
            for slot in self.running:
                assert slot.box is not None
                slot.box.busy = False
                self.pool.give_back(slot)
            self.running.clear()
            for job in self.jobs:
                self.end_job(job, "good")
            self.jobs.clear()
            self.take_jobs()
            self.now += 10
        assert self.pool.slots() == []
        assert all(box.ended for box in self.boxes)


TestPool = Machine.TestCase
TestPool.settings = settings(stateful_step_count=40)
