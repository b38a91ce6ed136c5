"""Sandbox stats: what the sandboxes of this process look like now, and what has happened since it began.

For the console and for metrics. Counters only grow; what is counted is what the pool decided and how calls ended.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from invocations.sandbox.pool.slots import PoolSlotState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from invocations.sandbox.base import RunOutcome
    from invocations.sandbox.pool.pool import BoxPool
    from invocations.sandbox.pool.slots import PoolCaps

_WAITS = 512
_Part = TypeVar("_Part")


def _known(kind: type[_Part], data: dict[str, Any]) -> _Part:
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in data.items() if name in names})


@dataclass(frozen=True, slots=True)
class BoxView:
    """One box. ``tenant``, ``tool`` and ``level`` are empty while it is blank."""

    id: str = ""
    state: str = ""
    shape: str = ""
    tenant: str = ""
    tool: str = ""
    level: str = ""
    age_s: float = 0.0
    idle_s: float = 0.0
    calls: int = 0
    memory_bytes: int = 0  # that are set aside for it now


@dataclass(frozen=True, slots=True)
class WaitStats:
    """How long calls waited for a box; ``p50_ms`` and ``p95_ms`` are of the last 512."""

    count: int = 0
    sum_s: float = 0.0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    now: int = 0  # calls that wait


@dataclass(frozen=True, slots=True)
class SandboxSnapshot:
    """Everything at one moment."""

    boxes: tuple[BoxView, ...] = ()
    states: dict[str, int] = field(default_factory=dict)  # how many boxes, each state named
    max_boxes: int = 0
    memory_bytes: int = 0  # set aside
    max_memory_bytes: int = 0
    ready: int = 0  # blank boxes that are kept, at least
    calls: dict[str, dict[str, int]] = field(default_factory=dict)  # by level, by status
    waits: WaitStats = WaitStats()
    cold_starts: int = 0  # boxes made while a call waited
    refills: int = 0  # boxes made ahead
    failed_starts: int = 0
    failed_refills: int = 0
    loads: dict[str, int] = field(default_factory=dict)  # boxes that were loaded ahead of calls: ok, late, failed
    load_s: float = 0.0  # that these took together
    kills: dict[str, int] = field(default_factory=dict)  # tools that were stopped, by reason
    retired: dict[str, int] = field(default_factory=dict)  # boxes that were ended, by reason
    breaker: str = "closed"  # closed, open, half_open
    breaker_why: str = ""
    breaker_wait_s: float = 0.0
    transports: dict[str, str] = field(default_factory=dict)  # by runtime: socket or attach

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def gist(self) -> SandboxSnapshot:
        """All of it that does not change with time alone."""
        boxes = tuple(replace(box, age_s=0.0, idle_s=0.0) for box in self.boxes)
        return replace(self, boxes=boxes, breaker_wait_s=0.0)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SandboxSnapshot:
        """Also of a process of another version: what is not known here is left out, what is missing there is empty."""
        boxes = tuple(_known(BoxView, box) for box in data.get("boxes", ()))
        return _known(cls, data | {"boxes": boxes, "waits": _known(WaitStats, data.get("waits", {}))})


def merge_snapshots(found: Sequence[SandboxSnapshot]) -> SandboxSnapshot:
    """Several hosts as one. What has no sum, as a percentile or a breaker, is that of the worst."""
    waits = [each.waits for each in found]
    worst = max(found, key=lambda each: each.breaker_wait_s)
    calls: dict[str, dict[str, int]] = {}
    for level in {name for each in found for name in each.calls}:
        calls[level] = _sum_counts(each.calls.get(level, {}) for each in found)
    return SandboxSnapshot(
        boxes=tuple(box for each in found for box in each.boxes),
        states=_sum_counts(each.states for each in found),
        max_boxes=sum(each.max_boxes for each in found),
        memory_bytes=sum(each.memory_bytes for each in found),
        max_memory_bytes=sum(each.max_memory_bytes for each in found),
        ready=sum(each.ready for each in found),
        calls=calls,
        waits=WaitStats(
            count=sum(each.count for each in waits),
            sum_s=sum(each.sum_s for each in waits),
            p50_ms=max(each.p50_ms for each in waits),
            p95_ms=max(each.p95_ms for each in waits),
            now=sum(each.now for each in waits),
        ),
        cold_starts=sum(each.cold_starts for each in found),
        refills=sum(each.refills for each in found),
        failed_starts=sum(each.failed_starts for each in found),
        failed_refills=sum(each.failed_refills for each in found),
        loads=_sum_counts(each.loads for each in found),
        load_s=sum(each.load_s for each in found),
        kills=_sum_counts(each.kills for each in found),
        retired=_sum_counts(each.retired for each in found),
        breaker=worst.breaker,
        breaker_why=worst.breaker_why,
        breaker_wait_s=worst.breaker_wait_s,
        transports={name: how for each in found for name, how in each.transports.items()},
    )


def _sum_counts(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return dict(found)


class SandboxStats:
    """Counts what calls came to. May be used from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._kills: Counter[str] = Counter()
        self._loads: Counter[str] = Counter()
        self._load_s = 0.0
        self._waited: deque[float] = deque(maxlen=_WAITS)
        self._waits, self._waited_s = 0, 0.0

    def count(self, outcome: RunOutcome) -> None:
        with self._lock:
            self._calls[outcome.level or "none", str(outcome.status)] += 1

    def killed(self, why: str) -> None:
        with self._lock:
            self._kills[why] += 1

    def loaded(self, seconds: float, how: str) -> None:
        with self._lock:
            self._loads[how] += 1
            self._load_s += seconds

    def waited(self, ms: float) -> None:
        with self._lock:
            self._waits += 1
            self._waited_s += ms / 1000
            self._waited.append(ms)

    def snapshot(self, pool: BoxPool[Any], caps: PoolCaps, transports: dict[str, str]) -> SandboxSnapshot:
        now, slots = pool.now(), pool.slots()
        with self._lock:
            calls: dict[str, dict[str, int]] = {}
            for (level, status), count in sorted(self._calls.items()):
                calls.setdefault(level, {})[status] = count
            waited = sorted(self._waited)
            waits = WaitStats(self._waits, self._waited_s, _part(waited, 0.5), _part(waited, 0.95), pool.waiting())
            kills, loads, load_s = dict(self._kills), dict(self._loads), self._load_s
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
                idle_s=now - slot.used if slot.state in (PoolSlotState.READY, PoolSlotState.LOADED) else 0.0,
                calls=slot.calls,
                memory_bytes=slot.weight,
            )
            for slot in slots
        )
        return SandboxSnapshot(
            boxes=tuple(boxes),
            states={str(state): states[str(state)] for state in PoolSlotState if state is not PoolSlotState.GONE},
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
            loads=loads,
            load_s=load_s,
            retired=dict(pool.ledger.retired),
            breaker=str(pool.breakers.engine.state(now)),
            breaker_why=pool.breakers.engine.why,
            breaker_wait_s=pool.breakers.engine.wait_s(now),
            transports=dict(transports),
        )


def _part(waited: list[float], part: float) -> float:
    return waited[min(int(len(waited) * part), len(waited) - 1)] if waited else 0.0
