"""MCP tasks: how a client comes back to a call that it did not wait for.

A task is a call, and its id the call's: nothing is kept beside the row, so any process answers for it. On 2026-07-28 the hub hands
one out for a tool that takes long, or while a person is asked, to clients that know the extension (SEP-2663); before, the client
asks for one with `task`.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    PaginatedRequestParams,
    RequestParams,
)
from mcp_types.jsonrpc import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from evidence.models import Snapshot, SnapshotKind
from evidence.services import reveal_values
from invocations.answer.envelope import build_answer_envelope
from invocations.answer.wake_ups import get_waker
from invocations.mcp.consent_elicitation import build_input_request
from invocations.mcp.errors import error_json
from invocations.mcp.mcp_task_status import build_mcp_task, find_approval_url
from invocations.mcp.request_context import (
    TASKS,
    get_mcp_request,
    read_client_capabilities,
    supports_tasks,
    supports_url_elicitation,
)
from invocations.mcp.results import build_call_result, dump_model
from invocations.mcp.tool_calls import IDLE_LOOK_S, call_tool
from invocations.models import Invocation
from invocations.run.cancellation import cancel_call
from kernel.http.pagination import fetch_page
from kernel.ids import decode
from kernel.problems import Conflict, Problem

if TYPE_CHECKING:
    from uuid import UUID

    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.lowlevel import Server

    from kernel.principal import Principal

Context = ServerRequestContext[Any, Any]
READ_OWN_ANSWER = "The agent reads the answer of its own task."
RELATED = "io.modelcontextprotocol/related-task"


class TaskParams(RequestParams):
    """Also what else a client sends: answers to what it was shown have nothing in them that the hub would go by."""

    task_id: str


def register_task_handlers(server: Server[Any]) -> None:
    server.extensions[TASKS] = {}
    server.middleware.append(adapt_older_protocol)
    server.add_request_handler("tasks/get", TaskParams, get_task)
    server.add_request_handler("tasks/cancel", TaskParams, cancel_task)
    server.add_request_handler("tasks/update", TaskParams, update_task)
    server.add_request_handler("tasks/result", TaskParams, get_task_result)
    server.add_request_handler("tasks/list", PaginatedRequestParams, list_tasks)


async def adapt_older_protocol(ctx: Context, call_next: CallNext) -> HandlerResult:
    """2025-11-25 had tasks as an experiment, which the SDK leaves to servers: `initialize` says so, and a call may want one."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return _without_untold(await call_next(ctx)) if ctx.method == "server/discover" else await call_next(ctx)
    if ctx.method == "tools/call" and (ctx.params or {}).get("task") is not None:
        found = await call_tool(ctx, CallToolRequestParams.model_validate(ctx.params, by_name=False))
        return found if isinstance(found, dict) or found is None else dump_model(found)
    found = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(found, dict):
        found["capabilities"].pop("extensions", None)
        found["capabilities"]["tools"]["listChanged"] = True  # with GET
        found["capabilities"]["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    return found


def _without_untold(found: HandlerResult) -> HandlerResult:
    """The SDK takes who serves subscriptions for one who tells of all that there is; the hub tells of changed lists of tools."""
    if isinstance(found, dict):
        found["capabilities"]["resources"] = {}
    return found


def _modern(context: Context, *, only: bool | None = None) -> bool:
    """Whether the message is of 2026-07-28; ``only``: raise unless it is, or unless it is not."""
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    if only is not None and modern is not only:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", data=context.method)
    if modern and not supports_tasks(read_client_capabilities(context)):
        wanted: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, f"The client does not know {TASKS}.", data=wanted)
    return modern


def _check_name(context: Context, params: TaskParams) -> None:
    """The SDK holds the headers of its own methods against their bodies (SEP-2243); these are the hub's."""
    said = (
        decode_header_value(context.request.headers.get(MCP_NAME_HEADER, params.task_id)) if context.request else None
    )
    if said != params.task_id:
        raise MCPError(HEADER_MISMATCH, "The header Mcp-Name does not name the task of the body.")


