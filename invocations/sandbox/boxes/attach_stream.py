"""Attach stream: how bytes go through the engine to a box and back.

The engine's attach connection is one socket: what is written goes to the box's stdin; what comes back is its stdout
and stderr, in pieces with a header of eight bytes each. It works with every engine that can be reached, local or not,
and needs nothing from the host's file system.
"""

from __future__ import annotations

import time
from typing import Protocol

_HEADER_BYTES = 8
_STDOUT = 1
_CHUNK = 1 << 18
_KEPT_STDERR = 4000


class ChannelLost(Exception):
    """The box, the engine, or the way there is gone."""


class ChannelTimeout(ChannelLost):
    """Nothing came in time."""


class EngineSocket(Protocol):
    """What is used of a socket."""

    def settimeout(self, seconds: float) -> None: ...
    def sendall(self, data: bytes) -> None: ...
    def recv(self, size: int) -> bytes: ...
    def is_quiet(self) -> bool: ...
    def break_off(self) -> None: ...
    def close(self) -> None: ...


class AttachedStream:
    """``read`` and ``write`` for :class:`sandbox.protocol.FrameChannel`, with one deadline for whatever happens next."""

    def __init__(self, connection: EngineSocket) -> None:
        self._socket = connection
        self._raw = bytearray()
        self._stdout = bytearray()
        self._deadline = 0.0
        self.stderr = b""

    def allow(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def read(self, size: int) -> bytes:
        while len(self._stdout) < size:
            self._sort()
            if len(self._stdout) < size:
                self._receive()
        data = bytes(self._stdout[:size])
        del self._stdout[:size]
        return data

    def write(self, data: bytes) -> None:
        self._set_timeout()
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            raise ChannelTimeout("The box takes no data.") from error
        except OSError as error:
            raise ChannelLost(f"The connection to the box broke: {error}") from error

    def is_quiet(self) -> bool:
        """Whether the other side has neither said something nor ended."""
        return not self._raw and not self._stdout and self._socket.is_quiet()

    def break_off(self) -> None:
        """From another thread: whoever reads or writes gets :class:`ChannelLost`."""
        self._socket.break_off()

    def close(self) -> None:
        self._socket.close()

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

    def _receive(self) -> None:
        self._set_timeout()
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError as error:
            raise ChannelTimeout("The box says nothing.") from error
        except OSError as error:
            raise ChannelLost(f"The connection to the box broke: {error}") from error
        if not data:
            last_words = self.stderr.decode("utf-8", "replace").strip()
            raise ChannelLost(f"The box ended. {last_words}".strip())
        self._raw += data

    def _set_timeout(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise ChannelTimeout("The box says nothing.")
        self._socket.settimeout(left)
