"""Pool: which box serves which call, and when a box is made or ended.

Nothing here talks to an engine, sleeps or starts a thread: calls ask, wait and give back; whoever does the work asks for
the next job and reports its end; time comes from outside. A box is blank until its first call, and then belongs to one
key for ever. Caps are kept by counting what is being made and what is not yet known to be gone.

When there is not room for all, the turn is that of the tenant with the smallest share of boxes or memory in use, whichever
is larger; nobody gets more than an equal share while somebody else waits for room.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Generic

from invocations.sandbox.pool.circuit_breaker import CircuitBreakers
from invocations.sandbox.pool.fair_share import FairShare, TurnResult
from invocations.sandbox.pool.inventory import IDLE, BoxInventory, compute_full_weight
from invocations.sandbox.pool.loads import LoadTimeout, PackageLoads
from invocations.sandbox.pool.refills import Refills
from invocations.sandbox.pool.reservations import BoxReservations
from invocations.sandbox.pool.slots import (
    USUAL_IDLE,
    B,
    BoxRefused,
    BoxTicket,
    PoolCaps,
    PoolJob,
    PoolSlot,
    PoolSlotState,
)
from invocations.sandbox.pool.target_size import TargetSize

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from invocations.sandbox.pool.slots import BoxRequest, PackageLoad, Shape

_ENDS = 3  # at a time: whoever does the work has a hand free for a call that waits
_AGAIN_S = 5.0  # between two tries of what has failed
_STOPPING = "The hub is stopping, so the tool was not run."


class BoxPool(Generic[B]):
    """May be used from many threads at once. ``on_work`` is called when there may be a job, ``on_load`` when a box is to be
    loaded; neither may come back.
    """

    def __init__(
        self,
        caps: PoolCaps,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_work: Callable[[], None] = lambda: None,
        on_load: Callable[[PoolSlot[B], PackageLoad], None] = lambda *_: None,
        pressure: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.caps, self.breakers = caps, CircuitBreakers()
        self.ledger: BoxInventory[B] = BoxInventory(caps)
        self.sizing = TargetSize(burst=caps.ready, most=max(caps.boxes // 2, 1), forget_after_s=caps.idle_s)
        self.made: Counter[str] = Counter()  # for a call, or to refill
        self.not_made_for: Counter[str] = Counter()
        self._clock, self._on_work, self._on_load = clock, on_work, on_load
        self.loads = PackageLoads()
        self._lock = threading.Lock()
        self._waiting: dict[int, BoxTicket[B]] = {}
        self._plans, self._turns = BoxReservations(self.ledger), FairShare(self.ledger)
        self._refills = Refills(self.ledger, self.sizing, pressure)
        self._number = self._ending = 0
        self._closed = False

    # -- calls

    def ask(self, want: BoxRequest) -> BoxTicket[B]:
        """A place in the queue, perhaps settled already."""
        with self._lock:
            now = self._clock()
            self._number += 1
            ticket: BoxTicket[B] = BoxTicket(want, self._number, now)
            needs = compute_full_weight(want.shape)
            if self._closed:
                ticket.settle(refusal=BoxRefused(_STOPPING, cancelled=True))
            elif needs > self.caps.memory_bytes:
                sentence = f"The tool's box may hold {needs} bytes, but all boxes together {self.caps.memory_bytes}."
                ticket.settle(refusal=BoxRefused(f"{sentence} TOOLHUB_SANDBOX_MAX_MEMORY_MB says how much."))
            else:
                self._waiting[ticket.number] = ticket
                self._match(now)
            return ticket

    def withdraw(self, ticket: BoxTicket[B], why: Exception) -> bool:
        """Wait no longer. False when the ticket is settled already; a box that it has must be given back."""
        with self._lock:
            if ticket.settled:
                return False
            self._refuse(ticket, why)
            self._plans.make_no_more_than(len(self._waiting_for(ticket.want.shape)), ticket)
            self._match(self._clock())
            return True

    def give_back(self, slot: PoolSlot[B], *, unfit: str = "", used: bool = True) -> None:
        """The call has ended. ``unfit``: why the box serves no more. ``used=False``: nothing was put into it."""
        with self._lock:
            now = self._clock()
            slot.calls += used
            slot.used = now
            why = unfit or slot.doomed or ("closing" if self._closed else "")
            if not why and self.ledger.is_used_up(slot, used=used):
                why = "single use"
            why = why or self.ledger.worn_out(slot, now)
            if why:
                self.ledger.retire(slot, why)
            elif slot.calls or slot.loaded:
                self.ledger.move(slot, PoolSlotState.LOADED)
            else:
                slot.idle = USUAL_IDLE  # before it is weighed
                self.ledger.move(slot, PoolSlotState.READY)
                slot.key, slot.tenant, slot.label, slot.level = None, "", "", ""
            self._match(now)
            self._tell()

    # -- whoever loads

    def loaded_one(self, slot: PoolSlot[B]) -> None:
        """It is offered to calls from now on, whether or not anybody waits for it still."""
        with self._lock:
            now = self._clock()
            slot.loaded, slot.used = True, now
            self.loads.end(slot.key, now)
            if slot.doomed or self._closed:
                self.ledger.retire(slot, slot.doomed or "closing")
            else:
                self.ledger.move(slot, PoolSlotState.LOADED)
            self._match(now)
            self._tell()

    def not_loaded(self, slot: PoolSlot[B], why: Exception) -> None:
        """Whoever waits for it is told why, and may ask again; the first of them also what it reached for."""
        with self._lock:
            now = self._clock()
            self.loads.end(slot.key, now)
            if isinstance(why, LoadTimeout):
                self.loads.rest(slot.key, now, str(why))
            self.ledger.retire(slot, "lost")
            for ticket in [each for each in self._waiting.values() if each.want.load and each.want.key == slot.key]:
                ticket.connections, slot.connections = slot.connections, ()
                self._refuse(ticket, why)
            self._match(now)
            self._tell()

    def wait_for(self, ticket: BoxTicket[B], seconds: float) -> bool:
        """Until it is settled. ``seconds``: beside the time in which its box is loaded, which is bounded by itself."""
        until, key = self._clock() + seconds, ticket.want.key
        patience_s = self.loads.patience_s(key) or seconds
        while not ticket.wait(min(patience_s, max(0.0, until - self._clock()))):
            now = self._clock()
            if self.loads.go_on(key):
                until = now + seconds
            elif now >= until:
                return False
            patience_s = max(patience_s, self.loads.patience_s(key))
            with self._lock:
                first = next((each for each in self._waiting.values() if each.want.key == key), None)
                if first is ticket:  # one looks for all of them
                    self._match(now)  # perhaps another box is worth a load by now
        return True

    # -- whoever does the work

    def next_job(self) -> PoolJob[B] | None:
        """What to do now: make what a call waits for, whose room is kept; end what must go; make boxes ahead."""
        with self._lock:
            now = self._clock()
            planned = self._plans.take(lambda shape: self.breakers.may_try(shape, now))
            if planned is not None:
                self.breakers.begin(planned.shape, now)
                return PoolJob(planned, make=True)
            for doomed in self.ledger.doomed:
                if doomed.not_before <= now and self._ending < _ENDS:
                    self._ending += 1
                    self.ledger.doomed.remove(doomed)
                    return PoolJob(doomed, make=False)
            refill = self._refill(now)
            if refill is None:
                return None
            self.breakers.begin(refill.shape, now)
            return PoolJob(refill, make=True)

    def made_one(self, slot: PoolSlot[B], box: B, took_s: float) -> None:
        with self._lock:
            now = self._clock()
            self.breakers.succeeded(slot.shape)
            self.sizing.made(took_s)
            self.made["refill" if slot.refill else "call"] += 1
            slot.box, slot.since, slot.used = box, now, now
            if slot.doomed or self._closed:
                self.ledger.retire(slot, slot.doomed or "closing")
            elif slot.own is not None:
                self._grant(slot.own, slot)
            else:
                self.ledger.move(slot, PoolSlotState.READY)
            self._match(now)
            self._tell()

    def not_made(self, slot: PoolSlot[B], why: Exception, *, broken: bool, died: bool = False) -> None:
        """It could not be made. ``broken``: the engine does not work, and has not just said no. ``died``: it did not start."""
        with self._lock:
            now = self._clock()
            self.not_made_for["refill" if slot.refill else "call"] += 1
            self.ledger.move(slot, PoolSlotState.GONE)
            waiting = [slot.own] if slot.own else self._waiting_for(slot.shape)
            if not slot.doomed and (slot.own or len(waiting) > self._plans.coming()[slot.shape]):
                for ticket in waiting[:1]:
                    self._refuse(ticket, why)
            if slot.refill:
                self._refills.not_before = now + _AGAIN_S
            self.breakers.failed(slot.shape, now, str(why), broken=broken, died=died)
            self._plans.drop(lambda planned: self.breakers.refusal(planned.shape, now) is not None)
            self._match(now)
            self._tell()

    def gone(self, slot: PoolSlot[B]) -> None:
        with self._lock:
            self._ending -= 1
            self.ledger.move(slot, PoolSlotState.GONE)
            self._match(self._clock())
            self._tell()

    def not_gone(self, slot: PoolSlot[B]) -> None:
        """It could not be ended: it keeps its room and is tried again later."""
        with self._lock:
            self._ending -= 1
            slot.not_before = self._clock() + _AGAIN_S
            self.ledger.doomed.append(slot)

    def tick(self) -> None:
        """What time alone brings about. To be called about once a second."""
        with self._lock:
            now = self._clock()
            if self._refills.shape_in_short_supply(self._plans.coming(), now) is not None:
                self._refills.short(now)
            self._turns.forget(now)
            for slot in self.ledger.idle():
                target = self.sizing.target(slot.shape, now)
                spare = slot.state is PoolSlotState.LOADED or self.ledger.blank(slot.shape) > target
                why = "idle" if spare and now - slot.used > self.ledger.may_wait_s(slot) else ""
                if why := self.ledger.worn_out(slot, now) or why:
                    self.ledger.retire(slot, why)
            self.loads.forget({slot.key for slot in self.ledger.slots.values()}, now)
            self._match(now)
            self._on_work()

    def keep_ready(self, usual: Shape) -> None:
        """There is to be a blank box of this shape before anybody asks for one."""
        with self._lock:
            self.sizing.keep_ready(usual)

    def discard(self, slots: Iterable[PoolSlot[B]], why: str) -> None:
        """These serve no more; those that are not idle, from the end of their call."""
        with self._lock:
            for slot in slots:
                if slot.state in IDLE:
                    self.ledger.retire(slot, why)
                else:
                    slot.doomed = slot.doomed or why
            self._match(self._clock())
            self._tell()

    def discard_dead(self, lives: Callable[[B], bool]) -> None:
        """``lives`` is asked about idle boxes only, and must be quick."""
        with self._lock:
            for slot in self.ledger.idle():
                if slot.box is not None and not lives(slot.box):
                    self.ledger.retire(slot, "died")
            self._match(self._clock())
            self._tell()

    def weigh_waiting(self, held: Callable[[B], int]) -> None:
        """By what boxes with a server in them hold while they wait. ``held`` may take a while: it is asked outside the lock."""
        with self._lock:
            waiting = [(slot.number, slot.box) for slot in self.ledger.list_waiting() if slot.box is not None]
        seen = {number: held(box) for number, box in waiting}
        with self._lock:
            self.ledger.weigh_waiting(seen)
            self.ledger.has_room(0, 0)  # where they hold too much together, idle boxes go
            self._match(self._clock())
            self._tell()

    def close(self) -> None:
        """Refuse whoever waits, make nothing more, end what is idle; what is busy is ended when it is given back."""
        with self._lock:
            self._closed = True
            for ticket in list(self._waiting.values()):
                self._refuse(ticket, BoxRefused(_STOPPING, cancelled=True))
            self._plans.drop()
            for slot in self.ledger.idle():
                self.ledger.retire(slot, "closing")
            self._tell()

    def slots(self) -> list[PoolSlot[B]]:
        with self._lock:
            return list(self.ledger.slots.values())

    def has_work(self) -> bool:
        """Whether there are boxes but for those that could not be ended just now."""
        with self._lock:
            return any(slot.not_before <= self._clock() for slot in self.ledger.slots.values())

    def waiting(self) -> int:
        return len(self._waiting)

    def is_full(self) -> bool:
        """Whether a call waits for room, and not only for its box to be made."""
        with self._lock:
            return any(ticket.blocked for ticket in self._waiting.values())

    def now(self) -> float:
        """By the pool's clock."""
        return self._clock()

    # -- under the lock

    def _tell(self) -> None:
        if self.ledger.doomed or self._plans or (self._refills.short_since and not self.ledger.held):
            self._on_work()

    def _match(self, now: float) -> None:
        """Serve those who wait, each in its turn."""
        if not self._waiting:
            return
        left = list(self._waiting.values())
        coming = self._plans.coming()
        promised: Counter[str] = Counter()
        first: set[Hashable] = set()  # of its key, and the only one for which a box is made or loaded now
        blocked = False
        while left:
            ticket = min(left, key=lambda one: (self.ledger.share(one.want, promised[one.want.tenant]), one.number))
            left.remove(ticket)
            if blocked and not self._turns.may_pass(ticket.want, promised[ticket.want.tenant], self._waiting.values()):
                ticket.blocked = True
                continue
            turn = self._serve(ticket, coming, first, now)
            ticket.blocked = turn is TurnResult.BLOCKED
            promised[ticket.want.tenant] += turn is TurnResult.COMING
            blocked = blocked or ticket.blocked
            if ticket.blocked and self._turns.lets_nobody_past(ticket, now):
                return
        self._tell()

    def _serve(self, ticket: BoxTicket[B], coming: Counter[Shape], first: set[Hashable], now: float) -> TurnResult:
        want = ticket.want
        slot = self.ledger.find_match(want)
        if want.load is not None and (slot is None or not slot.loaded):
            if (late := self.loads.refusal(want.key, now)) is not None:
                self._refuse(ticket, late)
                return TurnResult.SETTLED
            if want.key in first or not self._may_load(want.key, now):
                return TurnResult.COMING
            first.add(want.key)
        if slot is not None:
            if not self.ledger.has_room(0, want.shape.memory_bytes, keep=slot):
                return TurnResult.BLOCKED
            if slot.state is PoolSlotState.READY:
                self.sizing.took(want.shape, now)
                self._refills.short(now)
            if want.load is not None and not slot.loaded:
                self._load(ticket, slot, want.load, now)
                return TurnResult.COMING
            self._grant(ticket, slot)
            return TurnResult.SETTLED
        if want.own and any(slot.own is ticket for slot in self.ledger.creating()):
            return TurnResult.COMING
        if not want.own and coming[want.shape]:
            coming[want.shape] -= 1
            return TurnResult.COMING
        if (refusal := self.breakers.refusal(want.shape, now)) is not None:
            self._refuse(ticket, refusal)
            return TurnResult.SETTLED
        if not self.ledger.has_room(1, compute_full_weight(want.shape)):
            return TurnResult.BLOCKED
        self._plans.add(want.shape, now, ticket if want.own else None)
        return TurnResult.COMING

    def _grant(self, ticket: BoxTicket[B], slot: PoolSlot[B]) -> None:
        self._waiting.pop(ticket.number, None)
        if slot.state is PoolSlotState.LOADED:
            self.loads.served(slot.key, ticket.since, self._clock())
        else:
            self._assign(ticket, slot)
        slot.own = None
        self.ledger.move(slot, PoolSlotState.BUSY)
        ticket.settle(slot=slot)

    def _assign(self, ticket: BoxTicket[B], slot: PoolSlot[B]) -> None:
        slot.key, slot.tenant = ticket.want.key, ticket.want.tenant  # and from now on for nobody else
        slot.label, slot.level, slot.idle = ticket.want.label, ticket.want.level, ticket.want.idle

    def _may_load(self, key: Hashable, now: float) -> bool:
        if self.loads.go_on(key):
            return False
        waiting = (ticket.since for ticket in self._waiting.values() if ticket.want.key == key)
        return not self.ledger.has_loaded(key) or self.loads.is_worth(key, waiting, now)

    def _load(self, ticket: BoxTicket[B], slot: PoolSlot[B], load: PackageLoad, now: float) -> None:
        self._assign(ticket, slot)
        self.ledger.move(slot, PoolSlotState.LOADING)
        self.loads.begin(slot.key, now)
        self._on_load(slot, load)

    def _refuse(self, ticket: BoxTicket[B], why: Exception) -> None:
        self._waiting.pop(ticket.number, None)
        ticket.settle(refusal=why)

    def _waiting_for(self, shape: Shape) -> list[BoxTicket[B]]:
        return [ticket for ticket in self._waiting.values() if ticket.want.shape == shape and not ticket.want.own]

    def _refill(self, now: float) -> PoolSlot[B] | None:
        """A box made ahead: when nobody waits, and later rather than beside a call."""
        if self._closed or self._waiting:
            return None
        shape = self._refills.next(self._plans.coming(), now)
        if shape is None or not self.breakers.may_try(shape, now) or not self._refills.has_room_for(shape, now):
            return None
        return self.ledger.add(shape, now, refill=True)
