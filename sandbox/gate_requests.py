"""Gate requests: how a box asks the gate for what the gate asks of others.

In plain http through the box's way out. What comes back is a stranger's: it is read up to limits, and what the gate says by itself is
told apart from what came from outside.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from sandbox.relay import REFUSED, SOCKET
from unitools import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PAUSES_S = (0.2, 0.8)  # before a request is made again, where nothing of it has left
_NOBODY_THERE = ("not_resolved", "not_reachable")  # what the gate calls it
_MAX_LINE_BYTES = 64 * 1024
_MAX_HEADERS = 100
_MAX_ANSWER_BYTES = 16 * 1024 * 1024  # as it comes; the gate passes on fewer


class CutOff(Exception):
    """The answer ended before it was whole."""


class GateAnswer:
    """Status, headers with small names, and what is still to be read of the body."""

    def __init__(self, way: socket.socket, stream: Any, status: int, headers: list[tuple[str, str]]) -> None:
        self._way, self._stream = way, stream
        self.status, self.headers = status, headers

    def read_pieces(self) -> Iterator[bytes]:
        """The body as it comes. :class:`CutOff`: the gate ends it with an empty chunk only where the service has ended it."""
        total = 0
        try:
            while size := int(_read_line(self._stream), 16):
                total += size
                if total > _MAX_ANSWER_BYTES:
                    raise CutOff
                piece: bytes = self._stream.read(size)
                if len(piece) < size or _read_line(self._stream):
                    raise CutOff
                yield piece
        except OSError as error:
            raise CutOff from error

    def limit_wait(self, seconds: float) -> None:
        """For each piece that is still to come."""
        self._way.settimeout(seconds)

    def close(self) -> None:
        self._stream.close()
        self._way.close()


def ask_gate(data: bytes, *, limit_s: float | None = None) -> GateAnswer:
    """Again where the gate says that nothing has left; it lets nothing that counts through once something has. ``limit_s``: what is
    asked for once, and waited for so long at each step.

    Raises:
        runtime.UpstreamError: nobody answered, or hung up before the head of an answer was whole.
        OSError: the gate refuses the request.
    """
    for pause in (*(PAUSES_S if limit_s is None else ()), None):
        try:
            line, answer = _ask(data, limit_s)
        except (CutOff, OSError):
            raise runtime.UpstreamError("The service hung up before its answer was whole.") from None
        said = dict(answer.headers)
        reason = said.get("x-toolhub-egress")
        if reason is None:
            return answer
        answer.close()
        if REFUSED.lower() in line.lower():
            raise OSError(line)  # as every refusal of the gate is told, so that it counts as one
        if pause is None or reason not in _NOBODY_THERE or said.get("x-toolhub-left") != "0":
            break
        time.sleep(pause)
    raise runtime.UpstreamError("The service did not answer.", gate=reason, left=said.get("x-toolhub-left") != "0")


def _ask(data: bytes, limit_s: float | None) -> tuple[str, GateAnswer]:
    """The first line of what comes back, and the answer up to its body."""
    way = socket.socket(socket.AF_UNIX)
    way.settimeout(limit_s)
    try:
        way.connect(SOCKET)
        with suppress(BrokenPipeError, ConnectionResetError):  # who is refused before all was said still reads why
            way.sendall(data)
        stream = way.makefile("rb")
        line = _read_line(stream)
        headers: list[tuple[str, str]] = []
        while text := _read_line(stream):
            name, _, value = text.partition(":")
            headers.append((name.lower(), value.strip()))
            if len(headers) > _MAX_HEADERS:
                raise CutOff  # noqa: TRY301  the socket is closed here
        return line, GateAnswer(way, stream, int(line.split(" ")[1]), headers)
    except BaseException:
        way.close()
        raise


def _read_line(stream: Any) -> str:
    line: bytes = stream.readline(_MAX_LINE_BYTES)
    if not line.endswith(b"\r\n"):
        raise CutOff
    return line[:-2].decode("latin-1")
