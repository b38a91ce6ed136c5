"""Streams: how bytes go between a worker and a sandbox host, plain or under TLS.

One thread reads, any thread writes. TLS is done on buffers and not by the socket, because one may not be read and written at once.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
import struct
import threading
import time
from contextlib import suppress

SILENCE_S = 15.0  # three pings that did not come
SEND_S = 20.0
_CHUNK = 1 << 18
_KEEPALIVE_S = 30


class PeerLost(Exception):
    """The other side is gone. The message says how that was seen."""


class PeerSilent(PeerLost):
    """The other side said nothing within the time that it had."""


class PeerStream:
    """Bytes over a connected socket, as they are."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = bytearray()
        self._loss: PeerLost | None = None  # by which it ended, for whoever reads next
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._sending = threading.RLock()
        connection.setblocking(True)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(SEND_S), 0))
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENCE_S * 1000))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_S)

    @property
    def sending(self) -> threading.RLock:
        """Held by whoever sends something that nothing else may come in between."""
        return self._sending

    def read(self, size: int, deadline: float) -> bytes:
        """Exactly so many bytes. ``deadline``: of the monotonic clock."""
        while len(self._buffer) < size:
            self._take_more(deadline)
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def wait_for_data(self, deadline: float) -> bool:
        """Whether there is something to read before the deadline. An end is something to read."""
        try:
            while not self._buffer:
                self._take_more(deadline)
        except PeerSilent:
            return False
        except PeerLost:
            return True
        return True

    def write(self, data: bytes) -> None:
        with self._sending:
            self._send(data)

    def is_quiet(self) -> bool:
        """Whether the other side has neither said something nor ended."""
        with suppress(PeerLost):
            while self._poll.poll(0):
                self._take_more(math.inf)
            return not self._buffer
        return False

    def break_off(self) -> None:
        """From another thread: whoever reads or writes gets :class:`PeerLost`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.break_off()
        self._socket.close()

    def _take_more(self, deadline: float) -> None:
        if self._loss is not None:
            raise self._loss
        self._wait(deadline)
        try:
            self._fill()
        except PeerLost as error:
            self._loss = error
            raise

    def _wait(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or not self._poll.poll(None if left == math.inf else left * 1000):
            raise PeerSilent("It says nothing.")

    def _fill(self) -> None:
        self._buffer += self._receive()

    def _receive(self) -> bytes:
        """What has come, at least a byte."""
        try:
            data = self._socket.recv(_CHUNK)
        except OSError as error:
            raise PeerLost(f"The connection broke: {error}") from error
        if not data:
            raise PeerLost("The connection was closed.")
        return data

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except BlockingIOError as error:
            self.break_off()  # part of it may have left, and nothing can follow that
            raise PeerSilent("It takes no data.") from error
        except OSError as error:
            raise PeerLost(f"The connection broke: {error}") from error


class TlsPeerStream(PeerStream):
    """The same under TLS. ``server_name``: whom the client wants to reach; None on the side that answers."""

    def __init__(
        self, connection: socket.socket, context: ssl.SSLContext, *, server_name: str | None, within_s: float
    ) -> None:
        super().__init__(connection)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        self._using = threading.Lock()
        self._shake_hands(time.monotonic() + within_s)

    def read_peer_certificate(self) -> dict[str, object]:
        """As :meth:`ssl.SSLSocket.getpeercert` has it: what was verified."""
        return dict(self._tls.getpeercert() or {})

    def _shake_hands(self, deadline: float) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._send_outgoing()
                self._wait(deadline)
                self._incoming.write(super()._receive())
            except ssl.SSLError as error:
                with suppress(PeerLost):
                    self._send_outgoing()  # the alert, which says why
                raise PeerLost(f"TLS: {describe_tls_error(error)}") from error
            else:
                self._send_outgoing()
                self._open_seals()  # the first request may have come with the end of the handshake
                return

    def _fill(self) -> None:
        data = super()._receive()
        with self._using:
            self._incoming.write(data)
        self._open_seals()

    def _open_seals(self) -> None:
        with self._using:
            try:
                while True:
                    piece = self._tls.read(_CHUNK)
                    if not piece:
                        raise PeerLost("The connection was closed.")
                    self._buffer += piece
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                raise PeerLost(f"TLS: {describe_tls_error(error)}") from error

    def _send(self, data: bytes) -> None:
        with self._using:
            try:
                self._tls.write(data)
            except ssl.SSLError as error:
                raise PeerLost(f"TLS: {describe_tls_error(error)}") from error
            sealed = self._outgoing.read()
        super()._send(sealed)

    def _send_outgoing(self) -> None:
        if data := self._outgoing.read():
            super()._send(data)


_ALERTS = {
    "CERTIFICATE_REQUIRED": "the other side wants a certificate, and got none",
    "UNKNOWN_CA": "the certificate is of an authority that the other side does not know",
    "CERTIFICATE_EXPIRED": "the certificate has run out",
    "UNSUPPORTED_CERTIFICATE": "the other side does not take this certificate for this use: one of a host is no worker's",
    "CERTIFICATE_UNKNOWN": "the other side does not take the certificate",
    "BAD_CERTIFICATE": "the other side does not take the certificate",
}


def describe_tls_error(error: ssl.SSLError) -> str:
    """What went wrong, as a sentence for operators."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    reason = error.reason or str(error)
    said = next((said for name, said in _ALERTS.items() if reason.endswith(name)), "")
    return said or reason.replace("_", " ").lower()
