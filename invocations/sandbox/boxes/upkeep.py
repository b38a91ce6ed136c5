"""Upkeep: who makes and ends the boxes of the pool, and looks after what nobody owns.

A few threads do the pool's jobs, so that no call waits for another call's box to be removed. One looks at what waiting boxes hold.
One more looks at the clock, at boxes that have died, at the image, and every half minute at what other processes have left on the
engine.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from invocations.sandbox.boxes import owner_process
from invocations.sandbox.boxes.maker import INSTANCE, LONGEST, OWNER, START_S, NotMade
from invocations.sandbox.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.boxes.box import Box
    from invocations.sandbox.boxes.maker import BoxMaker
    from invocations.sandbox.engine import Engine
    from invocations.sandbox.isolation.container import BoxShape
    from invocations.sandbox.pool.pool import BoxPool
    from invocations.sandbox.pool.slots import PoolJob

log = logging.getLogger(__name__)

_PRESSURE = Path("/proc/pressure/cpu")
_WORKERS = 4  # more make nothing faster: the engine is the one that works
_TICK_S = 1.0
_ORPHANS_EVERY_S = 30.0
_NOT_RUNNING_S = 3 * START_S
_CLOSE_S = 10.0


def read_cpu_pressure() -> float:
    """The part of the last ten seconds, in per cent, in which something waited for a processor; 0 where it is not told."""
    try:
        return float(_PRESSURE.read_text().split("avg10=")[1].split()[0])
    except (OSError, IndexError, ValueError):
        return 0.0


class BoxUpkeep:
    """``look`` is called every half minute, beside the search for orphans."""

    def __init__(self, maker: BoxMaker, reaper: OrphanReaper, look: Callable[[], None]) -> None:
        self._maker, self._reaper, self._look = maker, reaper, look
        self._work = threading.Event()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._said = ""

    def tell(self) -> None:
        """There may be work."""
        self._work.set()

    def start(self, pool: BoxPool[Box]) -> None:
        self._pool = pool
        names = {f"sandbox-work-{number + 1}": self._do_jobs for number in range(_WORKERS)}
        for name, loop in {**names, "sandbox-upkeep": self._keep_up, "sandbox-weigh": self._weigh}.items():
            self._threads.append(threading.Thread(target=loop, name=name, daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        """After the pool was closed: wait until its boxes are gone, for a while, or cannot be removed."""
        until = time.monotonic() + _CLOSE_S
        while self._pool.has_work() and time.monotonic() < until:
            self._work.set()
            self._stop.wait(0.01)
        self._stop.set()
        self._work.set()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _do_jobs(self) -> None:
        while True:
            self._work.clear()
            if self._stop.is_set():  # looked at after the clearing, so that what was told then is not lost
                return
            job = self._pool.next_job()
            if job is None:
                self._work.wait()
                continue
            self._work.set()  # perhaps there is one for the next, too
            try:
                self._do(job)
            except Exception:
                log.exception("A box was not made or ended")
                if job.make:
                    self._pool.not_made(
                        job.slot, NotMade("The hub made a mistake with a box.", broken=True), broken=True
                    )
                else:
                    self._pool.not_gone(job.slot)

    def _do(self, job: PoolJob[Box]) -> None:
        slot = job.slot
        if job.make:
            begun = time.monotonic()
            try:
                box = self._maker.make(cast("BoxShape", slot.shape), slot.want)
            except NotMade as error:
                self._pool.not_made(slot, error, broken=error.broken, died=error.died)
                if str(error) != self._said:
                    log.warning("No box: %s", error)
                self._said = str(error)
            else:
                self._said = ""
                self._pool.made_one(slot, box, time.monotonic() - begun)
            return
        try:
            if slot.box is not None:
                self._maker.end(slot.box)
        except EngineError as error:
            log.warning("A box could not be removed and is tried again: %s", error)
            self._pool.not_gone(slot)
        else:
            self._pool.gone(slot)

    def _keep_up(self) -> None:
        orphans_at = 0.0
        while not self._stop.is_set():
            try:
                if time.monotonic() >= orphans_at:
                    orphans_at = time.monotonic() + _ORPHANS_EVERY_S
                    self._look()
                    self._reaper.remove_orphans()
                self._pool.discard_dead(lambda box: box.is_alive())
                self._pool.tick()
            except EngineError as error:
                log.info("The engine is looked at again later: %s", error)
            except Exception:
                log.exception("The upkeep of boxes goes on")
            self._stop.wait(_TICK_S)

    def _weigh(self) -> None:
        """Apart from the rest, since the engine takes up to a second to tell what one box holds."""
        while not self._stop.is_set():
            try:
                self._pool.weigh_waiting(self._maker.memory_held)
            except EngineError as error:
                log.info("What boxes hold is looked at again later: %s", error)
            except Exception:
                log.exception("The weighing of boxes goes on")
            self._stop.wait(_TICK_S)


class OrphanReaper:
    """Removes boxes of this hub whose owner is gone, that never ran, or that are older than they may get and of whose owner
    nothing is known here. How old a box is the engine's clock says, which made it. ``known`` are those in use here."""

    def __init__(self, engine: Engine, instance: str, mine: str, known: Callable[[], set[str]]) -> None:
        self._engine, self._instance, self._mine, self._known = engine, instance, mine, known

    def remove_orphans(self) -> int:
        removed, found = 0, self._engine.find({INSTANCE: self._instance})
        now = self._engine.now() if found else 0.0
        for box in found:
            if self._is_orphan(box, now):
                self._engine.remove(box["Id"])
                removed += 1
        if removed:
            log.warning("%s boxes that nobody owned were removed", removed)
        return removed

    def _is_orphan(self, box: dict[str, Any], now: float) -> bool:
        labels, age = box.get("Labels") or {}, now - float(box.get("Created") or now)
        whose = labels.get(OWNER, "")
        if whose == self._mine and box["Id"] in self._known():
            return False
        never_ran = box.get("State") != "running" and age > _NOT_RUNNING_S
        overdue = age > float(labels.get(LONGEST, "inf"))
        left_alone = whose == self._mine or not owner_process.is_alive(whose)  # one that is alive ends its boxes itself
        return never_ran or owner_process.is_gone(whose) or (overdue and left_alone)
