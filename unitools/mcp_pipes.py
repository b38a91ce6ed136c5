"""MCP over pipes: what is said with a server that was started here, one line of JSON each.

As the stdio transport of MCP has it. A line is at most 1 MiB of UTF-8, and what is no message is a log.
"""

from __future__ import annotations

import os
import select
import time

from unitools.mcp_conversation import (
    MAX_LOG_CHARS,
    MAX_MESSAGE_BYTES,
    McpConversation,
    ServerEnded,
    ServerUnfit,
    read_message,
    write_message,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import Any

_PIECE_BYTES = 1 << 16


class PipeConversation(McpConversation):
    """``incoming`` and ``outgoing``: descriptors of the server's output and input. ``deadline``, of :func:`time.monotonic`: after it
    the server is taken for one that says nothing more."""

    def __init__(self, incoming: int, outgoing: int, *, deadline: float | None = None, **ways: Any) -> None:
        super().__init__(**ways)
        self._deadline = deadline
        self._incoming, self._outgoing = incoming, outgoing
        self._beside: tuple[int, Callable[[], bool]] | None = None
        self._read, self._unsent = bytearray(), bytearray()
        for fd in (incoming, outgoing):
            os.set_blocking(fd, False)

    def watch_beside(self, fd: int, take: Callable[[], bool]) -> None:
        """While an answer is waited for, look there too. ``take``: takes what has come; false when there will be no more."""
        self._beside = fd, take

    def watch_alone(self) -> None:
        self._beside = None

    def set_deadline(self, deadline: float | None) -> None:
        self._deadline = deadline

    def is_over(self) -> bool:
        """Whether the server has closed its output, while nobody asked it for anything."""
        poll = select.poll()
        poll.register(self._incoming, 0)
        return bool(poll.poll(0))

    def _send(self, message: dict[str, Any]) -> None:
        if len(self._unsent) > MAX_MESSAGE_BYTES:
            raise ServerUnfit("The server does not read what it is answered.")
        self._unsent += write_message(message) + b"\n"
        self._write()

    def _write(self) -> None:
        """As much of what waits as the server has room for now."""
        try:
            del self._unsent[: os.write(self._outgoing, self._unsent[:_PIECE_BYTES])]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it reads no more; perhaps it has said something
            self._unsent.clear()

    def _next_message(self) -> dict[str, Any]:
        """The next line that is a message; other lines are a log."""
        begun = 0
        while True:
            end = self._read.find(b"\n", begun)
            if end < 0:
                begun = len(self._read)
                if begun > MAX_MESSAGE_BYTES:
                    raise ServerUnfit(f"The server sent a line of more than {MAX_MESSAGE_BYTES >> 20} MiB.")
                self._exchange()
                continue
            line, begun = bytes(self._read[:end]), 0
            del self._read[: end + 1]
            if len(line) > MAX_MESSAGE_BYTES:
                raise ServerUnfit(f"The server sent a line of more than {MAX_MESSAGE_BYTES >> 20} MiB.")
            message = read_message(line)
            if message is not None:
                return message
            if line.strip():
                self._log(line[:MAX_LOG_CHARS].decode("utf-8", "backslashreplace"))

    def _exchange(self) -> None:
        """Write what waits, read what is there; blocks until there is something to do. One that is late has ended."""
        poll = select.poll()
        poll.register(self._incoming, select.POLLIN)
        if self._unsent:
            poll.register(self._outgoing, select.POLLOUT)
        if self._beside is not None:
            poll.register(self._beside[0], select.POLLIN)
        left_s = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        ready = dict(poll.poll(None if left_s is None else left_s * 1000))
        if left_s == 0.0 or not ready:
            raise ServerEnded
        self._take_beside(ready)
        if self._outgoing in ready:
            self._write()
        if self._incoming in ready:
            try:
                piece = os.read(self._incoming, _PIECE_BYTES)
            except BlockingIOError:
                return
            if not piece:
                raise ServerEnded
            self._read += piece

    def _take_beside(self, ready: Container[int]) -> None:
        if self._beside is not None and self._beside[0] in ready and not self._beside[1]():
            self._beside = None

    def drain(self, within_ms: int) -> None:
        """Take what the server says until it closes its output, for at most so long. Nothing of it is heeded."""
        until = time.monotonic() + within_ms / 1000
        while (left_s := until - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(self._incoming, select.POLLIN)
            if self._beside is not None:
                poll.register(self._beside[0], select.POLLIN)
            ready = dict(poll.poll(left_s * 1000))
            self._take_beside(ready)
            if self._incoming not in ready:
                continue
            try:
                if not os.read(self._incoming, _PIECE_BYTES):
                    return
            except BlockingIOError:
                continue
