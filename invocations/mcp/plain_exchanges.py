"""Plain exchanges: how most `tools/call` messages are answered, past the SDK's transport.

Its transport makes the streams, tasks and objects that anything might need which is sent meanwhile. A call by a key that this
process knows, whose client neither wants to hear of progress nor has asked for forms in its stream, gets one message back. So
such a message goes straight to the SDK's kernel, which reads it, asks the handler of every call and writes the result of its
revision. Whose key it is, is asked in the thread that begins the call. All else, and all that is not as it should be, takes the
other way; what a client gets is the same by both (tests/integration/invocations/mcp/test_plain_exchanges.py).
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, InboundModernRoute, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, ErrorData, JSONRPCError, JSONRPCResponse
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response

from access.authentication.bearer import find_header_holder, resolve_header_principal
from access.connections.resources import mcp_resource
from invocations.mcp.request_context import SCOPE_KEY, CallerRefused, McpSession
from invocations.request_tallies import note_rejected
from kernel.http.exception_handlers import translate_exception
from kernel.http.parsers import read_json
from kernel.http.plain_heads import JSON_TYPES
from kernel.observability.log_context import note_for_log
from kernel.problems import Malformed, NotFound, Unauthenticated
from unitools.dialects.tool_names import restore_tool_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.lowlevel.server import Server

    from access.authentication.known_keys import KeyHolder, ReadAhead
    from invocations.mcp.open_streams import TrackedSend
    from invocations.mcp.request_context import McpRequest
    from kernel.http.body_limits import Receive
    from kernel.principal import Principal

log = logging.getLogger("toolhub.mcp")
METHOD = "tools/call"
MAX_BYTES = 16 * 1024  # of a message: read on the event loop
PING_S = 15.0  # as the SDK: what is silent for longer is cut off by some proxies
LOOK_S = 1.0  # once that is over, until it is known who asks
PING = b": ping\r\n\r\n"
_TAKES_BOTH = frozenset({"application/json,text/event-stream", "text/event-stream,application/json", "*/*"})
_MEMBERS = {"jsonrpc", "id", "method", "params"}
_STREAM = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
]


class KeyOfAnother(CallerRefused):
    """A key is not whose it was, so that all was prepared for somebody else. Nothing has come of it."""

    def __init__(self) -> None:
        super().__init__(Unauthenticated())


def build_unknown_session_problem() -> NotFound:
    return NotFound("This session is unknown or over.", remedy="Begin a new one with `initialize`.")


class PlainMessage(NamedTuple):
    """A call of a tool, with all that a plain exchange has to know of who sends it."""

    id: str | int
    params: dict[str, Any]
    connection: Connection  # the SDK's word for what is known of the client
    holder: KeyHolder  # of the key, as it seems
    session: McpSession = McpSession()
    session_of: str = ""  # the agent; empty where there is no session

    @property
    def is_modern(self) -> bool:
        return self.connection.protocol_version in MODERN_PROTOCOL_VERSIONS

    def find_caller(self, header: str, address: str, ahead: ReadAhead | None) -> Principal:
        """In a thread: whose the key is now, as every request is asked. Raises :class:`CallerRefused`."""
        try:
            by = resolve_header_principal(header, address=address, resource=mcp_resource(), ahead=ahead)
        except Exception as error:
            problem = translate_exception(error)
            note_rejected(problem, by=None)
            raise CallerRefused(problem) from error
        if (by.tenant_id, by.agent_id, by.key_id) != self.holder:
            raise KeyOfAnother
        if self.session_of not in ("", by.id):
            raise CallerRefused(build_unknown_session_problem())
        note_for_log(tenant=str(by.tenant_id))
        return by


def find_plain_holder(scope: Mapping[str, Any], headers: Mapping[str, str]) -> KeyHolder | None:
    """Whose key it seems to be, where a head is one of a plain exchange; None for every other."""
    length = headers.get("content-length", "")
    is_plain = (
        scope["method"] == "POST"
        and len(headers) == len(scope["headers"])  # none of them twice
        and length.isascii()
        and length.isdigit()
        and 0 < int(length) <= MAX_BYTES
        and headers.get("content-type", "").lower() in JSON_TYPES
        and headers.get("accept", "").replace(" ", "") in _TAKES_BOTH
    )
    return find_header_holder(headers.get("authorization", "")) if is_plain else None


def read_plain_message(body: bytes, headers: Mapping[str, str], holder: KeyHolder) -> PlainMessage | None:
    """None for what is not plain, or not as it should be: that is said on the other way."""
    try:
        said = read_json(body)
    except Malformed:
        return None
    if not isinstance(said, dict) or said.keys() != _MEMBERS or (said["jsonrpc"], said["method"]) != ("2.0", METHOD):
        return None
    id, params = said["id"], said["params"]
    if not isinstance(id, str | int) or isinstance(id, bool) or not isinstance(params, dict):
        return None
    if not isinstance(params.get("name"), str) or not restore_tool_id(params["name"]):  # which is looked up
        return None
    meta = params.get("_meta", {})
    if not isinstance(meta, dict) or "progressToken" in meta:
        return None
    version = headers.get("mcp-protocol-version", DEFAULT_NEGOTIATED_VERSION)
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return _of_session(PlainMessage(id, params, Connection.from_envelope(version, None, None), holder), headers)
    route = classify_inbound_request(said, headers=headers)
    if not isinstance(route, InboundModernRoute):
        return None
    connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
    return PlainMessage(id, params, connection, holder)


def _of_session(message: PlainMessage, headers: Mapping[str, str]) -> PlainMessage | None:
    header = headers.get("mcp-session-id", "")
    if not header:
        return message
    if (opened := McpSession.opened(header)) is None or opened[0].asks_by_form:
        return None
    return message._replace(session=opened[0], session_of=opened[1])


@dataclass(slots=True)
class _NothingBetween:
    """The SDK's ``DispatchContext`` of a message that is answered by one, and by nothing before."""

    request_id: str | int
    message_metadata: ServerMessageMetadata
    transport: TransportContext = field(
        default_factory=lambda: TransportContext(kind="streamable-http", can_send_request=False)
    )
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        log.debug("%s is not sent: nobody asked for it.", method)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Of a call whose client has not asked for it."""


async def answer_plain_message(
    message: PlainMessage, server: Server[Any], scope: dict[str, Any], receive: Receive, send: TrackedSend
) -> None:
    """Ask the kernel and send what it says, unless the client goes before. Raises :class:`CallerRefused`."""
    answering = asyncio.current_task()
    assert answering is not None

    def leave(done: asyncio.Task[None]) -> None:
        if not done.cancelled():
            send.over = True
            answering.cancel()

    gone = asyncio.create_task(_wait_until_gone(receive))
    gone.add_done_callback(leave)
    stream = _LateStream(send, scope[SCOPE_KEY])
    try:
        answer = await _ask_kernel(message, server, scope)
    finally:
        gone.cancel()
        await stream.stop()
    await _send_answer(message, answer, stream, scope, receive, send)


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ask_kernel(
    message: PlainMessage, server: Server[Any], scope: dict[str, Any]
) -> JSONRPCResponse | JSONRPCError:
    context: Any = _NothingBetween(message.id, ServerMessageMetadata(request_context=Request(scope)))
    try:
        result = await serve_one(
            server, context, METHOD, message.params, connection=message.connection, lifespan_state={}
        )
    except CallerRefused:
        raise
    except Exception as error:  # noqa: BLE001  as the SDK's transports have it
        return JSONRPCError(jsonrpc="2.0", id=message.id, error=_describe_error(message, error))
    return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)


def _describe_error(message: PlainMessage, error: Exception) -> ErrorData:
    if message.is_modern:
        return modern_error_data(error)
    if (found := handler_exception_to_error_data(error)) is not None:
        return found
    log.exception("A call over MCP has failed.", exc_info=error)
    return ErrorData(code=0, message=str(error))


class _LateStream:
    """The answer as a stream of events, begun only when it is not there soon: what is silent for long is cut off on the way. Not
    before it is known who asks: whoever may not is told so by the status of an answer, and whoever is another is answered elsewhere.
    """

    def __init__(self, send: TrackedSend, request: McpRequest) -> None:
        self._send, self._request, self._over = send, request, asyncio.Event()
        self._pinging: asyncio.Task[None] | None = None
        self._begins = asyncio.get_running_loop().call_later(PING_S, self._begin)

    @property
    def is_begun(self) -> bool:
        return self._pinging is not None

    def _begin(self) -> None:
        if self._request.caller is None:
            self._begins = asyncio.get_running_loop().call_later(min(PING_S, LOOK_S), self._begin)
        else:
            self._pinging = asyncio.create_task(self._ping())

    async def _ping(self) -> None:
        await begin_stream(self._send)
        while not self._over.is_set():
            await self._send({"type": "http.response.body", "body": PING, "more_body": True})
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), PING_S)

    async def stop(self) -> None:
        """What is being sent is sent."""
        self._begins.cancel()
        self._over.set()
        if self._pinging is not None:
            await self._pinging


def build_stream_start() -> dict[str, Any]:
    return {"type": "http.response.start", "status": 200, "headers": list(_STREAM)}


async def begin_stream(send: TrackedSend) -> None:
    await send(build_stream_start())


async def _send_answer(
    message: PlainMessage,
    answer: JSONRPCResponse | JSONRPCError,
    stream: _LateStream,
    scope: dict[str, Any],
    receive: Receive,
    send: TrackedSend,
) -> None:
    """As the transport of its revision does: 2026-07-28 as a document where no stream has begun, before always as a stream."""
    if message.is_modern:
        data = json.dumps(answer.model_dump(mode="json", by_alias=True, exclude_none=True), separators=(",", ":"))
    else:
        data = answer.model_dump_json(by_alias=True, exclude_unset=True)
    if message.is_modern and not stream.is_begun:
        status = ERROR_CODE_HTTP_STATUS.get(answer.error.code, 200) if isinstance(answer, JSONRPCError) else 200
        await Response(data, status_code=status, media_type="application/json")(scope, cast("Any", receive), send)
        return
    if not send.begun:
        await begin_stream(send)
    event = f"event: message\r\ndata: {data}\r\n\r\n".encode()
    await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
