"""What do the sandboxes of this process look like now, and what has happened since it began?

For the console and for metrics. Counters only grow; what is counted is what the pool decided and how calls ended.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from invocations.sandbox.slots import State

if TYPE_CHECKING:
    from invocations.sandbox.base import Outcome
    from invocations.sandbox.pool import Pool
    from invocations.sandbox.slots import Caps

_WAITS = 512


@dataclass(frozen=True, slots=True)
class BoxView:
    """One box. ``tenant``, ``tool`` and ``level`` are empty while it is blank."""

    id: str
    state: str
    shape: str
    tenant: str
    tool: str
    level: str
    age_s: float
    idle_s: float
    calls: int
    memory_bytes: int  # that are set aside for it now


@dataclass(frozen=True, slots=True)
class Waits:
    """How long calls waited for a box; ``p50_ms`` and ``p95_ms`` are of the last 512."""

    count: int
    sum_s: float
    p50_ms: float
    p95_ms: float
    now: int  # calls that wait


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one moment."""

    boxes: tuple[BoxView, ...]
    states: dict[str, int]  # how many boxes, each state named
    max_boxes: int
    memory_bytes: int  # set aside
    max_memory_bytes: int
    ready: int  # blank boxes that are kept, at least
    calls: dict[str, dict[str, int]]  # by level, by status
    waits: Waits
    cold_starts: int  # boxes made while a call waited
    refills: int  # boxes made ahead
    failed_starts: int
    failed_refills: int
    kills: dict[str, int]  # tools that were stopped, by reason
    retired: dict[str, int]  # boxes that were ended, by reason
    breaker: str  # closed, open, half_open
    breaker_why: str
    breaker_wait_s: float
    transports: dict[str, str]  # by runtime: socket or attach

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Snapshot:
        boxes = tuple(BoxView(**box) for box in data["boxes"])
        return cls(**data | {"boxes": boxes, "waits": Waits(**data["waits"])})


class Figures:
    """Counts what calls came to. May be used from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._kills: Counter[str] = Counter()
        self._waited: deque[float] = deque(maxlen=_WAITS)
        self._waits, self._waited_s = 0, 0.0

    def count(self, outcome: Outcome) -> None:
        with self._lock:
            self._calls[outcome.level or "none", str(outcome.status)] += 1

    def killed(self, why: str) -> None:
        with self._lock:
            self._kills[why] += 1

    def waited(self, ms: float) -> None:
        with self._lock:
            self._waits += 1
            self._waited_s += ms / 1000
            self._waited.append(ms)

    def snapshot(self, pool: Pool[Any], caps: Caps, transports: dict[str, str]) -> Snapshot:
        now, slots = pool.now(), pool.slots()
        with self._lock:
            calls: dict[str, dict[str, int]] = {}
            for (level, status), count in sorted(self._calls.items()):
                calls.setdefault(level, {})[status] = count
            waited = sorted(self._waited)
            waits = Waits(self._waits, self._waited_s, _part(waited, 0.5), _part(waited, 0.95), pool.waiting())
            kills = dict(self._kills)
        states = Counter(str(slot.state) for slot in slots)
        boxes = (
            BoxView(
                id=slot.box.id[:12] if slot.box is not None else "",
                state=str(slot.state),
                shape=str(slot.shape),
                tenant=slot.tenant,
                tool=slot.label,
                level=slot.level,
                age_s=now - slot.since,
                idle_s=now - slot.used if slot.state in (State.READY, State.LOADED) else 0.0,
                calls=slot.calls,
                memory_bytes=slot.weight,
            )
            for slot in slots
        )
        return Snapshot(
            boxes=tuple(boxes),
            states={str(state): states[str(state)] for state in State if state is not State.GONE},
            max_boxes=caps.boxes,
            memory_bytes=sum(slot.weight for slot in slots),
            max_memory_bytes=caps.memory_bytes,
            ready=caps.ready,
            calls=calls,
            waits=waits,
            cold_starts=pool.made["call"],
            refills=pool.made["refill"],
            failed_starts=pool.not_made_for["call"],
            failed_refills=pool.not_made_for["refill"],
            kills=kills,
            retired=dict(pool.ledger.retired),
            breaker=str(pool.breaker.state(now)),
            breaker_why=pool.breaker.why,
            breaker_wait_s=pool.breaker.wait_s(now),
            transports=dict(transports),
        )


def _part(waited: list[float], part: float) -> float:
    return waited[min(int(len(waited) * part), len(waited) - 1)] if waited else 0.0
