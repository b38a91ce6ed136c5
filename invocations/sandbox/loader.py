"""Loader: who puts the code of a tool into a box, before the box is offered to calls?

A thread of its own for each load, so that neither a caller who gives up nor one whose time is over ends what others can use.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from invocations.sandbox.attached import ChannelLost
from invocations.sandbox.box import NothingRan, NotLoaded
from invocations.sandbox.loads import LoadTimedOut
from invocations.sandbox.making import NotMade
from invocations.sandbox.outlet import Seen, way_out
from invocations.sandbox.work import UnusableCall
from sandbox import protocol
from unitools.capabilities import BOTTOM

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.box import Box
    from invocations.sandbox.figures import Figures
    from invocations.sandbox.pool import Pool
    from invocations.sandbox.slots import Slot

log = logging.getLogger(__name__)


class Loader:
    """``load_s``: how long a load may take."""

    def __init__(self, figures: Figures, *, load_s: float, most: int) -> None:
        self._figures, self._load_s = figures, load_s
        self._threads = ThreadPoolExecutor(max(most, 1), "sandbox-load")
        self._boxes: set[Box] = set()
        self._lock = threading.Lock()
        self._closed = False

    def begin(self, pool: Pool[Box], slot: Slot[Box], body: Callable[[], bytes]) -> None:
        """Comes back at once."""
        self._threads.submit(self._load, pool, slot, body)

    def _load(self, pool: Pool[Box], slot: Slot[Box], body: Callable[[], bytes]) -> None:
        box, begun, seen = slot.box, pool.now(), Seen()
        assert box is not None
        with self._lock:
            self._boxes.add(box)
            if self._closed:
                box.stream.break_off()
        try:
            box.check_alive()
            with way_out(box, BOTTOM, slot.tenant, seen):  # nobody calls, so nobody may go anywhere
                box.load(body(), seconds=self._load_s)
        except (NothingRan, NotLoaded, LoadTimedOut, UnusableCall, NotMade) as error:
            error.connections = seen.connections  # type: ignore[union-attr]
            self._figures.loaded(pool.now() - begun, "late" if isinstance(error, LoadTimedOut) else "failed")
            pool.not_loaded(slot, error)
        except (ChannelLost, protocol.ProtocolError) as error:
            self._figures.loaded(pool.now() - begun, "failed")
            pool.not_loaded(slot, NotLoaded(str(error)))
        except Exception as error:
            log.exception("A box was not loaded")
            pool.not_loaded(slot, error)
        else:
            self._figures.loaded(pool.now() - begun, "ok")
            slot.connections = seen.connections or ()
            pool.loaded_one(slot)
        finally:
            with self._lock:
                self._boxes.discard(box)

    def close(self) -> None:
        """What is being loaded is broken off."""
        with self._lock:
            self._closed = True
            boxes = list(self._boxes)
        for box in boxes:
            box.stream.break_off()
        self._threads.shutdown(wait=False)
