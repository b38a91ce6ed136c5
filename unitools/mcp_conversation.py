"""MCP conversation: what is said with a server of others, whichever way its messages come.

JSON-RPC 2.0, over pipes (:mod:`unitools.mcp_pipes`) or over HTTP (:mod:`unitools.mcp_http`). The server is not trusted: an answer to
nothing that was asked is passed over, and what the server asks of its client is refused, since there is none that has a model, a
person or a file to give.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROTOCOL = "2025-11-25"  # the newest revision that begins with `initialize`
MAX_MESSAGE_BYTES = 1 << 20
MAX_PAGES, MAX_TOOLS = 50, 1000
PROGRESS_TOKEN = 1
CLIENT = {"name": "toolhub", "version": "1"}  # the same for each call: a listing may depend on it
MAX_LOG_CHARS = 2000

_MAX_NOTE_CHARS = 200
_MAX_ID_CHARS = 200
_MAX_STRAY = 1000  # messages that belong to nothing
_MAX_PROGRESS = 500
_MOST = 1e15
_NO_SUCH_METHOD = -32601
_REVISION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class ServerEnded(Exception):
    """The server says nothing more: its output is closed, or its answer has ended."""


class ServerUnfit(Exception):
    """What the server says is not MCP. The message says what."""


class RequestRefused(Exception):
    """The server's answer to a request is an error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def _draw_id() -> int:
    return int.from_bytes(os.urandom(4), "big") >> 1


class McpConversation(ABC):
    """What both ways have in common; a subclass sends a message and gives the next one that has come.

    ``log`` takes what is a log, ``note`` what a person should know of it, ``progress`` a fraction and a message. ``new_id``: of a
    request, which nobody knows who writes to the server's output before it is asked.
    """

    def __init__(
        self,
        *,
        log: Callable[[str], None],
        note: Callable[[str], None],
        progress: Callable[[float, str], None],
        new_id: Callable[[], int] = _draw_id,
    ) -> None:
        self._new_id = new_id
        self._log, self._note, self._progress = log, note, progress
        self._strays = self._told = 0
        self._noted: set[str] = set()
        self._unanswered: set[int] = set()
        self.revision = ""  # of MCP, as the server has agreed to it
        self.offered = PROTOCOL

    @abstractmethod
    def _send(self, message: dict[str, Any]) -> None: ...

    @abstractmethod
    def _next_message(self) -> dict[str, Any]:
        """Raises :class:`ServerEnded` when there will be none."""

    def initialize(self) -> dict[str, Any]:
        """The handshake, without any capability of a client: what a server lists may depend on them."""
        asked = {"protocolVersion": self.offered, "capabilities": {}, "clientInfo": CLIENT}
        answer = self.request("initialize", asked)
        revision = answer.get("protocolVersion")
        if not (isinstance(revision, str) and _REVISION.fullmatch(revision)):
            raise ServerUnfit("The server does not say which revision of MCP it speaks.")
        self.revision = revision
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Raises :class:`RequestRefused`, :class:`ServerEnded`, :class:`ServerUnfit`."""
        asked = self._new_id()
        self._unanswered.add(asked)
        self._send({"jsonrpc": "2.0", "id": asked, "method": method, "params": params})
        while True:
            message = self._next_message()
            if "method" in message:
                self._heed(message)
                continue
            id = message.get("id")
            if type(id) is not int or id not in self._unanswered or ("result" in message) == ("error" in message):
                self._pass_over("an answer to nothing that was asked")
                continue
            self._unanswered.discard(id)
            if id != asked:  # of a request that nobody waits for any more
                continue
            if "error" in message:
                raise read_refusal(message["error"])
            if not isinstance(message["result"], dict):
                raise ServerUnfit(f"The result of {method} is no object.")
            return message["result"]

    def ping(self) -> None:
        """Have a request answered, however: it may be refused, or not answered in time. A later answer is passed over."""
        with suppress(RequestRefused, ServerEnded, ServerUnfit):
            self.request("ping", {})

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

    def _heed(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            self._answer(message["id"], str(method))
        elif method == "notifications/progress":
            self._pass_progress(params)
        elif method == "notifications/message":
            said = params.get("data")
            self._log((said if isinstance(said, str) else json.dumps(said))[:MAX_LOG_CHARS])

    def _answer(self, id: Any, method: str) -> None:
        if type(id) is not int and not (isinstance(id, str) and len(id) <= _MAX_ID_CHARS):
            self._pass_over("a request without a proper id")
            return
        if method == "ping":
            self._pong(id)
            return
        self._count_stray()
        self._note_once(f"The server asked its client for {_shown(method)}, which no call has.")
        self._refuse(id)

    def _pong(self, id: Any) -> None:
        self._send({"jsonrpc": "2.0", "id": id, "result": {}})

    def _refuse(self, id: Any) -> None:
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


def write_message(message: dict[str, Any]) -> bytes:
    return _COMPACT.encode(message).encode()


def read_message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def read_refusal(error: Any) -> RequestRefused:
    error = error if isinstance(error, dict) else {}
    code, said = error.get("code"), error.get("message")
    return RequestRefused(code if type(code) is int else 0, said if isinstance(said, str) else "(without a message)")


def _number(value: Any) -> float | None:
    """Of a size that can be reckoned with; None for anything else, NaN too."""
    return float(value) if type(value) in (int, float) and -_MOST < value < _MOST else None


def _shown(text: str) -> str:
    """Of a word of the server's, what fits into a sentence."""
    return "".join(each if each.isprintable() else " " for each in text[:_MAX_NOTE_CHARS])
