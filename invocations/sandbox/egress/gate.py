"""Egress gate: who opens and closes the way out of each box.

One thread of the process that owns the boxes. A :class:`EgressDoor` is one unix socket in the folder of one box, and serves
one call at a
time: between :meth:`Door.begin` and :meth:`Door.end` it lets through what that call's rules hold, at all other times nothing.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from invocations.sandbox.egress.connection_handler import ConnectionHandler, EgressCaps, EgressSession
from invocations.sandbox.egress.request_body import SmallChunkAllowance
from invocations.sandbox.egress.resolver import LOOKUPS_OF_BOX, Resolver, resolve_name
from invocations.sandbox.egress.root_certificates import read_roots
from invocations.sandbox.egress.streams import ReadPace

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from invocations.sandbox.base import ConnectionRecord
    from invocations.sandbox.egress.rules import EgressRules
    from invocations.sandbox.egress.service_way import ServiceWay

T = TypeVar("T")
log = logging.getLogger(__name__)
SOCKET = "egress"
CA_FILE = "ca.pem"
_BACKLOG = 64
_BREATH_S = 0.05  # when there are no descriptors left
_ANSWER_S = 10.0  # the gate's thread never waits for anybody; this is for one that is gone


async def _give_up_what_is_left() -> None:
    """What was asked for and nobody waited for any longer."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _build_trust(roots: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=roots.decode("ascii", "ignore") if roots else None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.options |= (
        ssl.OP_NO_RENEGOTIATION
    )  # else a service could have a request wait in the middle of its being written
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # else an answer that is cut off looks like one that has ended
    return context


class EgressGate:
    """May be used from many threads.

    ``networks``: private ones that the operator admits. ``ca_file``: roots, as PEM, that boxes trust beside the public ones.
    """

    def __init__(
        self,
        networks: Sequence[str] = (),
        *,
        ca_file: Path | None = None,
        caps: EgressCaps | None = None,
        resolve: Callable[[str], Sequence[str]] = resolve_name,
    ) -> None:
        self.caps = caps or EgressCaps()
        self.ways = Resolver(networks, resolve)
        self._ca_file = ca_file
        self._roots = b""
        self._trust: ssl.SSLContext | None = None
        self._doors: set[EgressDoor] = set()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def open(self, folder: Path) -> EgressDoor:
        """Open the way out of the box whose folder this is. ``OSError`` when it cannot be."""
        if self._ca_file is not None:
            self.check()
            (folder / CA_FILE).write_bytes(self._roots)
            (folder / CA_FILE).chmod(0o444)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            listener.bind(str(folder / SOCKET))
            (folder / SOCKET).chmod(0o666)  # the box has a user of its own; its folder is where nobody else gets
            listener.listen(_BACKLOG)
            door = EgressDoor(self, folder / SOCKET, listener)
            self.ask(door.listen())
        except BaseException:
            listener.close()
            raise
        with self._lock:
            self._doors.add(door)
        return door

    def check(self) -> None:
        """Can what the operator has set be used? ``OSError`` with a sentence when not."""
        if self._ca_file is not None and not self._roots:
            self._roots = read_roots(self._ca_file)

    def trust(self) -> ssl.SSLContext:
        """Whom the gate's own TLS trusts: the public authorities, and those that the operator names. ``OSError``."""
        self.check()
        with self._lock:
            if self._trust is None:
                self._trust = _build_trust(self._roots)
            return self._trust

    def ask(self, work: Coroutine[object, object, T]) -> T:
        """Have something done in the gate's thread."""
        done: Future[T] = asyncio.run_coroutine_threadsafe(work, self._running())
        return done.result(_ANSWER_S)

    def forget(self, door: EgressDoor) -> bool:
        """False when it was forgotten before."""
        with self._lock:
            known = door in self._doors
            self._doors.discard(door)
        return known

    def _running(self) -> asyncio.AbstractEventLoop:
        """The loop, which begins with the first box: a process that only imports this has no thread of it."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="egress-gate", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Close every door. The next box would begin anew."""
        for door in list(self._doors):
            door.close()
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.run_until_complete(_give_up_what_is_left())
            loop.close()


