"""Relay: how a tool's http client finds the gate.

Clients speak to proxies over TCP; the way out of the box is a unix socket. This process passes bytes between the two, and that is
all: it looks at nothing, decides nothing, and holds nothing that a tool could not have by itself. One thread, no library that
is large: it is in the memory of every box that has a way out.
"""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import NoReturn

SOCKET = "/c/egress"
CA_FILE = "/c/ca.pem"
PUBLIC_CA_FILE = "/etc/ssl/certs/ca-certificates.crt"  # where the image has them; libraries look in other places
PORT = 3128
PROXY = f"http://127.0.0.1:{PORT}"
REFUSED = "Refused by the sandbox"  # how every refusal of the gate begins that is for want of a capability
UNKNOWN_NAME = "unrecognized name"  # how TLS libraries put the alert that ends a connection for another host
GATE = "gate"  # what a tool's exception lacked, when it says that the gate has refused; which it was, the gate knows

_MOST = 64  # connections at once; the gate allows fewer
_PIECE = 1 << 15
_READ, _WRITE = select.POLLIN, select.POLLOUT


class _End:
    """One end of a connection: what is still to be written to it, and whether there is more to come from it."""

    def __init__(self, end: socket.socket, *, is_gate: bool) -> None:
        self.socket = end
        self.fd = end.fileno()
        self.waiting = b""
        self.open = True  # for reading
        self.deaf = False
        self.other = self
        self._is_gate = is_gate

    def wants(self) -> int:
        return (_READ if self.open and not self.other.waiting else 0) | (_WRITE if self.waiting else 0)

    def read(self) -> None:
        try:
            data = self.socket.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.open = bool(data)
        self.other.waiting = b"" if self.other.deaf else data
        self.other.write()

    def write(self) -> None:
        try:
            while self.waiting:
                self.waiting = self.waiting[self.socket.send(self.waiting) :]
            if not self.other.open and not self.deaf:
                self.socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            self.waiting, self.deaf = b"", True
            if not self._is_gate:  # else the tool is still to read why the gate has hung up
                self.open = self.other.open = False


class Relay:
    """Accepts at ``listener`` and connects each to the unix socket ``path``."""

    def __init__(self, listener: socket.socket, path: str) -> None:
        self._listener, self._path = listener, path
        self._ends: dict[int, _End] = {}
        self._poll = select.poll()
        self._polled: set[int] = set()
        self._watched: set[int] = set()
        listener.setblocking(False)
        self._poll.register(listener, _READ)

    def watch(self, fd: int) -> None:
        """Wake up for this descriptor too."""
        self._watched.add(fd)
        self._poll.register(fd, _READ)

    def turn(self) -> list[int]:
        """Wait, and pass on what there is. Returns which of the watched descriptors have news."""
        watched = []
        for fd, events in self._poll.poll():
            if fd == self._listener.fileno():
                self._accept()
            elif fd in self._polled:
                self._serve(self._ends[fd], events)
            elif fd in self._watched:
                watched.append(fd)
        return watched

    def clear(self) -> None:
        """Forget whoever is connected, or waits to be: they belonged to a call that is over."""
        for end in list(self._ends.values()):
            self._close(end)
        with suppress(OSError):
            while True:
                self._listener.accept()[0].close()

    def _accept(self) -> None:
        try:
            here, _ = self._listener.accept()
        except OSError:
            return
        there = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            here.setblocking(False)
            if len(self._ends) >= 2 * _MOST:
                raise BlockingIOError
            there.connect(self._path)
        except OSError:
            here.close()
            there.close()
            return
        ends = _End(here, is_gate=False), _End(there, is_gate=True)
        ends[0].other, ends[1].other = ends[1], ends[0]
        for end in ends:
            self._ends[end.fd] = end
            self._listen(end)

    def _serve(self, end: _End, events: int) -> None:
        if end.waiting:
            end.write()
        if events & ~_WRITE and end.open and not end.other.waiting:
            end.read()
        if any(each.open or each.waiting for each in (end, end.other)):
            self._listen(end)
            self._listen(end.other)
        else:
            self._close(end)

    def _listen(self, end: _End) -> None:
        """An end that nothing is wanted of is not polled: one that has hung up would wake us for ever."""
        wanted = end.wants()
        if wanted:
            self._poll.register(end.fd, wanted)
            self._polled.add(end.fd)
        elif end.fd in self._polled:
            self._poll.unregister(end.fd)
            self._polled.discard(end.fd)

    def _close(self, end: _End) -> None:
        for each in (end, end.other):
            if self._ends.pop(each.fd, None) is not None:
                if each.fd in self._polled:
                    self._poll.unregister(each.fd)
                    self._polled.discard(each.fd)
                each.socket.close()


def run_relay(control: _socket.socket) -> NoReturn:
    """Be the relay. A byte on ``control`` says that a call is over; it is answered when nothing of it is left."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", PORT))
    listener.listen(_MOST)
    relay = Relay(listener, SOCKET)
    relay.watch(control.fileno())
    control.send(b"x")
    while True:
        if relay.turn():
            if not control.recv(1):
                os._exit(0)
            relay.clear()
            control.send(b"x")
