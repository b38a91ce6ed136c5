"""Daemon: where workers connect to a sandbox host, and how it ends.

Over a unix socket whoever may open the file is a worker, known by the number of its user; over TCP whoever has a certificate of the
authority and a name that is allowed.
"""

from __future__ import annotations

import logging
import secrets
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from invocations.sandbox.boxd.host_calls import HostCalls
from invocations.sandbox.boxd.session import WorkerSession
from invocations.sandbox.isolation.runtime_lines import OK, DoctorLine
from invocations.sandbox.wire import contract
from invocations.sandbox.wire.identities import IdentityUnusable, read_worker_name
from invocations.sandbox.wire.messages import ANSWER, MAX_REQUEST_BYTES, MIB, MessageChannel, RequestMemory
from invocations.sandbox.wire.streams import PeerLost, PeerStream, TlsPeerStream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from invocations.sandbox.base import Sandbox
    from invocations.sandbox.boxd.caches import FolderCache, PackageCache
    from invocations.sandbox.wire.identities import Identity

log = logging.getLogger("toolhub.boxd")
_HANDSHAKE_S = 5.0
_BACKLOG = 128
_MOST_CONNECTIONS = 512
_MOST_REQUEST_BYTES = 512 * MIB  # of all connections together
_PEER = struct.Struct("3i")


@dataclass
class BoxHost:
    """What the connections of a host share. Implements :class:`invocations.sandbox.boxd.session.HostState`."""

    sandbox: Sandbox
    packages: PackageCache
    folders: FolderCache
    is_full: Callable[[], bool]
    list_runtime_lines: Callable[[bool], Iterable[DoctorLine]]  # told whether each wall is looked at anew
    identity: Identity | None = None

    def __post_init__(self) -> None:
        self.name = (
            f"{socket.gethostname()}:{secrets.token_hex(4)}"  # operators know the machine, and no other daemon has it
        )
        self.calls = HostCalls()
        self.memory = RequestMemory(_MOST_REQUEST_BYTES)

    def list_check_lines(self, walls: str) -> list[dict[str, str]]:
        lines = [DoctorLine(OK, "sandbox", self.sandbox.check())]
        if walls != contract.NO_WALLS:
            lines += self.list_runtime_lines(walls == contract.EVERY_WALL)
        return [line._asdict() for line in lines]

    def count_certificate_days(self) -> int | None:
        return self.identity.count_days_left() if self.identity is not None else None


class Boxd:
    """Listens where it is told to. ``workers``: the names that certificates of workers may have."""

    def __init__(self, host: BoxHost, *, workers: Collection[str] = ()) -> None:
        self.host = host
        self._workers = frozenset(workers)
        self._listeners: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._open: set[PeerStream] = set()
        self._lock = threading.Lock()
        self._socket_file: Path | None = None

    def listen_on_socket(self, path: Path) -> None:
        """A unix socket, which its owner and its group may open."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.unlink()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        path.chmod(0o660)
        self._socket_file = path
        self._listen(listener, self._take_local)

    def listen_on_port(self, address: str, port: int) -> int:
        """Under TLS, by the host's identity. Returns the port, which is another one where 0 was asked for."""
        assert self.host.identity is not None, "a port needs a certificate"
        self.host.identity.load()
        listener = socket.create_server((address, port), backlog=_BACKLOG)
        self._listen(listener, self._take_remote)
        return int(listener.getsockname()[1])

    def stop(self, *, drain_s: float) -> None:
        """Begin no call; end when the last has, or the time is over."""
        if not self.host.calls.drain(drain_s):
            log.warning("%s calls have not ended within %g s, and are ended", self.host.calls.count(), drain_s)
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        if self._socket_file is not None:
            self._socket_file.unlink(missing_ok=True)
        self.host.sandbox.close()
        with self._lock:
            streams, threads = list(self._open), list(self._threads)
        for stream in streams:
            stream.break_off()
        for thread in threads:
            thread.join(_HANDSHAKE_S)

    def _listen(self, listener: socket.socket, take: Callable[[socket.socket], tuple[PeerStream, str]]) -> None:
        listener.listen(_BACKLOG)
        self._listeners.append(listener)
        thread = threading.Thread(target=self._accept, args=[listener, take], name="boxd-accept", daemon=True)
        thread.start()

    def _accept(self, listener: socket.socket, take: Callable[[socket.socket], tuple[PeerStream, str]]) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError as error:
                if listener.fileno() < 0 or self.host.calls.draining:
                    return
                log.warning("A connection was not accepted: %s", error)
                continue
            thread = threading.Thread(target=self._serve, args=[connection, take], name="boxd-session", daemon=True)
            with self._lock:
                self._threads = [each for each in self._threads if each.is_alive()]
                crowded = len(self._threads) >= _MOST_CONNECTIONS
                if not crowded:
                    self._threads.append(thread)
                    thread.start()
            if crowded:
                log.warning("A connection was closed: there are %s already", _MOST_CONNECTIONS)
                connection.close()

    def _serve(self, connection: socket.socket, take: Callable[[socket.socket], tuple[PeerStream, str]]) -> None:
        try:
            stream, worker = take(connection)
        except (PeerLost, IdentityUnusable, OSError) as error:
            log.warning("A connection was refused: %s", error)
            connection.close()
            return
        with self._lock:
            self._open.add(stream)
        try:
            if worker:
                WorkerSession(self.host, stream, worker).serve()
        except Exception:
            log.exception("The connection of %s ended in an error", worker)
        finally:
            with self._lock:
                self._open.discard(stream)
            stream.close()

    def _take_local(self, connection: socket.socket) -> tuple[PeerStream, str]:
        said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        _, user, _ = _PEER.unpack(said)
        return PeerStream(connection), f"user {user}"

    def _take_remote(self, connection: socket.socket) -> tuple[PeerStream, str]:
        assert self.host.identity is not None
        stream = TlsPeerStream(connection, self.host.identity.load(), server_name=None, within_s=_HANDSHAKE_S)
        name = read_worker_name(stream.read_peer_certificate())
        if name in self._workers:
            return stream, name
        sentence = (
            f"The certificate is that of {name or 'nobody'}, which is no worker of this host. Operators: name it in "
            "TOOLHUB_BOXD_WORKERS, or give the worker a certificate of its own."
        )
        log.warning("A connection was refused: %s", sentence)
        refusal = {"op": contract.REFUSED, "code": contract.FORBIDDEN, "message": sentence}
        MessageChannel(stream, most=MAX_REQUEST_BYTES).send(ANSWER, refusal)
        return stream, ""
