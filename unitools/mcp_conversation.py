"""MCP conversation: what is said with a server of others, one line of JSON each.

JSON-RPC 2.0 over two pipes, as the stdio transport of MCP has it. The server is not trusted: a line is at most 1 MiB of UTF-8,
what is no message is a log, an answer to nothing that was asked is passed over, and what the server asks of its client is
refused, since there is none that has a model, a person or a file to give.
"""

from __future__ import annotations

import json
import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROTOCOL = "2025-11-25"  # the newest revision that begins with `initialize`
MAX_LINE_BYTES = 1 << 20
MAX_PAGES, MAX_TOOLS = 50, 1000
PROGRESS_TOKEN = 1

_CLIENT = {"name": "toolhub", "version": "1"}  # the same for each call: a listing may depend on it
_PIECE_BYTES = 1 << 16
_MAX_LOG_CHARS = 2000
_MAX_NOTE_CHARS = 200
_MAX_ID_CHARS = 200
_MAX_STRAY = 1000  # messages that belong to nothing
_MAX_PROGRESS = 500
_MOST = 1e15
_NO_SUCH_METHOD = -32601
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class ServerEnded(Exception):
    """The server has closed its output, or says nothing any more."""


class ServerUnfit(Exception):
    """What the server says is not MCP. The message says what."""


