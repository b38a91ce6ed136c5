"""Socket stream: how bytes go between the hub and a box on this machine.

Over a unix socket in the box's own folder, which the box sees as ``/c``: the hub listens, the box connects before it has
anybody's code, and the socket is taken away again. It costs the engine nothing. Where the engine does not see this host's
files, or a runtime keeps its boxes from such sockets, the engine's attach connection does the same
(:mod:`invocations.sandbox.boxes.attach_stream`).
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from invocations.sandbox.boxes.attach_stream import ChannelLost, ChannelTimeout, DeadlineSocket

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOCKET = "s"
_LOOK_EVERY_S = 0.5


class BoxStream(Protocol):
    """``read`` and ``write`` for :class:`sandbox.protocol.FrameChannel`, with one deadline for whatever happens next."""

    def allow(self, seconds: float) -> None: ...
    def read(self, size: int) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    def is_quiet(self) -> bool:
        """Whether the other side has neither said something nor ended."""

    def break_off(self) -> None:
        """From another thread: whoever reads or writes gets :class:`ChannelLost`."""

    def close(self) -> None: ...


def is_quiet(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN | select.POLLHUP)
    return not poll.poll(0)


def break_off(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class SocketStream(DeadlineSocket[socket.socket]):
    """The hub's end of the socket in a box's folder."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._buffer = bytearray()

    def read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = self._receive()
            if not data:
                raise ChannelLost("The box ended.")
            self._buffer += data
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def is_quiet(self) -> bool:
        return not self._buffer and is_quiet(self._socket)

    def break_off(self) -> None:
        break_off(self._socket)


class BoxListener:
    """Waits in a box's folder for the box."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / SOCKET
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.bind(str(self._path))
            self._path.chmod(0o666)  # the box has a user of its own; its folder is where nobody else gets
            self._socket.listen(1)
        except BaseException:
            self._socket.close()
            raise

    def accept(self, seconds: float, lives: Callable[[], bool]) -> SocketStream:
        """The box's connection; nobody else can make one afterwards. ``lives``: whether it is worth waiting."""
        deadline = time.monotonic() + seconds
        while True:
            self._socket.settimeout(_LOOK_EVERY_S)
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise ChannelTimeout("The box does not come to its socket.") from None
                if not lives():
                    raise ChannelLost("The box ended before it came to its socket.") from None
            else:
                self._path.unlink(missing_ok=True)
                return SocketStream(connection)

    def close(self) -> None:
        self._socket.close()
