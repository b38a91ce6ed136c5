"""Session: one connection of a worker.

This thread reads all that comes on it; a call runs in a second one, so that the worker's end is noticed while a tool runs.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from invocations.sandbox.base import RunOutcome, RunStatus, SandboxUnavailable
from invocations.sandbox.boxd.caches import NotTaken
from invocations.sandbox.boxd.host_calls import NotBegun, NotYours
from invocations.sandbox.wire import contract
from invocations.sandbox.wire.calls import decode_call, encode_event, encode_outcome
from invocations.sandbox.wire.messages import ANSWER, EVENT, MAX_REQUEST_BYTES, REQUEST, MessageChannel, WireError
from invocations.sandbox.wire.streams import SILENCE_S, PeerLost

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.base import Profile, RunEvent, Sandbox, SandboxCall
    from invocations.sandbox.boxd.caches import FolderCache, PackageCache
    from invocations.sandbox.boxd.host_calls import HostCalls
    from invocations.sandbox.wire.messages import Message, RequestMemory
    from invocations.sandbox.wire.streams import PeerStream

log = logging.getLogger("toolhub.boxd")
HELLO_WITHIN_S = 5.0
IDLE_S = 900.0
PUT_WITHIN_S = 600.0
ROOM_WITHIN_S = 10.0  # for memory; a worker gives a host up that takes nothing for longer
_MOST_TICKETS = 32
_FULL = "What calls bring with them fills the memory of this host until others have ended."


class HostState(Protocol):
    """What all connections of a host share."""

    name: str
    sandbox: Sandbox
    calls: HostCalls
    packages: PackageCache
    folders: FolderCache
    memory: RequestMemory

    @property
    def is_full(self) -> Callable[[], bool]:
        """Whether calls wait until others have ended."""

    def list_check_lines(self, walls: str) -> list[dict[str, str]]: ...
    def count_certificate_days(self) -> int | None: ...


class RequestRefusal(Exception):
    """The request is not done. ``ends``: and the connection is closed, since nothing more can be understood on it."""

    def __init__(self, code: str, message: str, *, ends: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.ends = ends


@dataclass
class _PutTicket:
    kind: str
    digest: str
    size: int


@dataclass
class _Work:
    """A call that is on: it was read, and its outcome has not left."""

    profile: Profile
    call: SandboxCall
    stream: bool
    done: threading.Event = field(default_factory=threading.Event)


class WorkerSession:
    """``worker``: by which name the other side is known here."""

    def __init__(self, host: HostState, stream: PeerStream, worker: str) -> None:
        self.host, self.worker = host, worker
        self._channel = MessageChannel(stream, most=MAX_REQUEST_BYTES, memory=host.memory, admit=self._admit)
        self._tickets: dict[str, _PutTicket] = {}
        self._work: _Work | None = None
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._runner: threading.Thread | None = None
        self._operations: dict[str, Callable[[Message], None]] = {
            contract.HAVE: self._have,
            contract.PUT: self._put,
            contract.RUN: self._run,
            contract.KILL: self._kill,
            contract.SNAPSHOT: self._snapshot,
            contract.CHECK: self._check,
            contract.HEALTH: self._health,
        }

    def serve(self) -> None:
        """Until the worker goes, or does what cannot be understood."""
        try:
            greeted = False
            while True:
                try:  # no name for the message: it would keep its parts until the next one comes
                    greeted = self._answer(self._next(IDLE_S if greeted else HELLO_WITHIN_S), greeted=greeted)
                except RequestRefusal as refusal:
                    self._refuse(refusal)
                    if refusal.ends:
                        return
        except WireError as error:
            with suppress(PeerLost):
                self._refuse(RequestRefusal(contract.MALFORMED, str(error)))
        except PeerLost:
            pass
        finally:
            self._give_up()

    def _next(self, within_s: float) -> Message:
        """The next request. While a call is on, none may come, and pings must."""
        ends_at = time.monotonic() + within_s
        while True:
            work = self._work
            due = min(self._channel.ping_when_due(), ends_at) if work is not None else ends_at
            message = self._channel.receive_until(due)
            now = time.monotonic()
            if message is not None and message.kind == REQUEST:
                return message
            if message is not None and message.kind in (ANSWER, EVENT):
                raise WireError("A worker asks, and answers nothing.")
            if message is not None or self._work is not None:
                ends_at = now + within_s
            if self._work is not None and now - self._channel.heard_at > SILENCE_S:
                raise PeerLost("The worker says nothing any more.")
            if now >= ends_at:
                raise PeerLost("The worker has asked for nothing for long.")

    def _admit(self, head: dict[str, Any]) -> float:
        """How many seconds a request may wait for memory: none but a call that has no other host to go to."""
        if self._work is not None:
            raise WireError("A request came while a call is on: the connection is the call.")
        return ROOM_WITHIN_S if head.get("op") == contract.RUN and head.get("patient") is True else 0.0

    def _answer(self, message: Message, *, greeted: bool) -> bool:
        operation = contract.check_request(message.head)
        if operation == contract.HELLO:
            self._greet(message)
            return True
        if not greeted:
            raise RequestRefusal(contract.UNFIT, "The first request of a connection is a hello.", ends=True)
        if not message.fits:
            raise RequestRefusal(contract.BUSY, _FULL)
        if message.parts and operation != contract.RUN:
            raise WireError(f"The request {operation} has no parts.")
        self._operations[operation](message)
        return greeted

    def _reply(self, head: dict[str, Any], *parts: bytes) -> None:
        self._channel.send(ANSWER, head, *parts)

    def _refuse(self, refusal: RequestRefusal) -> None:
        log.info("Refused to %s: %s", self.worker, refusal)
        self._reply({"op": contract.REFUSED, "code": refusal.code, "message": str(refusal)})

    # -- operations

    def _greet(self, message: Message) -> None:
        ours, theirs = contract.compute_sources_digest(), message.head["sources"]
        if message.head["contract"] != contract.CONTRACT_VERSION or theirs != ours:
            raise RequestRefusal(
                contract.UNFIT,
                f"This host has contract {contract.CONTRACT_VERSION} and the sources {ours[7:19]}, the worker contract "
                f"{message.head['contract']} and the sources {theirs[7:19]}: both are to be of one version of toolhub.",
                ends=True,
            )
        self._reply(
            {
                "op": contract.HELLO,
                "host": self.host.name,
                "contract": contract.CONTRACT_VERSION,
                "sources": ours,
                "worker": self.worker,
            }
        )

    def _have(self, message: Message) -> None:
        kind, digest, size = (message.head[name] for name in ("kind", "digest", "size"))
        if kind == contract.PACKAGE and size > contract.MAX_PACKAGE_BYTES:
            raise RequestRefusal(
                contract.MALFORMED, f"A package has {contract.MAX_PACKAGE_BYTES} bytes at most, not {size}."
            )
        found = self.host.packages.get(digest) if kind == contract.PACKAGE else self.host.folders.find(digest)
        if found is not None:
            self._reply({"op": contract.HAVE, "known": True})
            return
        if len(self._tickets) >= _MOST_TICKETS:
            self._tickets.clear()
        ticket = secrets.token_hex(16)
        self._tickets[ticket] = _PutTicket(kind, digest, size)
        self._reply({"op": contract.HAVE, "known": False, "ticket": ticket})

    def _put(self, message: Message) -> None:
        ticket = self._tickets.pop(message.head["ticket"], None)
        if ticket is None:
            sentence = "The ticket of this put was used already, or is none of this connection. Ask again whether the host has it."
            raise RequestRefusal(contract.REPLAYED, sentence, ends=True)
        pieces = self._channel.receive_chunks(ticket.size)
        try:
            if ticket.kind == contract.FOLDER:
                self.host.folders.put(ticket.digest, ticket.size, pieces)
            elif self._channel.hold(ticket.size, within_s=ROOM_WITHIN_S):
                self.host.packages.put(ticket.digest, b"".join(pieces))
            else:
                raise RequestRefusal(contract.BUSY, _FULL)
        except (NotTaken, OSError) as error:
            raise RequestRefusal(contract.FAILED, str(error)) from error
        finally:
            self._channel.release_request()
            for _ in pieces:
                pass  # what was sent is read, so that a refusal is heard
        self._reply({"op": contract.PUT, "stored": True})

    def _kill(self, message: Message) -> None:
        name = message.head["name"]
        try:
            known = self.host.calls.check_may_end(name, self.worker)
        except NotYours as error:
            raise RequestRefusal(contract.FORBIDDEN, str(error)) from error
        if known:
            self.host.sandbox.kill(name)
        self._reply({"op": contract.KILL, "ended": known})

    def _snapshot(self, _: Message) -> None:
        snapshot = self.host.sandbox.snapshot()
        self._reply(
            {"op": contract.SNAPSHOT, "host": self.host.name},
            json.dumps(snapshot.to_json() if snapshot is not None else None).encode(),
        )

    def _check(self, message: Message) -> None:
        try:
            self._reply({"op": contract.CHECK, "lines": self.host.list_check_lines(message.head["walls"])})
        except SandboxUnavailable as error:
            raise RequestRefusal(contract.FAILED, str(error)) from error

    def _health(self, _: Message) -> None:
        self._reply(
            {
                "op": contract.HEALTH,
                "draining": self.host.calls.draining,
                "calls": self.host.calls.count(),
                "certificate_days": self.host.count_certificate_days(),
            }
        )

    # -- calls

    def _run(self, message: Message) -> None:
        head = message.head
        package, folder = self.host.packages.get(head["package"]), self._find_folder(head["folder"])
        if package is None:
            raise RequestRefusal(contract.LACKING, f"The package {head['package']} is not here.")
        profile, call = decode_call(head, message.parts, package=package, folder=folder)
        if not head["patient"] and self.host.is_full():
            raise RequestRefusal(contract.BUSY, "Calls wait on this host until others have ended.")
        try:
            self.host.calls.begin(call.name, self.worker)
        except NotBegun as error:
            raise RequestRefusal(contract.DRAINING if error.draining else contract.MALFORMED, str(error)) from error
        self._work = work = _Work(profile, call, stream=head["stream"])
        if self._runner is None:
            self._runner = threading.Thread(target=self._run_calls, name=f"boxd-call {self.worker}", daemon=True)
            self._runner.start()
        self._queue.put(work)

    def _find_folder(self, digest: str) -> Path | None:
        folder = self.host.folders.find(digest) if digest else None
        if digest and folder is None:
            raise RequestRefusal(contract.LACKING, f"The folder {digest} is not here.")
        return folder

    def _run_calls(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """One call, of which nothing is kept afterwards. False when there will be none."""
        work = self._queue.get()
        if work is None:
            return False
        try:
            outcome = self.host.sandbox.run(work.profile, work.call, self._tell if work.stream else None)
        except Exception:
            log.exception("The call %s ended in an error of this daemon", work.call.name)
            outcome = RunOutcome(RunStatus.LOST, error_message="The sandbox host failed.", clean=False)
        with self.host.calls.end(work.call.name):
            self._channel.release_request()
            self._work = None
            work.done.set()
            head, parts = encode_outcome(outcome)
            with suppress(PeerLost):
                self._reply(head, *parts)
        return True

    def _tell(self, event: RunEvent) -> None:
        self._channel.send(EVENT, {}, encode_event(event))

    def _give_up(self) -> None:
        """The worker is gone: what it wanted is ended."""
        work = self._work
        if work is not None:
            log.info("The connection of %s ended, and its call %s with it", self.worker, work.call.name)
            self._channel.stream.break_off()
            while not work.done.wait(0.05):
                self.host.sandbox.kill(work.call.name)
        self._queue.put(None)
        self._channel.release_request()
        self._channel.stream.close()
