"""Hub connection: how bytes go between the box and its hub.

Over the socket that the hub listens on in the box's own folder of the host, where that can be mounted; else over
stdin and stdout, which the engine passes on. When the hub goes away, the box ends at once.
"""

from __future__ import annotations

import os
import select
import socket

SOCKET = "/c/s"


class HubConnection:
    """``read`` and ``write`` for :class:`sandbox.protocol.FrameChannel`; ``fd`` is where news shows."""

    def __init__(self) -> None:
        self.fd, self._to_hub = 0, 1
        if os.path.exists(SOCKET):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(SOCKET)
                self.fd = self._to_hub = connection.detach()
            empty = os.open("/dev/null", os.O_RDWR)
            for fd in (0, 1):
                os.dup2(empty, fd)
            os.close(empty)

    def read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                chunk = os.read(self.fd, min(size - len(data), 1 << 20))
            except ConnectionError:
                chunk = b""
            if not chunk:
                os._exit(0)
            data += chunk
        return bytes(data)

    def listens(self) -> bool:
        """Whether something can be written without waiting."""
        poll = select.poll()
        poll.register(self._to_hub, select.POLLOUT)
        return bool(poll.poll(0))

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._to_hub, view) :]
            except ConnectionError:
                os._exit(0)
