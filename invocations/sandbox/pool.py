"""Which box serves which call, and when is a box made or ended?

Nothing here talks to an engine, sleeps or starts a thread: calls ask, wait and give back; whoever does the work asks for
the next job and reports its end; time comes from outside. A box is blank until its first call, and then belongs to one
key for ever. Caps are kept by counting what is being made and what is not yet known to be gone.

When there is not room for all, the turn is that of the tenant with the smallest share of boxes or memory in use, whichever
is larger; nobody gets more than an equal share while somebody else waits for room.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Generic

from invocations.sandbox.breaker import Breakers
from invocations.sandbox.ledger import IDLE, Ledger, full_weight
from invocations.sandbox.sizing import Sizing
from invocations.sandbox.slots import B, Caps, Job, Refused, Slot, State, Ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from invocations.sandbox.slots import Shape, Want

_LETS_NOBODY_PAST_AFTER_S, _LETS_NOBODY_PAST_FOR_S = 2.0, 5.0  # a call that waits for room is not overtaken then
_NOT_AGAIN_FOR_S = 60.0  # for calls of the same tenant
_REFILLS = 2  # at a time
_ENDS = 3  # at a time: whoever does the work has a hand free for a call that waits
_REFILL_BY_S = 1.0  # however many calls run
_REFILL_UNDER_PRESSURE_BY_S = 5.0
_PRESSURE = 60.0  # per cent of the time in which something waits for a processor
_AGAIN_S = 5.0  # between two tries of what has failed
_STOPPING = "The hub is stopping, so the tool was not run."


class _Turn(Enum):
    SETTLED = auto()
    COMING = auto()  # its box is being made
    BLOCKED = auto()  # there is no room


class Pool(Generic[B]):
    """May be used from many threads at once. ``on_work`` is called when there may be a job, and must not come back."""

    def __init__(
        self,
        caps: Caps,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_work: Callable[[], None] = lambda: None,
        pressure: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.caps, self.breakers = caps, Breakers()
        self.ledger: Ledger[B] = Ledger(caps)
        self.sizing = Sizing(burst=caps.ready, most=max(caps.boxes // 2, 1), forget_after_s=caps.idle_s)
        self.made: Counter[str] = Counter()  # for a call, or to refill
        self.not_made_for: Counter[str] = Counter()
        self._clock, self._on_work, self._pressure = clock, on_work, pressure
        self._lock = threading.Lock()
        self._waiting: dict[int, Ticket[B]] = {}
        self._planned: deque[Slot[B]] = deque()  # to be made
        self._stopping_others: dict[str, float] = {}  # since when, by tenant
        self._number = self._ending = 0
        self._short_since = 0.0  # of blank boxes
        self._no_refill_before = 0.0
        self._closed = False

    # -- calls

    def ask(self, want: Want) -> Ticket[B]:
        """A place in the queue, perhaps settled already."""
        with self._lock:
            now = self._clock()
            self._number += 1
            ticket: Ticket[B] = Ticket(want, self._number, now)
            needs = full_weight(want.shape)
            if self._closed:
                ticket.settle(refusal=Refused(_STOPPING, cancelled=True))
            elif needs > self.caps.memory_bytes:
                sentence = f"The tool's box may hold {needs} bytes, but all boxes together {self.caps.memory_bytes}."
                ticket.settle(refusal=Refused(f"{sentence} TOOLHUB_SANDBOX_MAX_MEMORY_MB says how much."))
            else:
                self._waiting[ticket.number] = ticket
                self._match(now)
            return ticket

    def withdraw(self, ticket: Ticket[B], why: Exception) -> bool:
        """Wait no longer. False when the ticket is settled already; a box that it has must be given back."""
        with self._lock:
            if ticket.settled:
                return False
            self._refuse(ticket, why)
            self._make_no_more_than_wanted(ticket)
            self._match(self._clock())
            return True

    def give_back(self, slot: Slot[B], *, unfit: str = "", used: bool = True) -> None:
        """The call has ended. ``unfit``: why the box serves no more. ``used=False``: nothing was put into it."""
        with self._lock:
            now = self._clock()
            slot.calls += used
            slot.used = now
            why = unfit or slot.doomed or ("closing" if self._closed else "")
            if not why and (slot.want is not None or (used and slot.key is None)):
                why = "single use"
            why = why or self.ledger.worn_out(slot, now)
            if why:
                self.ledger.retire(slot, why)
            elif slot.calls:
                self.ledger.move(slot, State.LOADED)
            else:
                self.ledger.move(slot, State.READY)
                slot.key, slot.tenant, slot.label, slot.level = None, "", "", ""
            self._match(now)
            self._tell()

    # -- whoever does the work

    def next_job(self) -> Job[B] | None:
        """What to do now: make what a call waits for, whose room is kept; end what must go; make boxes ahead."""
        with self._lock:
            now = self._clock()
            for planned in self._planned:
                if self.breakers.may_try(planned.shape, now):
                    self.breakers.begin(planned.shape, now)
                    self._planned.remove(planned)
                    return Job(planned, make=True)
            for doomed in self.ledger.doomed:
                if doomed.not_before <= now and self._ending < _ENDS:
                    self._ending += 1
                    self.ledger.doomed.remove(doomed)
                    return Job(doomed, make=False)
            refill = self._refill(now)
            if refill is None:
                return None
            self.breakers.begin(refill.shape, now)
            return Job(refill, make=True)

    def made_one(self, slot: Slot[B], box: B, took_s: float) -> None:
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
                self.ledger.move(slot, State.READY)
            self._match(now)
            self._tell()

    def not_made(self, slot: Slot[B], why: Exception, *, broken: bool, died: bool = False) -> None:
        """It could not be made. ``broken``: the engine does not work, and has not just said no. ``died``: it did not start."""
        with self._lock:
            now = self._clock()
            self.not_made_for["refill" if slot.refill else "call"] += 1
            self.ledger.move(slot, State.GONE)
            waiting = [slot.own] if slot.own else self._waiting_for(slot.shape)
            if not slot.doomed and (slot.own or len(waiting) > self._coming()[slot.shape]):
                for ticket in waiting[:1]:
                    self._refuse(ticket, why)
            if slot.refill:
                self._no_refill_before = now + _AGAIN_S
            self.breakers.failed(slot.shape, now, str(why), broken=broken, died=died)
            self._drop_plans(lambda planned: self.breakers.refusal(planned.shape, now) is not None)
            self._match(now)
            self._tell()

    def gone(self, slot: Slot[B]) -> None:
        with self._lock:
            self._ending -= 1
            self.ledger.move(slot, State.GONE)
            self._match(self._clock())
            self._tell()

    def not_gone(self, slot: Slot[B]) -> None:
        """It could not be ended: it keeps its room and is tried again later."""
        with self._lock:
            self._ending -= 1
            slot.not_before = self._clock() + _AGAIN_S
            self.ledger.doomed.append(slot)

    def tick(self) -> None:
        """What time alone brings about. To be called about once a second."""
        with self._lock:
            now = self._clock()
            if self._shape_in_short_supply(now) is not None:
                self._short_since = self._short_since or now
            stops = self._stopping_others
            self._stopping_others = {who: at for who, at in stops.items() if now - at < _NOT_AGAIN_FOR_S}
            for slot in self.ledger.idle():
                spare = slot.state is State.LOADED or self.ledger.blank(slot.shape) > self.sizing.target(
                    slot.shape, now
                )
                why = "idle" if spare and now - slot.used > self.caps.idle_s else ""
                if why := self.ledger.worn_out(slot, now) or why:
                    self.ledger.retire(slot, why)
            self._match(now)
            self._on_work()

    def keep_ready(self, usual: Shape) -> None:
        """There is to be a blank box of this shape before anybody asks for one."""
        with self._lock:
            self.sizing.keep_ready(usual)

    def discard(self, slots: Iterable[Slot[B]], why: str) -> None:
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

    def close(self) -> None:
        """Refuse whoever waits, make nothing more, end what is idle; what is busy is ended when it is given back."""
        with self._lock:
            self._closed = True
            for ticket in list(self._waiting.values()):
                self._refuse(ticket, Refused(_STOPPING, cancelled=True))
            self._drop_plans()
            for slot in self.ledger.idle():
                self.ledger.retire(slot, "closing")
            self._tell()

    def slots(self) -> list[Slot[B]]:
        with self._lock:
            return list(self.ledger.slots.values())

    def has_work(self) -> bool:
        """Whether there are boxes but for those that could not be ended just now."""
        with self._lock:
            now = self._clock()
            return any(slot.not_before <= now for slot in self.ledger.slots.values())

    def waiting(self) -> int:
        return len(self._waiting)

    def now(self) -> float:
        """By the pool's clock."""
        return self._clock()

    # -- under the lock

    def _tell(self) -> None:
        if self.ledger.doomed or self._planned or (self._short_since and not self.ledger.held):
            self._on_work()

    def _match(self, now: float) -> None:
        """Serve those who wait, each in its turn."""
        if not self._waiting:
            return
        left = list(self._waiting.values())
        coming = self._coming()
        promised: Counter[str] = Counter()
        blocked = False
        while left:
            ticket = min(left, key=lambda one: (self.ledger.share(one.want, promised[one.want.tenant]), one.number))
            left.remove(ticket)
            if blocked and not self._may_pass(ticket.want, promised[ticket.want.tenant]):
                ticket.blocked = True
                continue
            turn = self._serve(ticket, coming, now)
            ticket.blocked = turn is _Turn.BLOCKED
            promised[ticket.want.tenant] += turn is _Turn.COMING
            blocked = blocked or ticket.blocked
            if ticket.blocked and self._lets_nobody_past(ticket, now):
                return
        self._tell()

    def _serve(self, ticket: Ticket[B], coming: Counter[Shape], now: float) -> _Turn:
        want = ticket.want
        slot = self.ledger.fitting(want)
        if slot is not None:
            if not self.ledger.has_room(0, want.shape.memory_bytes, keep=slot):
                return _Turn.BLOCKED
            if slot.state is State.READY:
                self.sizing.took(want.shape, now)
                self._short_since = self._short_since or now
            self._grant(ticket, slot)
            return _Turn.SETTLED
        if want.own and any(slot.own is ticket for slot in self.ledger.creating()):
            return _Turn.COMING
        if not want.own and coming[want.shape]:
            coming[want.shape] -= 1
            return _Turn.COMING
        if (refusal := self.breakers.refusal(want.shape, now)) is not None:
            self._refuse(ticket, refusal)
            return _Turn.SETTLED
        if not self.ledger.has_room(1, full_weight(want.shape)):
            return _Turn.BLOCKED
        self._planned.append(self.ledger.add(want.shape, now, own=ticket if want.own else None))
        return _Turn.COMING

    def _grant(self, ticket: Ticket[B], slot: Slot[B]) -> None:
        self._waiting.pop(ticket.number, None)
        if slot.state is not State.LOADED:
            slot.key, slot.tenant = ticket.want.key, ticket.want.tenant  # and from now on for nobody else
            slot.label, slot.level = ticket.want.label, ticket.want.level
        slot.own = None
        self.ledger.move(slot, State.BUSY)
        ticket.settle(slot=slot)

    def _refuse(self, ticket: Ticket[B], why: Exception) -> None:
        self._waiting.pop(ticket.number, None)
        ticket.settle(refusal=why)

    def _may_pass(self, want: Want, promised: int) -> bool:
        """Whether a call may be served although another one waits for room."""
        tenants = {ticket.want.tenant for ticket in self._waiting.values()} | set(self.ledger.held)
        return self.ledger.share(want, promised + 1) <= 1 / len(tenants)

    def _lets_nobody_past(self, ticket: Ticket[B], now: float) -> bool:
        """For a while, so that it gets its room; but what asks for too much, again and again, does not stop the others."""
        if now - ticket.since < _LETS_NOBODY_PAST_AFTER_S:
            return False
        since = self._stopping_others.get(ticket.want.tenant, -_NOT_AGAIN_FOR_S)
        if now - since >= _NOT_AGAIN_FOR_S:
            since = self._stopping_others[ticket.want.tenant] = now
        return now - since < _LETS_NOBODY_PAST_FOR_S

    def _coming(self) -> Counter[Shape]:
        """Boxes that are being made for nobody in particular."""
        return Counter(slot.shape for slot in self.ledger.creating() if slot.want is None and not slot.doomed)

    def _waiting_for(self, shape: Shape) -> list[Ticket[B]]:
        return [ticket for ticket in self._waiting.values() if ticket.want.shape == shape and not ticket.want.own]

    def _make_no_more_than_wanted(self, withdrawn: Ticket[B]) -> None:
        shape = withdrawn.want.shape
        for slot in self.ledger.creating():
            if slot.own is withdrawn:
                slot.own, slot.doomed = None, "nobody waits"
        spare = self._coming()[shape] - len(self._waiting_for(shape))
        for slot in list(self._planned):
            if slot.doomed or (slot.want is None and slot.shape == shape and spare > 0):
                spare -= not slot.doomed
                self._planned.remove(slot)
                self.ledger.move(slot, State.GONE)

    def _drop_plans(self, which: Callable[[Slot[B]], bool] = lambda _: True) -> None:
        for slot in filter(which, list(self._planned)):
            self._planned.remove(slot)
            self.ledger.move(slot, State.GONE)

    def _shape_in_short_supply(self, now: float) -> Shape | None:
        coming = self._coming()
        for shape in self.sizing.shapes(now):
            if self.ledger.blank(shape) + coming[shape] < self.sizing.target(shape, now):
                return shape
        return None

    def _refill(self, now: float) -> Slot[B] | None:
        """A box made ahead: when nobody waits, and later rather than beside a call."""
        if self._closed or self._waiting or not self._short_since or now < self._no_refill_before:
            return None
        making = list(self.ledger.creating())
        if len(making) >= _REFILLS or any(not slot.refill for slot in making):
            return None
        shape = self._shape_in_short_supply(now)
        if shape is None:
            self._short_since = 0.0
            return None
        if not self.breakers.may_try(shape, now):
            return None
        room = (
            self.caps.memory_bytes - self.ledger.bytes >= full_weight(shape)
            and len(self.ledger.slots) < self.caps.boxes
        )
        return self.ledger.add(shape, now, refill=True) if room and self._is_calm(now) else None

    def _is_calm(self, now: float) -> bool:
        if not self.ledger.held:
            return True
        short = now - self._short_since
        if short < _REFILL_BY_S:
            return False
        return short >= _REFILL_UNDER_PRESSURE_BY_S or self._pressure() < _PRESSURE