def _id_of(text: str) -> UUID:
    try:
        return decode("inv", text)
    except ValueError:
        raise _unknown() from None


def _unknown() -> MCPError:
    return MCPError(INVALID_PARAMS, "There is no task with this id.")


def _row(text: str, *, by: Principal) -> Invocation:
    row = Invocation.objects.visible_to(by).select_related("version__tool").filter(pk=_id_of(text)).first()
    if row is None:
        raise _unknown()
    return row


def _result(row: Invocation, *, by: Principal, modern: bool) -> dict[str, Any]:
    """What came of it; that it was read is a fact, as with a GET of the call."""
    for snapshot in Snapshot.objects.filter(invocation_id=row.pk, kind=SnapshotKind.OUTPUT):
        reveal_values(snapshot=snapshot, reason=READ_OWN_ANSWER, by=by)
    return dump_model(build_call_result(build_answer_envelope(row), by=by, modern=modern))


async def get_task(context: Context, params: TaskParams) -> dict[str, Any]:
    arrival, modern = get_mcp_request(context), _modern(context)
    _check_name(context, params)
    shows = modern and supports_url_elicitation(read_client_capabilities(context))

    def look() -> dict[str, Any]:
        row = _row(params.task_id, by=arrival.by)
        task = build_mcp_task(row, modern=modern, asks_by_url=shows)
        if modern and task["status"] == "input_required":
            task["inputRequests"] = build_input_request(row.tool, url=find_approval_url(row))
        if modern and task["status"] == "completed":
            task["result"] = _result(row, by=arrival.by, modern=True)
        return task

    return await arrival.within(look)


async def update_task(context: Context, params: TaskParams) -> dict[str, Any]:
    """A user has been where they were shown to. What they decided there has reached the call already."""
    _modern(context, only=True)
    _check_name(context, params)
    arrival = get_mcp_request(context)
    await arrival.within(lambda: _row(params.task_id, by=arrival.by))
    return {}


async def cancel_task(context: Context, params: TaskParams) -> dict[str, Any]:
    arrival, modern = get_mcp_request(context), _modern(context)
    _check_name(context, params)

    def cancel() -> dict[str, Any]:
        row = _row(params.task_id, by=arrival.by)
        try:
            row = cancel_call(invocation_id=row.pk, by=arrival.by)
        except Conflict as problem:
            if not modern:
                raise MCPError(INVALID_PARAMS, problem.detail, data=error_json(problem)) from problem
        return {} if modern else build_mcp_task(row, modern=False)

    return await arrival.within(cancel)


async def get_task_result(context: Context, params: TaskParams) -> dict[str, Any]:
    """Before 2026-07-28: the result, once there is one."""
    _modern(context, only=False)
    arrival = get_mcp_request(context)

    def look() -> dict[str, Any] | None:
        row = _row(params.task_id, by=arrival.by)
        return _result(row, by=arrival.by, modern=False) if row.is_final else None

    with ExitStack() as stack:
        # In a thread, since the first one of a process opens the connection that wake-ups come through.
        waiter = await arrival.within(lambda: stack.enter_context(get_waker().listen(_id_of(params.task_id))))
        waiter.look_anyway_s = IDLE_LOOK_S
        while (found := await arrival.within(look)) is None:
            await waiter.wait_async(IDLE_LOOK_S)
    found["_meta"] = found.get("_meta", {}) | {RELATED: {"taskId": params.task_id}}
    return found


async def list_tasks(context: Context, params: PaginatedRequestParams) -> dict[str, Any]:
    """Before 2026-07-28: all calls of the agent, newest first."""
    _modern(context, only=False)
    arrival = get_mcp_request(context)

    def page() -> dict[str, Any]:
        rows = Invocation.objects.visible_to(arrival.by).select_related("version__tool")
        try:
            found = fetch_page(rows, prefix="inv", after=params.cursor or "")
        except Problem as problem:
            raise MCPError(INVALID_PARAMS, problem.detail) from problem
        tasks = [build_mcp_task(row, modern=False) for row in found.rows]
        return {"tasks": tasks} | ({"nextCursor": found.next} if found.next else {})

    return await arrival.within(page)
