"""A pool without an engine, whose work is done when a test says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from invocations.sandbox.pool.pool import BoxPool
from invocations.sandbox.pool.slots import MIB, BoxRequest, BoxTicket, PoolCaps, PoolSlot, PoolSlotState


@dataclass(frozen=True)
class Shape:
    memory_bytes: int = 256 * MIB
    name: str = "usual"

    @property
    def kind(self) -> str:
        return self.name


USUAL, LARGE = Shape(), Shape(1024 * MIB, "large")


class Hub:
    """A pool whose work is done when the test says so, at a time that the test says."""

    def __init__(self, pressure: float = 0.0, **caps: Any) -> None:
        self.now = 1000.0
        self.pool: BoxPool[str] = BoxPool(
            PoolCaps(**{"memory_bytes": 64 * 1024 * MIB, "ready": 0} | caps),
            clock=lambda: self.now,
            pressure=lambda: pressure,
        )

    def work(self, *, fails: Exception | None = None, broken: bool = True, died: bool = False) -> list[str]:
        """Do all that there is to do; returns what it was."""
        done = []
        while (job := self.pool.next_job()) is not None:
            done.append(f"{'make' if job.make else 'end'} {job.slot.number}")
            if not job.make:
                self.pool.gone(job.slot)
            elif fails is not None:
                self.pool.not_made(job.slot, fails, broken=broken, died=died)
            else:
                self.pool.made_one(job.slot, f"box {job.slot.number}", 0.25)
        return done

    def ask(
        self, key: str | None = "a", tenant: str = "t", shape: Shape = USUAL, *, own: bool = False, **more: Any
    ) -> BoxTicket[str]:
        return self.pool.ask(BoxRequest(shape, tenant, key, own=own, **more))

    def slot(self, *args: Any, **more: Any) -> PoolSlot[str]:
        ticket = self.ask(*args, **more)
        self.work()
        assert ticket.slot is not None, ticket.refusal
        return ticket.slot

    def states(self) -> list[PoolSlotState]:
        return [slot.state for slot in self.pool.slots()]

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.pool.tick()
