"""Loader: who puts the code of a tool into a box, before the box is offered to calls.

A thread of its own for each load, so that neither a caller who gives up nor one whose time is over ends what others can use.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from invocations.sandbox.boxes.attach_stream import ChannelLost
from invocations.sandbox.boxes.box import NothingRan, NotLoaded
from invocations.sandbox.boxes.call_egress import GateRecords, open_egress
from invocations.sandbox.boxes.maker import NotMade
from invocations.sandbox.boxes.payloads import UnusableCall
from invocations.sandbox.pool.loads import LoadTimeout
from sandbox import protocol
from unitools.capabilities import BOTTOM

if TYPE_CHECKING:
    from invocations.sandbox.boxes.box import Box
    from invocations.sandbox.pool.pool import BoxPool
    from invocations.sandbox.pool.slots import PackageLoad, PoolSlot
    from invocations.sandbox.preload_exclusions import PreloadExclusions
    from invocations.sandbox.stats import SandboxStats

log = logging.getLogger(__name__)


class BoxLoader:
    """``load_s``: how long a load may take."""

    def __init__(self, figures: SandboxStats, ahead: PreloadExclusions, *, load_s: float, most: int) -> None:
        self._figures, self._ahead, self._load_s = figures, ahead, load_s
        self._threads = ThreadPoolExecutor(max(most, 1), "sandbox-load")
        self._boxes: set[Box] = set()
        self._lock = threading.Lock()
        self._closed = False

    def begin(self, pool: BoxPool[Box], slot: PoolSlot[Box], load: PackageLoad) -> None:
        """Comes back at once."""
        self._threads.submit(self._load, pool, slot, load)

    def _load(self, pool: BoxPool[Box], slot: PoolSlot[Box], load: PackageLoad) -> None:
        box, begun, seen, ahead = slot.box, pool.now(), GateRecords(), self._ahead.may(load.key)
        assert box is not None
        with self._lock:
            self._boxes.add(box)
            if self._closed:
                box.stream.break_off()
        try:
            self._put_in(box, slot, load, seen, ahead=ahead)
        except Exception as error:
            if isinstance(error, (NotLoaded, LoadTimeout)):
                self._ahead.note_failure(load.key, ahead=ahead)
            elif not isinstance(error, (NothingRan, UnusableCall, NotMade)):
                log.exception("A box was not loaded")
            self._figures.loaded(pool.now() - begun, "late" if isinstance(error, LoadTimeout) else "failed")
            slot.connections = seen.connections
            pool.not_loaded(slot, error)
        else:
            self._figures.loaded(pool.now() - begun, "ok")
            slot.connections = seen.connections
            pool.loaded_one(slot)
        finally:
            with self._lock:
                self._boxes.discard(box)

    def _put_in(self, box: Box, slot: PoolSlot[Box], load: PackageLoad, seen: GateRecords, *, ahead: bool) -> None:
        try:
            box.check_alive()
            with open_egress(box, BOTTOM, slot.tenant, seen):  # nobody calls, so nobody may go anywhere
                box.load(load.pack(ahead), seconds=self._load_s)
        except (ChannelLost, protocol.ProtocolError) as error:
            raise NotLoaded(str(error)) from error
        if seen.connections is None:
            raise NothingRan("What was reached for as the box was loaded is not known.")
        if seen.connections and ahead:  # what was refused then may have left its mark on what is imported
            raise NotLoaded("What is imported ahead of calls reached for others.")

    def close(self) -> None:
        """What is being loaded is broken off."""
        with self._lock:
            self._closed = True
            boxes = list(self._boxes)
        for box in boxes:
            box.stream.break_off()
        self._threads.shutdown(wait=False)