class EgressDoor:
    """The way out of one box. ``begin`` and ``end`` are the owner's; nothing that comes through the socket can ask for either."""

    def __init__(self, gate: EgressGate, path: Path, listener: socket.socket) -> None:
        self.path = path
        self._gate = gate
        self._listener = listener
        self._visit: EgressSession | None = None
        self._lookups = asyncio.Semaphore(LOOKUPS_OF_BOX)  # one call's may go on in the next
        self._unasked = 0
        self._told: tuple[ConnectionRecord, ...] = ()  # of a call that others than its owner have ended

    def begin(self, rules: EgressRules, *, tenant: str = "", way: ServiceWay | None = None) -> None:
        """Serve a call, until :meth:`end`. ``tenant``: whose share of look-ups is used. ``way``: the one operation that it may ask
        for, in place of all else.
        """
        trust = self._gate.trust() if way is not None else None
        self._gate.ask(self._begin(rules, tenant, way, trust))

    def end(self) -> tuple[ConnectionRecord, ...]:
        """Close every connection of the call. Returns one record for each attempt, in the order in which they began; also where the
        gate itself has closed meanwhile, since none would mean that nothing left."""
        return self._gate.ask(self._end())

    def close(self) -> None:
        """Close the way for good."""
        if self._gate.forget(self):
            with suppress(FileNotFoundError):
                self.path.unlink()
            try:
                self._gate.ask(self._stop())
            except TimeoutError:
                log.exception("A way out was not closed yet")  # nobody can find it any more

    # -- in the gate's thread

    async def listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _deafen(self) -> None:
        asyncio.get_running_loop().remove_reader(self._listener)

    def _accept(self) -> None:
        """Whose connection it is, is decided here and now: the call that is on, or nobody's."""
        try:
            end, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            log.warning("A box's connection was not accepted: %s", error)
            self._deafen()
            asyncio.get_running_loop().call_later(_BREATH_S, self._hear_again, self._visit)
            return
        visit = self._visit
        if visit is None:
            end.close()
            self._unasked += 1
            if self._unasked > _BACKLOG:
                self._deafen()
            return
        visit.attempts += 1
        task = asyncio.get_running_loop().create_task(self._pass(visit, end))
        visit.passing.add(task)
        task.add_done_callback(visit.passing.discard)
        task.add_done_callback(lambda _: end.close())
        if visit.attempts > self._gate.caps.attempts:
            self._deafen()  # who asks without end is not heard any more, until the next call

    def _hear_again(self, visit: EgressSession | None) -> None:
        if visit is self._visit and self._listener.fileno() >= 0:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    async def _pass(self, visit: EgressSession, end: socket.socket) -> None:
        await ConnectionHandler(visit, self._gate.caps, self._gate.ways, end).go()

    async def _begin(
        self, rules: EgressRules, tenant: str, way: ServiceWay | None, trust: ssl.SSLContext | None
    ) -> None:
        await self._end()
        caps, ways = self._gate.caps, self._gate.ways
        self._unasked = 0
        self._visit = EgressSession(
            rules,
            places=asyncio.Semaphore(caps.connections),
            lookups=(self._lookups, ways.share(tenant)),
            pace=ReadPace(caps.pieces_s),
            crumbs=SmallChunkAllowance(caps.crumbs),
            way=way,
            trust=trust,
        )
        await self.listen()

    async def _end(self) -> tuple[ConnectionRecord, ...]:
        visit, self._visit = self._visit, None
        self._turn_away()
        if visit is None:
            told, self._told = self._told, ()
            return told
        passing = list(visit.passing)
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)
        return visit.list_connections()

    def _turn_away(self) -> None:
        """Who still waits outside came for the call before, or for none. More than fit there have not waited."""
        with suppress(OSError):
            for _ in range(_BACKLOG + 1):
                self._listener.accept()[0].close()

    async def _stop(self) -> None:
        self._told = await self._end()
        self._deafen()
        self._listener.close()
