"""Attach stream: how bytes go through the engine to a box and back.

The engine's attach connection is one socket: what is written goes to the box's stdin; what comes back is its stdout
and stderr, in pieces with a header of eight bytes each. It works with every engine that can be reached, local or not,
and needs nothing from the host's file system.
"""

from __future__ import annotations

import time
from typing import Generic, Protocol, TypeVar

_HEADER_BYTES = 8
_STDOUT = 1
_CHUNK = 1 << 18
_KEPT_STDERR = 4000


class ChannelLost(Exception):
    """The box, the engine, or the way there is gone."""


class ChannelTimeout(ChannelLost):
    """Nothing came in time."""


class StreamSocket(Protocol):
    """What a stream uses of a socket."""

    def settimeout(self, seconds: float, /) -> None: ...
    def sendall(self, data: bytes, /) -> None: ...
    def recv(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


class EngineSocket(StreamSocket, Protocol):
    """The socket of an attach request."""

    def is_quiet(self) -> bool: ...
    def break_off(self) -> None: ...


Socket = TypeVar("Socket", bound=StreamSocket)


class DeadlineSocket(Generic[Socket]):
    """The socket of a stream, with one deadline for whatever happens next."""

    def __init__(self, connection: Socket) -> None:
        self._socket = connection
        self._deadline = 0.0

    def allow(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def write(self, data: bytes) -> None:
        self._set_timeout()
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            raise ChannelTimeout("The box takes no data.") from error
        except OSError as error:
            raise ChannelLost(f"The connection to the box broke: {error}") from error

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> bytes:
        """What has come; nothing: the other side has ended."""
        self._set_timeout()
        try:
            return self._socket.recv(_CHUNK)
        except TimeoutError as error:
            raise ChannelTimeout("The box says nothing.") from error
        except OSError as error:
            raise ChannelLost(f"The connection to the box broke: {error}") from error

    def _set_timeout(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise ChannelTimeout("The box says nothing.")
        self._socket.settimeout(left)


class AttachedStream(DeadlineSocket[EngineSocket]):
    """``read`` and ``write`` for :class:`sandbox.protocol.FrameChannel`."""

    def __init__(self, connection: EngineSocket) -> None:
        super().__init__(connection)
        self._raw = bytearray()
        self._stdout = bytearray()
        self.stderr = b""

    def read(self, size: int) -> bytes:
        while len(self._stdout) < size:
            self._sort()
            if len(self._stdout) < size:
                self._receive_pieces()
        data = bytes(self._stdout[:size])
        del self._stdout[:size]
        return data

    def is_quiet(self) -> bool:
        """Whether the other side has neither said something nor ended."""
        return not self._raw and not self._stdout and self._socket.is_quiet()

    def break_off(self) -> None:
        """From another thread: whoever reads or writes gets :class:`ChannelLost`."""
        self._socket.break_off()

    def _sort(self) -> None:
        """Take complete pieces out of what was received."""
        position = 0
        while len(self._raw) >= position + _HEADER_BYTES:
            end = position + _HEADER_BYTES + int.from_bytes(self._raw[position + 4 : position + 8], "big")
            if len(self._raw) < end:
                break
            piece = self._raw[position + _HEADER_BYTES : end]
            if self._raw[position] == _STDOUT:
                self._stdout += piece
            else:
                self.stderr = (self.stderr + bytes(piece))[-_KEPT_STDERR:]
            position = end
        del self._raw[:position]

    def _receive_pieces(self) -> None:
        data = self._receive()
        if not data:
            last_words = self.stderr.decode("utf-8", "replace").strip()
            raise ChannelLost(f"The box ended. {last_words}".strip())
        self._raw += data
