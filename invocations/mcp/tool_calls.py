"""Tool calls: what becomes of a `tools/call`.

The call goes through :func:`invocations.services.begin_call` as every other does, with the same controls, pair and idempotency. While
it waits and runs no thread is held; its progress is told to whoever asked for it. What is refused in the agent's own tenant is
a result that the model can act on; only a tool that means nothing there is an error of the protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp_types import CallToolResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from access.problems import ConsentRequired
from invocations import services
from invocations.accept.call_basis import BasisAhead
from invocations.answer.envelope import build_answer_envelope
from invocations.approvals.call_sentences import format_call_sentence
from invocations.approvals.held_calls import WAITABLE
from invocations.calls import BegunCall, CallRefused
from invocations.mcp.call_params import (
    build_unknown_tool_error,
    derive_request_id,
    find_called_tool,
    read_tool_call,
    read_user_id,
)
from invocations.mcp.consent_elicitation import ShownForm, elicit_by_form, elicit_consent, show_form
from invocations.mcp.errors import error_of
from invocations.mcp.mcp_task_status import build_task_handle
from invocations.mcp.request_context import get_mcp_request
from invocations.mcp.results import build_call_result
from invocations.models import FINAL, FOR_WORK, Invocation, State
from invocations.request_tallies import note_rejected
from invocations.run.cancellation import cancel_call
from invocations.run.live_output import read_live_output
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.exception_handlers import translate_exception
from kernel.http.open_requests import is_refused
from kernel.problems import Malformed
from registry.problems import UnknownTool
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from uuid import UUID

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp_types import CallToolRequestParams

    from invocations.mcp.call_params import McpToolCall
    from invocations.mcp.request_context import McpRequest
    from kernel.principal import Principal

log = logging.getLogger("toolhub.mcp")
UNREADABLE = "No call can be read from it."
LOOK_S = 1.0  # for progress
IDLE_LOOK_S = 10.0  # for an end that nobody told of: hundreds may wait, and each look takes a thread
IfGone = Callable[["McpRequest", "UUID"], None]  # what becomes of a call whose client has gone
_taking_back: set[asyncio.Future[None]] = set()  # the event loop alone would forget them


async def call_tool(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> HandlerResult:
    """The result; a task; or what a person is to be shown first."""
    arrival = get_mcp_request(context)
    tool = await find_called_tool(arrival, params.name)
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    # Closing the connection is how a request is taken back; before 2026-07-28 it was only what happens to connections.
    if_gone = cancel_abandoned_call if modern else leave_running
    ahead = None if arrival.caller is not None else BasisAhead(tool, read_user_id(params))

    def begin(*, shows_form: bool = True) -> BegunCall | ShownForm | HandlerResult:
        try:
            wish = read_tool_call(context, params, tool)
        except MCPError:
            note_rejected(Malformed(UNREADABLE), by=arrival.by)
            raise
        return begin_tool_call(
            replace(wish, shows_form=shows_form and wish.shows_form), by=arrival.by, ahead=ahead if shows_form else None
        )

    begun = await _begun(arrival, begin, if_gone=if_gone, ahead=ahead)
    if isinstance(begun, ShownForm):
        if not await show_form(arrival, begun):
            return begun.refusal
        begun = await _begun(arrival, partial(begin, shows_form=False), if_gone=if_gone)
    if isinstance(begun, ShownForm):  # it is not shown twice
        return begun.refusal
    if not isinstance(begun, BegunCall):
        return begun
    if arrival.topic is not None:
        arrival.topic.name_call(begun.invocation)
    try:
        return await _ended(arrival, begun, Progress(context), modern=modern)
    except asyncio.CancelledError:
        if not _is_ended_by_hub(context):
            if_gone(arrival, begun.invocation.pk)
        raise
    finally:
        begun.close()


def _is_ended_by_hub(context: ServerRequestContext[Any, Any]) -> bool:
    """Then nobody has taken the call back: it goes on."""
    topic = get_mcp_request(context).topic
    assert context.request is not None
    return (topic is not None and topic.is_ended) or is_refused(context.request.scope)


async def count_unreadable(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """What the SDK refuses before anybody decides on it is counted, as over REST."""
    try:
        return await call_next(ctx)
    except ValidationError:
        if ctx.method == "tools/call":
            await _note_unreadable(get_mcp_request(ctx))
        raise


async def _note_unreadable(arrival: McpRequest) -> None:
    await arrival.within(lambda: note_rejected(Malformed(UNREADABLE), by=arrival.by))


def begin_tool_call(
    wish: McpToolCall, *, by: Principal, ahead: BasisAhead | None = None
) -> BegunCall | ShownForm | HandlerResult:
    """In a thread: the call that was begun and is waited for, what is to be shown first, or what is answered at once. ``ahead``: as
    :func:`invocations.services.begin_call` takes it.
    """
    if wish.was_declined:
        declined = ConsentRequired("The user was shown where to agree and declined, so the call is not made.")
        note_rejected(declined, by=by)
        return build_call_result(ResponseEnvelope(error=declined), by=by, modern=wish.modern)
    try:
        begun = services.begin_call(wish.call, by=by, ahead=ahead)
    except CallRefused as refused:
        return _refused(wish, refused, by=by)
    except Exception as error:
        problem = translate_exception(error)
        note_rejected(problem, by=by)
        if isinstance(problem, UnknownTool):
            raise build_unknown_tool_error(wish.name) from error
        if problem.status >= 500:
            raise error_of(problem) from error
        return build_call_result(ResponseEnvelope(error=problem), by=by, modern=wish.modern)
    if wish.takes_task and (not wish.modern or _takes_long(begun.invocation)):
        begun.close()
        return build_task_handle(begun.invocation, modern=wish.modern)
    return begun


def _refused(wish: McpToolCall, refused: CallRefused, *, by: Principal) -> ShownForm | HandlerResult:
    if wish.takes_task and not wish.modern:
        return build_task_handle(refused.invocation, modern=False)
    problem = refused.problem
    answer = build_answer_envelope(refused.invocation, problem=problem, preflight=refused.preflight)
    refusal = build_call_result(answer, by=by, modern=wish.modern)
    if isinstance(problem, WAITABLE) and (wish.shows_url or wish.shows_form):
        version = refused.preflight.version if refused.preflight else None
        sentence = format_call_sentence(version.manifest, wish.call.arguments) if version else ""
        if wish.shows_url:
            return elicit_consent(problem, wish.call.tool, modern=wish.modern, sentence=sentence) or refusal
        shown = elicit_by_form(problem, wish.call.tool, modern=wish.modern, refusal=refusal, sentence=sentence)
        return shown or refusal
    return refusal


def _takes_long(invocation: Invocation) -> bool:
    if invocation.is_final or invocation.version_id is None:
        return False
    return invocation.state == State.HELD or compiled_version(invocation.version_id).manifest.is_async


async def _begun(
    arrival: McpRequest,
    begin: Callable[[], BegunCall | ShownForm | HandlerResult],
    *,
    if_gone: IfGone,
    ahead: BasisAhead | None = None,
) -> BegunCall | ShownForm | HandlerResult:
    """Read, decided on and written down, also when the client goes away meanwhile."""
    working = asyncio.ensure_future(arrival.within(begin, ahead=ahead))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:

        def give_up(done: asyncio.Future[BegunCall | ShownForm | HandlerResult]) -> None:
            if not done.cancelled() and done.exception() is None and isinstance(found := done.result(), BegunCall):
                found.close()
                if_gone(arrival, found.invocation.pk)

        working.add_done_callback(give_up)
        raise


def leave_running(arrival: McpRequest, invocation_id: UUID) -> None:
    """What was begun goes on without its caller."""


def cancel_abandoned_call(arrival: McpRequest, invocation_id: UUID) -> None:
    """Cancel a call, in a thread that nobody waits for."""

    def cancel() -> None:
        try:
            cancel_call(invocation_id=invocation_id, by=arrival.by)
        except Exception as error:  # noqa: BLE001  mostly it has ended meanwhile; nobody is there to be told
            log.info("A call that was taken back was not cancelled: %s", translate_exception(error).detail)

    task = asyncio.ensure_future(arrival.within(cancel))
    _taking_back.add(task)
    task.add_done_callback(_taking_back.discard)


async def cancel_mcp_request(arrival: McpRequest, id: Any) -> None:
    """What `notifications/cancelled` of a session asks for. The SDK without sessions would not know which request is meant."""
    if not arrival.session.id or not isinstance(id, str | int):
        return
    request_id = derive_request_id(arrival.session.id, id)

    def waiting() -> UUID | None:
        rows = Invocation.objects.visible_to(arrival.by).exclude(state__in=FINAL)
        return rows.filter(request_id=request_id).values_list("pk", flat=True).first()

    found = await arrival.within(waiting)
    if found is not None:
        cancel_abandoned_call(arrival, found)


class Progress:
    """What the client is told while it waits. Its numbers only grow, whatever the tool says."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self.wanted = bool(context.meta and context.meta.get("progress_token") is not None)
        self._session, self._told = context.session, -1.0

    async def tell(self, live: dict[str, Any] | None) -> None:
        said = (live or {}).get("progress") or {}
        fraction = said.get("fraction")
        if fraction is not None and fraction > self._told:
            self._told = fraction
            await self._session.report_progress(fraction, 1.0, said.get("message") or None)


async def _ended(arrival: McpRequest, begun: BegunCall, progress: Progress, *, modern: bool) -> CallToolResult:
    """The answer, however long it takes: the client decides how long it waits."""

    def look() -> CallToolResult | dict[str, Any] | None:
        answered = services.find_answer(begun, last=begun.waiter is None)
        if answered is not None:
            return build_call_result(
                build_answer_envelope(answered.invocation, sealed=answered.sealed), by=arrival.by, modern=modern
            )
        return read_live_output(FOR_WORK.get(pk=begun.invocation.pk)) if progress.wanted else None

    look_every_s = LOOK_S if progress.wanted else IDLE_LOOK_S
    if begun.waiter is not None:
        begun.waiter.look_anyway_s = look_every_s
    while not isinstance(found := await arrival.within(look), CallToolResult):
        await progress.tell(found)
        assert begun.waiter is not None
        await begun.waiter.wait_async(look_every_s)
    return found
