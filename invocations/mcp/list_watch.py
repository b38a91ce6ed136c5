"""List watch: who listens for changes of which agent's list, and how they are told.

One of each web process. However many listen, there is one look at the facts of the last seconds every half a second, in one thread;
where something was done, the lists of that tenant's listening agents are digested together, and those are told whose digest is
another one. Nothing is told twice, nothing is kept for who is not there: who comes back says what it was told last, or lists again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import Counter, defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from django.conf import settings
from django.db import InterfaceError, OperationalError

from invocations.mcp.list_changes import ChangeReader
from invocations.mcp.list_digests import ListOwner, compute_list_digests
from invocations.problems import TooManyStreams
from kernel.database.connections import database_time, release_connection
from kernel.http.exception_handlers import translate_exception

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from uuid import UUID

    from kernel.http.deferred_responses import InThread
    from kernel.principal import Principal
    from kernel.problems import Problem

log = logging.getLogger("toolhub.mcp")
LOOK_EVERY_S = 0.5
AGAIN_S = 5.0  # after which lists that could not be digested are tried again
HEAL_S = 300.0  # after which a list is digested again though nothing is known to have happened
TOLD_IN_A_SECOND = 2500  # streams; who is told lists again, at once
LONGEST_DELAY_S = 0.8
MAX_STREAMS = 4000  # of a process


class Ear:
    """One stream that listens."""

    def __init__(self, digest: str) -> None:
        self.digest = digest  # of the list as it was told last
        self.is_closed = False
        self._news = asyncio.Event()

    def tell(self, digest: str) -> None:
        if digest != self.digest:
            self.digest = digest
            self._news.set()

    def close(self) -> None:
        """The process ends: the stream does too, as one that was meant to."""
        self.is_closed = True
        self._news.set()

    async def hear(self) -> bool:
        """Whether there is something to tell; if not, the stream is to end."""
        await self._news.wait()
        self._news.clear()
        return not self.is_closed


@dataclass(eq=False, slots=True)
class _Audience:
    """Those who listen for one list. ``known``: whether there is a digest of it yet; ``waiting``: how many wait for that."""

    known: asyncio.Future[None]
    digest: str = ""
    ears: set[Ear] = field(default_factory=set)
    waiting: int = 0

    def tell(self, ear: Ear) -> None:
        ear.tell(self.digest)


class ReadDigests(NamedTuple):
    """``failed``: tenants of which none could be computed, and why."""

    digests: dict[ListOwner, str]
    failed: dict[UUID, Problem]


class DigestReader:
    """In a thread, one at a time: the digests that are wanted, and those that may have changed. A tenant whose lists may have changed
    is due until they are digested, whatever goes wrong meanwhile."""

    def __init__(self) -> None:
        self._changes = ChangeReader()
        self._due: dict[
            UUID, float
        ] = {}  # by tenant: when its lists are digested though nothing is known to have happened

    def read(self, owners: Iterable[ListOwner], new: Iterable[ListOwner]) -> ReadDigests:
        try:
            return self._read(set(owners), set(new))
        finally:
            release_connection()

    def _read(self, owners: set[ListOwner], new: set[ListOwner]) -> ReadDigests:
        changes, now = self._changes.read_changes(), time.monotonic()
        present = {owner.tenant_id for owner in owners}
        self._due = {tenant: self._due.get(tenant, now + HEAL_S) for tenant in present}
        moved = {tenant for tenant, due in self._due.items() if due <= now}
        moved |= present if changes.everywhere else present & changes.tenants
        self._due |= dict.fromkeys(moved, now)
        wanted: dict[UUID, set[ListOwner]] = defaultdict(set)
        for owner in owners:
            if owner in new or owner.tenant_id in moved:
                wanted[owner.tenant_id].add(owner)
        found = ReadDigests({}, {})
        for tenant, some in wanted.items():
            try:
                digests, changes_at = compute_list_digests(tenant, some)
            except (OperationalError, InterfaceError):  # the others would wait for the same database
                raise
            except Exception as error:  # noqa: BLE001  what is wrong with one tenant's lists is not the others' matter
                found.failed[tenant] = translate_exception(error)
                self._due[tenant] = now + AGAIN_S
                continue
            found.digests.update(digests)
            rest_s = HEAL_S if changes_at is None else (changes_at - database_time()).total_seconds()
            due = now + max(0.0, min(HEAL_S, rest_s))
            self._due[tenant] = due if tenant in moved else min(due, self._due[tenant])
        return found


class ListWatch:
    """Of one event loop at a time."""

    def __init__(self, in_thread: InThread, reader: DigestReader | None = None) -> None:
        _watches.add(self)
        self._in_thread, self._reader = in_thread, reader or DigestReader()
        self._audiences: dict[ListOwner, _Audience] = {}
        self._of_agent: Counter[UUID] = Counter()
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._closed = False

    def check_room(self, by: Principal) -> None:
        """No agent holds more streams of this process open than it may, nor all of them together."""
        most = settings.TOOLHUB_STREAMS_PER_AGENT
        if self._of_agent[by.agent()] >= most:
            raise TooManyStreams(
                f"This agent listens with {most} streams here already.",
                remedy="Close a stream that is not needed, or list the tools again when the list is older than it says.",
                details={"max_streams": most},
            )
        if self._of_agent.total() >= MAX_STREAMS:
            raise TooManyStreams(
                "As many streams as this process keeps are open already.",
                remedy="Try again soon, or list the tools again when the list is older than it says.",
                details={"max_streams": MAX_STREAMS},
            )

    @asynccontextmanager
    async def listen(self, by: Principal) -> AsyncIterator[Ear]:
        """From the moment at which the block begins, no change of the list is missed."""
        self.check_room(by)
        owner, agent = ListOwner.of(by), by.agent()
        self._of_agent[agent] += 1
        try:
            audience = self._join(owner)
            audience.waiting += 1
            try:
                await asyncio.shield(audience.known)
                ear = Ear(audience.digest)
                audience.ears.add(ear)
            finally:
                audience.waiting -= 1
                self._leave(owner, audience)
            if self._closed:
                ear.close()
            try:
                yield ear
            finally:
                audience.ears.discard(ear)
                self._leave(owner, audience)
        finally:
            self._of_agent[agent] -= 1
            if not self._of_agent[agent]:
                del self._of_agent[agent]

    def close(self) -> None:
        """Every stream ends."""
        self._closed = True
        for audience in self._audiences.values():
            for ear in audience.ears:
                ear.close()

    def _join(self, owner: ListOwner) -> _Audience:
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._audiences.clear()  # of a loop that has ended, if any
            self._wanted, self._task = asyncio.Event(), loop.create_task(self._run())
        audience = self._audiences.get(owner)
        if audience is None:
            audience = self._audiences[owner] = _Audience(loop.create_future())
            self._wanted.set()
        return audience

    def _leave(self, owner: ListOwner, audience: _Audience) -> None:
        if not audience.ears and not audience.waiting and self._audiences.get(owner) is audience:
            del self._audiences[owner]

    async def _run(self) -> None:
        while self._audiences:
            self._wanted.clear()
            new = {owner for owner, audience in self._audiences.items() if not audience.known.done()}
            try:
                found = await self._in_thread(partial(self._reader.read, list(self._audiences), new))
            except Exception as error:  # noqa: BLE001  whatever it was, who listens is told with the next look
                log.warning("Whether lists of tools have changed could not be asked: %r", error)
                self._refuse(new, await self._in_thread(partial(translate_exception, error)))
            else:
                for tenant, problem in found.failed.items():
                    log.warning("Whether lists of tools of %s have changed could not be asked: %s", tenant, problem)
                    self._refuse({owner for owner in new if owner.tenant_id == tenant}, problem)
                self._spread(found.digests)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), LOOK_EVERY_S)

    def _refuse(self, owners: Iterable[ListOwner], problem: Problem) -> None:
        for owner in owners:
            audience = self._audiences.pop(owner, None)
            if audience is not None:
                audience.known.set_exception(problem)
                audience.known.exception()  # whoever waited may have gone

    def _spread(self, found: dict[ListOwner, str]) -> None:
        told: list[tuple[_Audience, Ear]] = []
        for owner, digest in found.items():
            audience = self._audiences.get(owner)
            if audience is None or (audience.digest == digest and audience.known.done()):
                continue
            audience.digest = digest
            if not audience.known.done():
                audience.known.set_result(None)
            told += [(audience, ear) for ear in audience.ears]
        longest, loop = min(LONGEST_DELAY_S, len(told) / TOLD_IN_A_SECOND), asyncio.get_running_loop()
        for audience, ear in told:
            loop.call_later(random.uniform(0, longest), audience.tell, ear)  # noqa: S311  so that they do not all list at once


_watches: WeakSet[ListWatch] = WeakSet()


def close_streams() -> None:
    """For a process that ends, on its loop: it would wait for those who listen, and they listen elsewhere."""
    for watch in list(_watches):
        watch.close()