class RequestRefused(Exception):
    """The server's answer to a request is an error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def _draw_id() -> int:
    return int.from_bytes(os.urandom(4), "big") >> 1


class McpConversation:
    """``incoming`` and ``outgoing``: descriptors of the server's output and input.

    ``log`` takes what is a log, ``note`` what a person should know of it, ``progress`` a fraction and a message. ``deadline``, of
    :func:`time.monotonic`: after it the server is taken for one that says nothing more. ``new_id``: of a request, which nobody knows
    who writes to the server's output before it is asked.
    """

    def __init__(
        self,
        incoming: int,
        outgoing: int,
        *,
        log: Callable[[str], None],
        note: Callable[[str], None],
        progress: Callable[[float, str], None],
        deadline: float | None = None,
        new_id: Callable[[], int] = _draw_id,
    ) -> None:
        self._deadline, self._new_id = deadline, new_id
        self._incoming, self._outgoing = incoming, outgoing
        self._log, self._note, self._progress = log, note, progress
        self._read, self._unsent = bytearray(), bytearray()
        self._strays = self._told = 0
        self._noted: set[str] = set()
        for fd in (incoming, outgoing):
            os.set_blocking(fd, False)

    def initialize(self) -> dict[str, Any]:
        """The handshake, without any capability of a client: what a server lists may depend on them."""
        asked = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": _CLIENT}
        answer = self.request("initialize", asked)
        if not isinstance(answer.get("protocolVersion"), str):
            raise ServerUnfit("The server does not say which revision of MCP it speaks.")
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Raises :class:`RequestRefused`, :class:`ServerEnded`, :class:`ServerUnfit`."""
        asked = self._new_id()
        self._send({"jsonrpc": "2.0", "id": asked, "method": method, "params": params})
        while True:
            message = self._next_message()
            if "method" in message:
                self._heed(message)
                continue
            id = message.get("id")
            if type(id) is not int or id != asked or ("result" in message) == ("error" in message):
                self._pass_over("an answer to nothing that was asked")
                continue
            if "error" in message:
                raise _refusal(message["error"])
            if not isinstance(message["result"], dict):
                raise ServerUnfit(f"The result of {method} is no object.")
            return message["result"]

    def list_tools(self) -> list[dict[str, Any]]:
        """The entries of all pages of the server's list, as it sent them."""
        cursors: set[str] = set()
        params: dict[str, Any] = {}
        found: list[dict[str, Any]] = []
        for _ in range(MAX_PAGES):
            page = self.request("tools/list", params)
            tools, cursor = page.get("tools"), page.get("nextCursor")
            if not isinstance(tools, list) or not all(isinstance(each, dict) for each in tools):
                raise ServerUnfit("The server's tools are no list of objects.")
            found += tools
            if len(found) > MAX_TOOLS:
                raise ServerUnfit(f"The server lists more than {MAX_TOOLS} tools.")
            if cursor is None:
                return found
            if not isinstance(cursor, str) or cursor in cursors:
                raise ServerUnfit("The pages of the server's list come back to one that was there already.")
            cursors.add(cursor)
            params = {"cursor": cursor}
        raise ServerUnfit(f"The server's list has more than {MAX_PAGES} pages.")

    def drain(self, within_ms: int) -> None:
        """Take what the server says until it closes its output, for at most so long. Nothing of it is heeded."""
        poll = select.poll()
        poll.register(self._incoming, select.POLLIN)
        until = time.monotonic() + within_ms / 1000
        while (left_s := until - time.monotonic()) > 0 and poll.poll(left_s * 1000):
            try:
                if not os.read(self._incoming, _PIECE_BYTES):
                    return
            except BlockingIOError:
                continue

    def _heed(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            self._answer(message["id"], str(method))
        elif method == "notifications/progress":
            self._pass_progress(params)
        elif method == "notifications/message":
            said = params.get("data")
            self._log((said if isinstance(said, str) else json.dumps(said))[:_MAX_LOG_CHARS])

    def _answer(self, id: Any, method: str) -> None:
        if type(id) is not int and not (isinstance(id, str) and len(id) <= _MAX_ID_CHARS):
            self._pass_over("a request without a proper id")
            return
        if method == "ping":
            self._send({"jsonrpc": "2.0", "id": id, "result": {}})
            return
        self._count_stray()
        self._note_once(f"The server asked its client for {_shown(method)}, which no call has.")
        error = {"code": _NO_SUCH_METHOD, "message": "This client has no such method."}
        self._send({"jsonrpc": "2.0", "id": id, "error": error})

    def _pass_progress(self, params: dict[str, Any]) -> None:
        done, total, said = _number(params.get("progress")), _number(params.get("total")), params.get("message")
        if params.get("progressToken") != PROGRESS_TOKEN or self._told >= _MAX_PROGRESS or done is None:
            return
        self._told += 1
        fraction = done / total if total is not None and total > 0 else 0.0
        self._progress(min(1.0, max(0.0, fraction)), _shown(said) if isinstance(said, str) else "")

    def _pass_over(self, what: str) -> None:
        self._note_once(f"The server sent {what}.")
        self._count_stray()

    def _count_stray(self) -> None:
        self._strays += 1
        if self._strays > _MAX_STRAY:
            raise ServerUnfit(f"The server sent over {_MAX_STRAY} messages that belong to nothing.")

    def _note_once(self, note: str) -> None:
        if note not in self._noted and len(self._noted) < 10:
            self._noted.add(note)
            self._note(note)

    def _send(self, message: dict[str, Any]) -> None:
        if len(self._unsent) > MAX_LINE_BYTES:
            raise ServerUnfit("The server does not read what it is answered.")
        self._unsent += _COMPACT.encode(message).encode() + b"\n"
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
                if begun > MAX_LINE_BYTES:
                    raise ServerUnfit(f"The server sent a line of more than {MAX_LINE_BYTES >> 20} MiB.")
                self._exchange()
                continue
            line, begun = bytes(self._read[:end]), 0
            del self._read[: end + 1]
            if len(line) > MAX_LINE_BYTES:
                raise ServerUnfit(f"The server sent a line of more than {MAX_LINE_BYTES >> 20} MiB.")
            message = _read_message(line)
            if message is not None:
                return message
            if line.strip():
                self._log(line[:_MAX_LOG_CHARS].decode("utf-8", "backslashreplace"))

    def _exchange(self) -> None:
        """Write what waits, read what is there; blocks until there is something to do. One that is late has ended."""
        poll = select.poll()
        poll.register(self._incoming, select.POLLIN)
        if self._unsent:
            poll.register(self._outgoing, select.POLLOUT)
        left_s = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        ready = dict(poll.poll(None if left_s is None else left_s * 1000))
        if left_s == 0.0 or not ready:
            raise ServerEnded
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


def _read_message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def _refusal(error: Any) -> RequestRefused:
    error = error if isinstance(error, dict) else {}
    code, said = error.get("code"), error.get("message")
    return RequestRefused(code if type(code) is int else 0, said if isinstance(said, str) else "(without a message)")


def _number(value: Any) -> float | None:
    """Of a size that can be reckoned with; None for anything else, NaN too."""
    return float(value) if type(value) in (int, float) and -_MOST < value < _MOST else None


def _shown(text: str) -> str:
    """Of a word of the server's, what fits into a sentence."""
    return "".join(each if each.isprintable() else " " for each in text[:_MAX_NOTE_CHARS])
