"""MCP endpoint: who gets in at `/mcp`, or at a tenant's own `/mcp/<its short name>`, and with what.

An ASGI application before Django's. It looks at where a request comes from, whose it is and how it reads, in this order and as REST
does, and hands what may pass to the SDK, which knows the protocol. Nothing is remembered from one request to the next, so any
web process answers any of them.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from access.authentication.bearer import resolve_header_principal
from access.authentication.held_credentials import HeldCredential, HeldKind, find_token_end
from access.connections.resources import MCP_PATH, mcp_resource, tenant_mcp_resource
from access.issuers.services import find_mcp_issuers
from invocations.mcp.consent_elicitation import note_form_answer, read_form_answer
from invocations.mcp.list_streams import send_list_changes, write_change_event
from invocations.mcp.list_watch import ListWatch
from invocations.mcp.open_streams import OpenStreams, TrackedSend
from invocations.mcp.plain_exchanges import (
    KeyOfAnother,
    answer_plain_message,
    build_stream_start,
    build_unknown_session_problem,
    find_plain_holder,
    read_plain_message,
)
from invocations.mcp.posted_answers import PostedAnswer
from invocations.mcp.refusals import (
    build_refusal_headers,
    refuse_ended,
    refuse_message,
    write_end_of_listening,
    write_error_event,
)
from invocations.mcp.request_checks import check_message_size, check_origin, check_scheme
from invocations.mcp.request_context import SCOPE_KEY, CallerRefused, McpRequest, McpSession
from invocations.mcp.results import READ
from invocations.mcp.server import make_server
from invocations.mcp.tool_calls import cancel_mcp_request
from invocations.request_tallies import note_rejected
from invocations.serializers import SCOPE
from invocations.stopped_streams import StreamTopic
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for_nobody
from kernel.http.body_limits import read_whole_body, send_refusal
from kernel.http.exception_handlers import translate_exception
from kernel.http.open_requests import LAST_WORDS, LATE_START
from kernel.http.parsers import MAX_BODY_BYTES, read_json
from kernel.http.traffic import ROUTE
from kernel.observability.log_context import note_for_log
from kernel.problems import (
    Malformed,
    MethodNotAllowed,
    NotFound,
    Problem,
    TooLarge,
    Unauthenticated,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from invocations.mcp.plain_exchanges import PlainMessage
    from kernel.http.body_limits import Application, Receive, Send
    from kernel.http.deferred_responses import InThread
    from kernel.principal import Principal

PATH = MCP_PATH
OF_TENANT = re.compile(rf"{PATH}/[A-Za-z0-9_-]{{1,40}}")  # with the short name of the tenant
SHORT = 16 * 1024  # bytes that take no longer to read than a thread to find
LIST_SCOPE = "tools:read"
LISTEN = "subscriptions/listen"
TAKES_TIME = frozenset({LISTEN, "tools/call", "tasks/result"})
HELD_SCOPES = "toolhub.held_scopes"  # in a scope of ASGI: those of the connection that asks
PRIMED_SINCE = "2025-11-25"  # before, a client may take an event without data for a message
# A call's scope is looked at with everything else about the call, so that its refusal has a pair too.
SCOPES = {
    "tools/list": LIST_SCOPE,
    LISTEN: LIST_SCOPE,
    **dict.fromkeys(("resources/list", "resources/templates/list", "resources/read"), READ),
    **dict.fromkeys(("tasks/get", "tasks/result", "tasks/list"), READ),
    **dict.fromkeys(("tasks/cancel", "tasks/update"), SCOPE),
}


class McpEndpoint:
    """``application`` gets what is not for MCP."""

    def __init__(self, application: Application, in_thread: InThread) -> None:
        self._application, self._in_thread = application, in_thread
        self._keeper: asyncio.Task[None] | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._server = make_server()
        self._streams = OpenStreams(in_thread)
        self._lists = ListWatch(in_thread)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/") if scope["type"] == "http" else ""
        if path != PATH and not OF_TENANT.fullmatch(path):
            await self._application(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        scope[ROUTE] = PATH.strip("/")
        send = _with_transport_security(send, scope)
        try:
            check_scheme(scope)
            await self._pass(scope, headers, receive, send, path)
        except Problem as problem:
            held = scope.get(HELD_SCOPES, ()) if speaks_older_revision(headers) else ()
            await send_refusal(
                send, problem, build_refusal_headers(problem, path, tried="authorization" in headers, held=held)
            )

    async def _pass(
        self, scope: dict[str, Any], headers: Mapping[str, str], receive: Receive, send: Send, path: str
    ) -> None:
        check_origin(headers)
        holder = find_plain_holder(scope, headers) if path == PATH else None
        if holder is not None and (sent := await read_whole_body(receive)) is not None:
            if (message := read_plain_message(sent, headers, holder)) is not None:
                with suppress(KeyOfAnother):
                    await self._exchange(message, scope, headers, receive, send)
                    return
            receive = _again(sent, receive)
        by = await self._authenticated(scope, headers, path)
        note_for_log(tenant=str(by.tenant_id))
        scope[HELD_SCOPES] = by.allowed if by.connection is not None else ()
        if scope["method"] == "GET" and speaks_older_revision(headers):
            await self._stream(by, headers, receive, TrackedSend(send, partial(refuse_ended, path)))
            return
        if scope["method"] != "POST":
            raise MethodNotAllowed("MCP is spoken here with POST. Before 2026-07-28, GET listens for changed lists.")
        try:
            body = await _body(receive)
            check_message_size(body)
        except Problem as problem:
            await self._in_thread(partial(_noted, problem, by))
            raise
        try:
            message = read_json(body) if len(body) <= SHORT else await self._in_thread(partial(read_json, body))
        except Malformed as problem:
            await self._in_thread(partial(_noted, problem, by))
            await refuse_message(send, problem)
            return
        said = message if isinstance(message, dict) else {}
        if needed := SCOPES.get(str(said.get("method"))):
            by.check(needed)
        session = McpSession()
        if said.get("method") == "initialize":
            session = McpSession.begin(said.get("params"))
            send = _with_session(send, session.sealed_for(by))
        elif speaks_older_revision(headers):
            session = find_session(headers, by=by)
            if wakes := read_form_answer(message):
                await self._in_thread(partial(note_form_answer, wakes))
                await _accept(send)
                return
        tracked = TrackedSend(send, partial(refuse_ended, path))
        posted = PostedAnswer(tracked)
        if isinstance(id := said.get("id"), str | int):
            scope[LAST_WORDS] = partial(write_error_event, id)
            tracked.write_last = partial(
                write_end_of_listening if said.get("method") == LISTEN else write_error_event, id
            )
        topic = StreamTopic.of(by)
        scope[SCOPE_KEY] = arrival = McpRequest(by, self._in_thread, self._lists, posted, session, topic)
        if said.get("method") == "notifications/cancelled":
            params = said.get("params")
            await cancel_mcp_request(arrival, params.get("requestId") if isinstance(params, dict) else None)
        manager = await self._running()
        is_refused = by.connection is not None and said.get("method") == "tools/call" and SCOPE not in by.allowed
        if is_refused:
            # Decided on and recorded as every call; the answer is a challenge, so that the program asks the person for more.
            await manager.handle_request(scope, cast("Any", _again(body, receive)), cast("Any", _hear_nothing))
            by.check(SCOPE)
        answer = manager.handle_request(scope, cast("Any", _again(body, receive)), cast("Any", posted))
        if by.connection is None and said.get("method") not in TAKES_TIME:
            await answer
        else:
            # A call goes on with what it was begun with: keys give tokens that last for ten minutes.
            goes_on = by.connection is None and said.get("method") != LISTEN
            ends = None if goes_on else find_token_end(by, headers.get("authorization", ""))
            await self._streams.give(HeldCredential.of(by), answer, tracked, ends=ends, topic=topic)

    async def _exchange(
        self,
        message: PlainMessage,
        scope: dict[str, Any],
        headers: Mapping[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a call of a known key that needs nothing else. Raises :class:`KeyOfAnother` before anything came of it."""
        holder = message.holder
        address = (scope.get("client") or ("",))[0]
        tracked = TrackedSend(send, partial(refuse_ended, PATH))
        tracked.write_last = scope[LAST_WORDS] = partial(write_error_event, message.id)
        scope[LATE_START] = build_stream_start()
        topic = StreamTopic(holder.tenant_id, holder.agent_id)
        scope[SCOPE_KEY] = McpRequest(
            None,
            self._in_thread,
            self._lists,
            PostedAnswer(tracked),
            message.session,
            topic,
            partial(message.find_caller, headers.get("authorization", ""), address),
        )
        answer = answer_plain_message(message, self._server, scope, receive, tracked)
        try:
            await self._streams.give(
                HeldCredential(HeldKind.KEY, holder.key_id), answer, tracked, ends=None, topic=topic
            )
        except KeyOfAnother:
            del scope[LATE_START]
            raise
        except CallerRefused as refused:
            raise refused.problem from refused

    async def _stream(self, by: Principal, headers: Mapping[str, str], receive: Receive, tracked: TrackedSend) -> None:
        """Of a client before 2026-07-28, which listens with GET."""
        by.check(LIST_SCOPE)
        find_session(headers, by=by)
        answer = send_list_changes(
            tracked,
            receive,
            by=by,
            lists=self._lists,
            told=headers.get("last-event-id", ""),
            primes=headers.get("mcp-protocol-version", "") >= PRIMED_SINCE,
        )
        tracked.write_last = write_change_event
        ends = find_token_end(by, headers.get("authorization", ""))
        await self._streams.give(HeldCredential.of(by), answer, tracked, ends=ends, topic=StreamTopic.of(by))

    async def _authenticated(self, scope: dict[str, Any], headers: Mapping[str, str], path: str) -> Principal:
        address = (scope.get("client") or ("",))[0]

        def ask() -> Principal:
            try:
                with acting_for_nobody():
                    return resolve_caller(headers.get("authorization", ""), address=address, path=path)
            except Exception as error:
                problem = translate_exception(error)
                note_rejected(problem, by=None)
                raise problem from error
            finally:
                release_connection()

        found: Principal = await self._in_thread(ask)
        return found

    async def _running(self) -> StreamableHTTPSessionManager:
        """The SDK's manager for this event loop, begun with its first request: web servers may run without lifespan events."""
        loop = asyncio.get_running_loop()
        if self._manager is None or self._keeper is None or self._keeper.get_loop() is not loop or self._keeper.done():
            manager = StreamableHTTPSessionManager(self._server, stateless=True, max_request_body_size=MAX_BODY_BYTES)
            ready = loop.create_future()
            self._manager, self._keeper, self._ready = manager, loop.create_task(_keep(manager, ready)), ready
        await asyncio.shield(self._ready)
        return self._manager


