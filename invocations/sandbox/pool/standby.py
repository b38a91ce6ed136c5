"""Standby: boxes in which a server of others stands ready before the call that it answers.

Such a box serves one call, so nothing of it is shared; what is gained is the server's start. One waits at most for each tenant,
version and settings that were called within the last minute, two of a tenant, out of the same memory as all boxes and never in the
place of another: where there is no room, or a start failed, the next call starts its server itself.
"""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Generic

from invocations.sandbox.isolation.levels import SINGLE
from invocations.sandbox.pool.inventory import compute_full_weight
from invocations.sandbox.pool.slots import IDLE_BYTES, MIB, B, BoxRefused, IdleTerms, PackageLoad, PoolSlotState

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from invocations.sandbox.base import Profile, SandboxCall
    from invocations.sandbox.isolation.container import BoxShape
    from invocations.sandbox.pool.pool import BoxPool
    from invocations.sandbox.pool.slots import BoxRequest

log = logging.getLogger(__name__)

TERMS = IdleTerms(memory_bytes=IDLE_BYTES + 64 * MIB, most_s=60.0, for_one_call=True)
MOST_OF_A_TENANT = 2
READY_WITHIN_S = 20.0
REST_S = 60.0  # of a server that did not start
_THREADS = 2
_WAITS = (PoolSlotState.LOADING, PoolSlotState.LOADED)


def derive_standby_key(profile: Profile, call: SandboxCall, shape: BoxShape, level: str) -> Hashable | None:
    """For whom and for what a server may be started before its call; None: for no call.

    It would have the time, the files or the secrets of no call, and may reach nothing before somebody has called it.
    """
    if not call.is_on_node or level != SINGLE or call.key is None or call.replay:
        return None
    assert call.server is not None
    if profile.outside or call.secrets or any("secret" in each for each in call.server.get("environment", ())):
        return None
    return call.key, profile, shape, json.dumps([call.server, call.config], sort_keys=True)


class Standby(Generic[B]):
    """May be used from many threads. It asks the pool as calls do, and gives the box back with the server in it."""

    def __init__(self, pool: BoxPool[B]) -> None:
        self._pool = pool
        self._coming: set[Hashable] = set()
        self._resting: dict[Hashable, float] = {}  # until when
        self._threads = ThreadPoolExecutor(_THREADS, "sandbox-standby")
        self._lock = threading.Lock()
        self._closed = False

    def make_ready(self, served: BoxRequest, pack: Callable[[bool], bytes]) -> None:
        """After a call that was ``served``: for the next one like it. Comes back at once."""
        key = served.standby_key
        if key is None:
            return
        want = replace(served, key=key, standby_key=None, idle=TERMS, load=PackageLoad(key, lambda _: pack(True)))
        with self._lock:
            if self._closed or key in self._coming or not self._is_wanted(want):
                return
            self._coming.add(key)
            self._threads.submit(self._fill, want)

    def _is_wanted(self, want: BoxRequest) -> bool:
        now = self._pool.now()
        self._resting = {key: until for key, until in self._resting.items() if until > now}
        slots = self._pool.slots()
        waiting = [slot for slot in slots if slot.idle.for_one_call and slot.state in _WAITS]
        of_tenant = sum(slot.tenant == want.tenant for slot in waiting)
        room = self._pool.caps.memory_bytes - sum(slot.weight for slot in slots)
        return (
            want.key not in self._resting
            and all(slot.key != want.key for slot in waiting)
            and of_tenant + len(self._coming) < MOST_OF_A_TENANT
            and not self._pool.waiting()
            and len(slots) < self._pool.caps.boxes
            and room >= compute_full_weight(want.shape)
        )

    def _fill(self, want: BoxRequest) -> None:
        try:
            ticket = self._pool.ask(want)
            if not ticket.settled and not self._pool.wait_for(ticket, READY_WITHIN_S):
                self._pool.withdraw(ticket, BoxRefused("No box got ready."))
            if ticket.slot is not None:
                self._pool.give_back(ticket.slot, used=False)
            elif ticket.refusal is not None:
                log.info("No server of %s was started before its call: %s", want.label, ticket.refusal)
                self._resting[want.key] = self._pool.now() + REST_S
        except Exception:
            log.exception("No server of %s was started before its call", want.label)
        finally:
            with self._lock:
                self._coming.discard(want.key)

    def close(self) -> None:
        """After the pool was closed, which refuses whoever waits."""
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
