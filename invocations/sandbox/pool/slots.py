"""Slots: what the pool knows of one box, and of one call that wants one."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

MIB = 1024 * 1024
IDLE_BYTES = 16 * MIB  # what a box holds while it waits, measured with its shim

B = TypeVar("B")


class PoolSlotState(StrEnum):
    CREATING = "creating"
    READY = "ready"  # blank: it has nobody's code
    LOADED = "loaded"  # it has one tenant's tool version, and waits
    LOADING = "loading"  # a tenant's tool version is being put into it
    BUSY = "busy"
    RETIRING = "retiring"
    GONE = "gone"


TRANSITIONS: dict[PoolSlotState, frozenset[PoolSlotState]] = {
    PoolSlotState.CREATING: frozenset(
        {PoolSlotState.READY, PoolSlotState.BUSY, PoolSlotState.RETIRING, PoolSlotState.GONE}
    ),
    PoolSlotState.READY: frozenset({PoolSlotState.LOADING, PoolSlotState.BUSY, PoolSlotState.RETIRING}),
    PoolSlotState.LOADING: frozenset({PoolSlotState.LOADED, PoolSlotState.RETIRING}),
    PoolSlotState.LOADED: frozenset({PoolSlotState.BUSY, PoolSlotState.RETIRING}),
    PoolSlotState.BUSY: frozenset({PoolSlotState.READY, PoolSlotState.LOADED, PoolSlotState.RETIRING}),
    PoolSlotState.RETIRING: frozenset({PoolSlotState.GONE}),
    PoolSlotState.GONE: frozenset(),
}


class Shape(Protocol):
    """What a box is made with. Hashable: boxes of one shape can stand in for each other while they are blank."""

    @property
    def memory_bytes(self) -> int:
        """The most that it may hold when it is busy."""

    @property
    def kind(self) -> Hashable:
        """Boxes of one kind start alike, or fail to."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PackageLoad:
    """What puts a tool's code into a box. ``key``: which code; ``pack``: told whether what it imports of others is imported ahead."""

    key: Hashable
    pack: Callable[[bool], bytes]


@dataclass(frozen=True, slots=True)
class IdleTerms:
    """What a box that waits for its next call may hold, and for how long it may wait; 0: as long as any. ``for_one_call``: it was
    loaded for that one, and serves no other.
    """

    memory_bytes: int = IDLE_BYTES
    most_s: float = 0.0
    for_one_call: bool = False


USUAL_IDLE = IdleTerms()


@dataclass(frozen=True, slots=True)
class BoxRequest:
    """A call needs a box: of this shape, and used before for this key only. Without a key it serves this call alone.

    ``own``: made for this call, by whose name and labels the engine knows it. ``load``: what a box is loaded with before it is
    offered to calls with this key; without it the call does that. ``standby_key``: of boxes that wait for one such call.
    ``idle``: how its box may wait.
    """

    shape: Shape
    tenant: str
    key: Hashable | None = None
    own: bool = False
    name: str = ""
    level: str = ""
    label: str = ""  # what people call the tool
    labels: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    load: PackageLoad | None = field(default=None, hash=False, compare=False)
    idle: IdleTerms = field(default=USUAL_IDLE, hash=False, compare=False)
    standby_key: Hashable | None = None


@dataclass(eq=False, slots=True)
class PoolSlot(Generic[B]):
    """A box, from the moment its room is taken until it is known to be gone."""

    number: int
    shape: Shape
    since: float
    state: PoolSlotState = PoolSlotState.CREATING
    box: B | None = None
    key: Hashable | None = None
    tenant: str = ""
    label: str = ""
    level: str = ""
    used: float = 0.0
    calls: int = 0
    loaded: bool = False
    connections: Sequence[Any] | None = ()  # that the load tried, for one call to tell; None: nobody knows
    idle: IdleTerms = USUAL_IDLE
    weight: int = 0
    seen_bytes: int = 0  # that it held when it was last looked at while it waited
    why: str = ""  # it is retired
    doomed: str = ""  # it is to be retired as soon as it is not busy, and why
    own: BoxTicket[B] | None = None  # for whom it is made
    want: BoxRequest | None = None  # of the call that it is made for
    refill: bool = False
    not_before: float = 0.0  # the next try to end it


class BoxRefused(Exception):
    """No box for this call. The message says why."""

    def __init__(self, message: str, *, retry_after_s: float = 0.0, cancelled: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.cancelled = cancelled


@dataclass(frozen=True, slots=True)
class PoolJob(Generic[B]):
    """Make a box for the slot, or end the one that it has."""

    slot: PoolSlot[B]
    make: bool


class BoxTicket(Generic[B]):
    """A place in the queue: it ends with a slot, or with the reason why there is none."""

    __slots__ = ("_settled", "blocked", "connections", "number", "refusal", "since", "slot", "want")

    def __init__(self, want: BoxRequest, number: int, since: float) -> None:
        self.want, self.number, self.since = want, number, since
        self.slot: PoolSlot[B] | None = None
        self.refusal: Exception | None = None
        self.connections: Sequence[Any] | None = ()  # that the load tried which came to this refusal
        self.blocked = False  # it waits for room, and not for a box that is being made
        self._settled = threading.Event()

    @property
    def settled(self) -> bool:
        return self.slot is not None or self.refusal is not None

    def settle(self, *, slot: PoolSlot[B] | None = None, refusal: Exception | None = None) -> None:
        self.slot, self.refusal = slot, refusal
        self._settled.set()

    def wait(self, seconds: float) -> bool:
        """True when it is settled."""
        return self.settled or self._settled.wait(seconds)


@dataclass(frozen=True, slots=True)
class PoolCaps:
    """What the operator allows."""

    boxes: int = 32
    memory_bytes: int = 4096 * MIB
    ready: int = 1
    idle_s: float = 300.0
    load_s: float = 60.0  # until a tool's code is imported
    calls: int = 500  # of one box
    age_s: float = 1800.0
