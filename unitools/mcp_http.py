"""MCP over HTTP: what is said with a server that is somewhere else, one POST a message.

As the streamable HTTP transport has it. Since 2026-07-28 each request stands by itself; before, a session begins with `initialize`
and is ended with DELETE. Which of the two is spoken was decided when the server was brought. Who sends the request is somebody
else's: the gate's for a sandbox, a connection of Python's for a command.
"""

from __future__ import annotations

import binascii
import re
from contextlib import suppress

from unitools.mcp_conversation import (
    CLIENT,
    MAX_LOG_CHARS,
    McpConversation,
    ServerEnded,
    ServerUnfit,
    read_message,
    read_refusal,
    write_message,
)
from unitools.server_sent_events import EventReader, EventTooLong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Headers = list[tuple[str, str]]

MODERN = "2026-07-28"
SESSION, REVISION, METHOD, NAME = "Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
MAX_ANSWER_BYTES = 8 << 20
NAMED = {"tools/call": "name"}  # by method: the parameter that stands in a header as well

_META = "io.modelcontextprotocol/"
_SESSION = re.compile(r"[!-~]{1,1024}")
_PLAIN = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
_EVENTS = "text/event-stream"


class StatusRefused(Exception):
    """The server answered a request with a status of HTTP, and with nothing of MCP."""

    def __init__(self, status: int) -> None:
        super().__init__(f"The server answered {status}.")
        self.status = status

    @property
    def is_denial(self) -> bool:
        """It asks who is there, or will not have them."""
        return self.status in (401, 403)

    @property
    def is_trouble(self) -> bool:
        """Of the server's own, or it has too much to do."""
        return self.status == 429 or self.status >= 500

    @property
    def is_elsewhere(self) -> bool:
        """It leads to another address, where nobody follows."""
        return 300 <= self.status < 400


class HttpAnswer:
    """``headers`` by small names; ``pieces`` of the body as they come."""

    def __init__(
        self, status: int, headers: dict[str, str], pieces: Iterator[bytes], close: Callable[[], None]
    ) -> None:
        self.status, self.headers, self.pieces, self.close = status, headers, pieces, close


class HttpConversation(McpConversation):
    """``ask`` sends a method, headers and a body to the server's address. ``revision``: of MCP, that the server is known to speak;
    empty: any with a handshake."""

    def __init__(self, ask: Callable[[str, Headers, bytes], HttpAnswer], *, revision: str, **ways: Any) -> None:
        super().__init__(**ways)
        self._ask = ask
        self._known = revision
        self._modern = revision >= MODERN
        self.revision = revision if self._modern else ""
        self.offered = revision or self.offered
        self._session = ""
        self._open: HttpAnswer | None = None
        self._messages: Iterator[dict[str, Any]] = iter(())

    def begin(self) -> None:
        """What comes before the first request, where something does."""
        if not self._modern:
            self.initialize()
            if self.revision >= MODERN or self._known not in ("", self.revision):
                raise ServerUnfit(
                    f"The server speaks MCP {self.revision}, not {self._known or 'one with a handshake'}."
                )

    def end(self) -> None:
        """The session as well, where there is one. A server that does not end it has nothing to do with us any more."""
        self._close()
        if self._session:
            with suppress(Exception):
                self._ask("DELETE", self._headers("", {}), b"").close()

    def _send(self, message: dict[str, Any]) -> None:
        self._close()
        method, params = message["method"], message.get("params", {})
        is_request = "id" in message
        if self._modern and is_request:
            message = message | {"params": params | {"_meta": self._meta() | params.get("_meta", {})}}
        answer = self._open = self._ask("POST", self._headers(method, params), write_message(message))
        if method == "initialize" and (session := answer.headers.get(SESSION.lower(), "")):
            if not _SESSION.fullmatch(session):
                raise ServerUnfit("The server's session has an id that no header can hold.")
            self._session = session
        self._messages = self._read(answer)
        if not is_request and answer.status >= 300:
            raise StatusRefused(answer.status)

    def _next_message(self) -> dict[str, Any]:
        for message in self._messages:
            return message
        raise ServerEnded

    def _pong(self, id: Any) -> None:
        """Nobody waits for it: the stream that it came by is being read."""

    def _refuse(self, id: Any) -> None:
        """An answer would be a request of its own, which the gate has no way for. That it was asked is noted."""

    def _meta(self) -> dict[str, Any]:
        return {
            f"{_META}protocolVersion": self.revision,
            f"{_META}clientInfo": CLIENT,
            f"{_META}clientCapabilities": {},  # what a server lists may depend on them
        }

    def _headers(self, method: str, params: dict[str, Any]) -> Headers:
        found = [("Accept", f"application/json, {_EVENTS}")]
        if self.revision:
            found.append((REVISION, self.revision))
        if self._session:
            found.append((SESSION, self._session))
        if method:
            found.append(("Content-Type", "application/json"))
        if method and self._modern:
            found += list_routing_headers(method, params)
        return found

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _read(self, answer: HttpAnswer) -> Iterator[dict[str, Any]]:
        """What of an answer is a message."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.status == 200 and kind == _EVENTS:
            yield from self._read_events(answer)
            return
        body = _join(answer.pieces)
        message = read_message(body)
        if answer.status >= 300:
            if message is None or "error" not in message:
                raise StatusRefused(answer.status)
            raise read_refusal(message["error"])
        if message is not None:
            yield message
        elif body.strip():
            raise ServerUnfit(f"The server answered {kind[:60] or 'something'!a}, which is no message of MCP.")

    def _read_events(self, answer: HttpAnswer) -> Iterator[dict[str, Any]]:
        reader = EventReader(max_chars=MAX_ANSWER_BYTES)
        try:
            for piece in answer.pieces:
                for event in reader.read(piece):
                    message = read_message(event.data.encode())
                    if message is not None:
                        yield message
                    elif event.data.strip():
                        self._log(event.data[:MAX_LOG_CHARS])
        except (UnicodeError, EventTooLong) as error:
            raise ServerUnfit("The server's stream of events cannot be read.") from error


def list_routing_headers(method: str, params: dict[str, Any]) -> list[tuple[str, str]]:
    """What stands in the headers of a request as it stands in its body, since 2026-07-28."""
    found = [(METHOD, method)]
    if method in NAMED and isinstance(name := params.get(NAMED[method]), str):
        found.append((NAME, write_header_value(name)))
    return found


def write_header_value(text: str) -> str:
    """As MCP has it: what no header can hold is written in base64."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{binascii.b2a_base64(text.encode(), newline=False).decode()}?="


def _join(pieces: Iterator[bytes]) -> bytes:
    found, size = [], 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            raise ServerUnfit(f"The server's answer has more than {MAX_ANSWER_BYTES:,} bytes.")
        found.append(piece)
    return b"".join(found)
