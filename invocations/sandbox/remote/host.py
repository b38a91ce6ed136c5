"""Host: one sandbox host as a worker sees it, with the connections that are kept to it."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from invocations.sandbox.remote.connection import (
    ANSWER_S,
    CallLost,
    CallUnfit,
    HostAddress,
    HostConnection,
    HostUnavailable,
)
from invocations.sandbox.wire import contract
from invocations.sandbox.wire.calls import encode_call
from invocations.sandbox.wire.folder_archive import write_archive
from invocations.sandbox.wire.identities import IdentityUnusable
from invocations.sandbox.wire.messages import MAX_CHUNK_BYTES, MAX_REQUEST_BYTES, REQUEST, WireError
from invocations.sandbox.wire.streams import PeerLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from invocations.sandbox.base import Profile, RunEvent, RunOutcome, SandboxCall
    from invocations.sandbox.wire.identities import Identity
    from invocations.sandbox.wire.messages import Message

log = logging.getLogger(__name__)
PUT_S = 600.0
_RESTS_S = (1.0, 2.0, 5.0, 15.0)  # of a host that could not be asked, by how often in a row
_KEPT = 64  # connections
_KNOWN = 10_000  # digests


class RemoteHost:
    """May be used from many threads at once."""

    def __init__(self, address: HostAddress, identity: Identity | None = None) -> None:
        self.address = address
        self._identity = identity
        self._kept: list[HostConnection] = []
        self._known: set[tuple[str, str]] = set()  # which daemon has which digest
        self._failures = 0
        self._rests_until = 0.0
        self._lock = threading.Lock()
        self._putting = threading.Lock()  # what many calls need is sent once

    def __str__(self) -> str:
        return self.address.text

    @property
    def rests(self) -> bool:
        """Whether it could not be asked a moment ago."""
        return time.monotonic() < self._rests_until

    # -- connections

    @contextmanager
    def connection(self) -> Iterator[HostConnection]:
        """A connection of one's own; kept for the next who needs one, unless an answer may still come on it, or nothing can."""
        found = self._take() or self._open()
        try:
            yield found
        except HostUnavailable as error:
            if error.code and error.code not in contract.ENDING:
                self._keep(found)
            else:
                found.close()
            raise
        except BaseException:
            found.close()
            raise
        else:
            self._keep(found)

    def _take(self) -> HostConnection | None:
        while True:
            with self._lock:
                if not self._kept:
                    return None
                found = self._kept.pop()
            if found.is_usable():
                return found
            found.close()

    def _open(self) -> HostConnection:
        stream = None
        try:
            stream = self.address.connect(self._identity)
            opened = HostConnection(stream)
            opened.greet()
        except (OSError, PeerLost, WireError, IdentityUnusable, HostUnavailable) as error:
            if stream is not None:
                stream.close()
            self._rest()
            code = error.code if isinstance(error, HostUnavailable) else ""
            raise HostUnavailable(f"The sandbox host {self} cannot be asked: {error}", code=code) from error
        self._failures = 0
        return opened

    def _keep(self, connection: HostConnection) -> None:
        with self._lock:
            if len(self._kept) < _KEPT:
                self._kept.append(connection)
                return
        connection.close()

    def _rest(self) -> None:
        self._rests_until = time.monotonic() + _RESTS_S[min(self._failures, len(_RESTS_S) - 1)]
        self._failures += 1

    def close(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, []
        for each in kept:
            each.close()

    # -- requests

    def ask(self, op: str, *, within_s: float = ANSWER_S, **fields: Any) -> Message:
        """:class:`HostUnavailable` when it does not answer, or refuses."""
        try:
            with self.connection() as connection:
                return connection.ask({"op": op, **fields}, within_s=within_s)
        except (PeerLost, WireError) as error:
            raise HostUnavailable(f"The sandbox host {self} does not answer: {error}") from error

    def run(
        self,
        profile: Profile,
        call: SandboxCall,
        *,
        package: str,
        folder: tuple[str, int],
        patient: bool,
        longest_s: float,
        before_sent: Callable[[], None],
        on_event: Callable[[RunEvent], None] | None,
    ) -> RunOutcome:
        """One call to its end. ``folder``: digest and size of the archive of ``call.dependencies``. ``before_sent`` may raise."""
        try:
            with self.connection() as connection:
                try:
                    self._put_what_lacks(connection, call, package, folder)
                except (PeerLost, WireError) as error:
                    raise HostUnavailable(f"The sandbox host {self} was lost before the call: {error}") from error
                head, parts = encode_call(
                    profile, call, package=package, folder=folder[0], stream=on_event is not None, patient=patient
                )
                if (size := sum(map(len, parts))) > MAX_REQUEST_BYTES:
                    raise CallUnfit(
                        f"The tool's arguments and files have {size} bytes, more than {MAX_REQUEST_BYTES} bytes."
                    )
                before_sent()
                try:
                    return connection.converse(head, parts, longest_s, on_event)
                except CallLost as error:
                    raise CallLost(f"Contact to the sandbox host {self} was lost: {error}") from error
        except HostUnavailable as error:
            if error.code == contract.DRAINING:
                self._rest()
            if error.code == contract.LACKING:
                self._known.clear()
            raise

    def _put_what_lacks(
        self, connection: HostConnection, call: SandboxCall, package: str, folder: tuple[str, int]
    ) -> None:
        if len(self._known) > _KNOWN:
            self._known.clear()
        if (connection.host, package) not in self._known:
            with self._putting:
                self._put_package(connection, package, call.package)
                self._known.add((connection.host, package))
        if call.dependencies is not None and (connection.host, folder[0]) not in self._known:
            with self._putting:
                self._put_folder(connection, folder, call.dependencies)
                self._known.add((connection.host, folder[0]))

    def _put_package(self, connection: HostConnection, digest: str, data: bytes) -> None:
        if len(data) > contract.MAX_PACKAGE_BYTES:
            raise CallUnfit(f"The tool's package has more than {contract.MAX_PACKAGE_BYTES} bytes.")
        have = {"op": contract.HAVE, "kind": contract.PACKAGE, "digest": digest, "size": len(data)}
        answer = connection.ask(have).head
        if not answer["known"]:
            connection.channel.send(REQUEST, {"op": contract.PUT, "ticket": answer["ticket"]})
            connection.channel.send_chunks(data)
            connection.take_answer(contract.PUT, PUT_S)

    def _put_folder(self, connection: HostConnection, archive: tuple[str, int], folder: Path) -> None:
        digest, size = archive
        have = {"op": contract.HAVE, "kind": contract.FOLDER, "digest": digest, "size": size}
        answer = connection.ask(have).head
        if answer["known"]:
            return
        log.info("The folder %s is sent to the sandbox host %s", folder.name, self)
        connection.channel.send(REQUEST, {"op": contract.PUT, "ticket": answer["ticket"]})
        waiting = bytearray()

        def send(data: bytes) -> None:
            waiting.extend(data)
            if len(waiting) >= MAX_CHUNK_BYTES:
                connection.channel.send_chunks(bytes(waiting))
                waiting.clear()

        write_archive(folder, send)
        if waiting:
            connection.channel.send_chunks(bytes(waiting))
        connection.take_answer(contract.PUT, PUT_S)