def resolve_caller(header: str, *, address: str, path: str) -> Principal:
    """The agent of an ``Authorization`` header. A tenant's own address takes tokens of its own providers that name it, and keys of the
    tenant's agents.
    """
    slug = path.removeprefix(PATH).removeprefix("/")
    if not slug:
        return resolve_header_principal(header, address=address, resource=mcp_resource())
    if (found := find_mcp_issuers(slug)) is None:
        raise NotFound("No tenant has this MCP address.", remedy=f"Connect to {mcp_resource()}.")
    by = resolve_header_principal(header, address=address, resource=tenant_mcp_resource(slug))
    if by.tenant_id != found[0]:
        raise Unauthenticated(
            "This credential is of another tenant.",
            remedy=f"Connect to {mcp_resource()}, or to the tenant's own address.",
        )
    return by


def speaks_older_revision(headers: Mapping[str, str]) -> bool:
    """One that begins with `initialize`."""
    return headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[-1]) in HANDSHAKE_PROTOCOL_VERSIONS


def find_session(headers: Mapping[str, str], *, by: Principal) -> McpSession:
    """The one that the request names; an empty one where it names none."""
    header = headers.get("mcp-session-id", "")
    if not header:
        return McpSession()
    if (opened := McpSession.opened(header)) is None or opened[1] != by.id:
        raise build_unknown_session_problem()
    return opened[0]


