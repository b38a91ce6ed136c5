"""Refusals of MCP: what a client is told that does not get in, or whose stream ends before its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_types import ErrorData, JSONRPCError
from mcp_types.jsonrpc import PARSE_ERROR

from access.authentication.bearer import CONNECT_AGAIN, NOT_CONNECTED
from access.connections.resources import MCP_PATH
from access.roles import AGENT_SCOPES
from invocations.mcp.errors import error_of
from invocations.mcp.list_streams import build_change
from kernel.http.body_limits import send_refusal
from kernel.http.exception_handlers import build_challenge
from kernel.problems import (
    MethodNotAllowed,
    Problem,
    Unauthenticated,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.http.body_limits import Send


def build_refusal_headers(
    problem: Problem, path: str, *, tried: bool, held: Iterable[str] = ()
) -> list[tuple[bytes, bytes]]:
    """What the authorization specification of MCP wants a client to be told, so that it gets a token, or a better one. Providers of a
    tenant have scopes of their own: a client that asked them for the hub's would be refused.

    ``held``: what the token is good for. Clients before 2026-07-28 ask for what they are told, and lose the rest; later ones ask for
    both.
    """
    if isinstance(problem, MethodNotAllowed):
        return [(b"allow", b"GET, POST")]
    if problem.status == 401:
        scope = " ".join(AGENT_SCOPES) if path == MCP_PATH else ""
        return [(b"www-authenticate", build_challenge(tried, path=path, scope=scope).encode())]
    if "missing" in problem.details:
        needed = {problem.details["missing"], *held}
        scope = " ".join(each for each in AGENT_SCOPES if each in needed) if path == MCP_PATH else ""
        said = build_challenge(True, error="insufficient_scope", path=path, scope=scope)
        return [(b"www-authenticate", said.encode())]
    return []


async def refuse_ended(path: str, send: Send, problem: Problem | None = None) -> None:
    """For whose connection has ended while they waited: as their next request is refused. ``problem``: what else has ended it."""
    problem = problem or Unauthenticated(NOT_CONNECTED, remedy=CONNECT_AGAIN)
    await send_refusal(send, problem, build_refusal_headers(problem, path, tried=True))


def write_error_event(id: str | int, problem: Problem) -> bytes:
    """To whoever waits for the answer to this message, when its stream ends before: without one, some clients wait on."""
    error = JSONRPCError(jsonrpc="2.0", id=id, error=error_of(problem).error)
    return f"event: message\r\ndata: {error.model_dump_json(by_alias=True, exclude_unset=True)}\r\n\r\n".encode()


def write_end_of_listening(id: str | int, problem: Problem) -> bytes:
    """To who listens: that the list is another one, before the end."""
    return f"event: message\r\ndata: {build_change(id)}\r\n\r\n".encode() + write_error_event(id, problem)


async def refuse_message(send: Send, problem: Problem) -> None:
    """For what is not JSON, in the words of JSON-RPC."""
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message=problem.detail))
    body = error.model_dump_json(by_alias=True, exclude_unset=True).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
