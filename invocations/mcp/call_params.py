"""Call params: what a `tools/call` asks for.

The SPEC-1 envelope around the arguments comes from `_meta`, under the key `toolhub/envelope`, with the names that REST has; all
of it may be left out. What is not said is made up from what the client says of itself.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from mcp import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from invocations.calls import CallRequest
from invocations.mcp.consent_elicitation import CONSENT, is_declined
from invocations.mcp.errors import error_json
from invocations.mcp.meta_keys import ENVELOPE
from invocations.mcp.request_context import (
    get_mcp_request,
    read_client,
    read_client_capabilities,
    supports_form_elicitation,
    supports_tasks,
    supports_url_elicitation,
)
from invocations.models import Origin
from invocations.serializers import SCOPE, EnvelopeFields
from kernel.http.base_serializers import validate_data
from kernel.http.exception_handlers import translate_exception
from kernel.ids import new_id
from registry.discovery.tool_specs import find_tool_id
from unitools.dialects.tool_names import restore_tool_id

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, RequestId

    from invocations.mcp.request_context import McpRequest

MAX_NAME = 128


@dataclass(frozen=True, slots=True)
class McpToolCall:
    """A call, and what its client can do with an answer that is not there yet."""

    call: CallRequest
    name: str  # of the tool, as the client said it
    modern: bool  # 2026-07-28
    takes_task: bool  # a handle in place of an answer; before 2026-07-28: wants nothing else
    shows_url: bool  # to its user, where somebody can agree to the call
    shows_form: bool  # no address, but a form, whose words may hold one
    was_declined: bool = False  # by its user, who was shown the one or the other


def derive_request_id(session: str, id: RequestId) -> str:
    """What a call is found again by when the client takes its request back: in its session, by the id that the client gave it."""
    return f"mcp-{session}-{hashlib.sha256(json.dumps(id).encode()).hexdigest()[:16]}"


def build_unknown_tool_error(name: str) -> MCPError:
    return MCPError(
        INVALID_PARAMS,
        f"Unknown tool: {name[:MAX_NAME]}. If it was in your list, it was removed or renamed since: list the tools again "
        "(tools/list) and use one that is there.",
    )


async def find_called_tool(arrival: McpRequest, name: str) -> str:
    """The id of the tool. Only a name that does not tell it is looked up."""
    if id := restore_tool_id(name):
        return id
    return await arrival.within(lambda: find_tool_id(name, by=arrival.by))


def read_user_id(params: CallToolRequestParams) -> str:
    """For whom the call says that it is made, whatever else it says; empty where it says nothing of the kind."""
    given = (params.meta or {}).get(ENVELOPE)
    said = given.get("user_id") if isinstance(given, dict) else None
    return said if isinstance(said, str) else ""


def read_tool_call(context: ServerRequestContext[Any, Any], params: CallToolRequestParams, tool: str) -> McpToolCall:
    """``tool``: the id of the one that is called. Raises an MCP error for an envelope that is not one: that is the client's mistake,
    not the model's."""
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        capabilities = read_client_capabilities(context)
        takes_task = supports_tasks(capabilities)
        shows = not params.input_responses  # to a user who has not been there already
        return McpToolCall(
            _call(context, params, tool, hold=takes_task),
            params.name,
            modern=True,
            takes_task=takes_task,
            shows_url=shows and supports_url_elicitation(capabilities),
            shows_form=shows and supports_form_elicitation(capabilities),
            was_declined=is_declined((params.input_responses or {}).get(CONSENT)),
        )
    session, takes_task = get_mcp_request(context).session, params.task is not None
    return McpToolCall(
        _call(context, params, tool, hold=takes_task),
        params.name,
        modern=False,
        takes_task=takes_task,
        shows_url=session.asks_by_url,
        shows_form=session.asks_by_form,
    )


def _call(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams, tool: str, *, hold: bool
) -> CallRequest:
    arrival, (app, version) = get_mcp_request(context), read_client(context)
    session, id = arrival.session.id, context.request_id
    said: dict[str, Any] = {
        "request_id": derive_request_id(session, id) if session and id is not None else f"mcp-{new_id()}",
        "actor": {"type": "agent", "id": arrival.by.id},
        "session_id": session,
        "on_consent": "hold" if hold else "ask",
        "purpose": f"{app or 'An MCP client'} called {tool[:MAX_NAME]}.",
    }
    if app:
        said["client"] = {"app": app, "version": version}
    given = (params.meta or {}).get(ENVELOPE, {})
    if not isinstance(given, dict):
        raise MCPError(INVALID_PARAMS, f"_meta[{ENVELOPE!r}] must be an object.")
    try:
        envelope = validate_data(EnvelopeFields, said | given).to_envelope()
    except Exception as error:
        problem = translate_exception(error)
        raise MCPError(INVALID_PARAMS, f"_meta[{ENVELOPE!r}]: {problem.detail}", data=error_json(problem)) from error
    return CallRequest(
        tool=tool,
        arguments=params.arguments or {},
        envelope=envelope,
        origin=Origin.MCP,
        proposal=envelope.proposed_by.get("call_id", ""),
        scope=SCOPE,
        wait_s=settings.TOOLHUB_SYNC_WAIT_S,
    )