async def _keep(manager: StreamableHTTPSessionManager, ready: asyncio.Future[None]) -> None:
    try:
        async with manager.run():
            ready.set_result(None)
            await asyncio.Event().wait()
    except Exception as error:
        if not ready.done():
            ready.set_exception(error)
        raise


async def _hear_nothing(message: Mapping[str, Any]) -> None:
    """In place of who has asked, who is told something else."""


async def _accept(send: Send) -> None:
    """For what is no request, so that there is nothing to answer."""
    await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def _noted(problem: Problem, by: Principal) -> None:
    try:
        note_rejected(problem, by=by)
    finally:
        release_connection()


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Malformed("The request ended before its body.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise TooLarge(f"The body is larger than {MAX_BODY_BYTES:,} bytes.", details={"max_bytes": MAX_BODY_BYTES})
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, and then what the connection says."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Mapping[str, Any]:
        return messages.pop() if messages else await receive()

    return replay


def _with_transport_security(send: Send, scope: Mapping[str, Any]) -> Send:
    """Browsers keep to https after answers from here too, as Django's middleware says with its own."""
    if not settings.SECURE_HSTS_SECONDS or scope.get("scheme") != "https":
        return send
    header = (b"strict-transport-security", f"max-age={settings.SECURE_HSTS_SECONDS}".encode())

    async def send_message(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), header]}
        await send(message)

    return send_message


def _with_session(send: Send, id: str) -> Send:
    async def send_message(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message = {**message, "headers": [*message.get("headers", ()), (b"mcp-session-id", id.encode())]}
        await send(message)

    return send_message
