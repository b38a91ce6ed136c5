"""Call search over REST: the calls that an agent has made, or all of the tenant for who may see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import ApiKeyAuthentication
from access.authentication.sessions import PersonAuthentication
from evidence.problems import SearchTooBroad
from evidence.search.api import SearchField
from evidence.search.language import MAX_CHARACTERS
from invocations.answer.answer_serializers import CALL_STATUS
from invocations.answer.envelope import get_call_status
from invocations.call_outcomes import build_state_filter
from invocations.call_search.language import parse_calls
from invocations.call_search.selectors import LIMIT_MS, find_calls
from invocations.models import Invocation, Origin, State
from kernel.database.statement_limits import StatementTooLong, limit_statements
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import PageSerializer, build_page_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import encode
from kernel.observability.telemetry import read_trace_id

if TYPE_CHECKING:
    from rest_framework.request import Request

    from evidence.search.language import Query
    from kernel.http.pagination import Page
    from kernel.principal import Principal


class ListedCallSerializer(serializers.Serializer[Any]):
    """A call, without what it was given and what it answered."""

    call_id = serializers.CharField()
    status = serializers.ChoiceField(CALL_STATUS)
    state = serializers.ChoiceField(State.choices)
    agent = serializers.CharField()
    tool = serializers.CharField()
    version = serializers.CharField(allow_null=True)
    origin = serializers.ChoiceField(Origin.choices)
    dry_run = serializers.BooleanField()
    request_id = serializers.CharField()
    reason = serializers.CharField(allow_null=True, help_text="Of the problem, where there is one.")
    trace_id = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    url = serializers.CharField(help_text="Where its answer is, for the agent that made it.")


CALLS = build_page_serializer("InvocationPage", "invocations", ListedCallSerializer)


def listed_call_json(row: Invocation) -> dict[str, Any]:
    return {
        "call_id": row.wire_id,
        "status": get_call_status(row),
        "state": row.state,
        "agent": encode("agt", row.agent_id),
        "tool": row.tool,
        "version": row.version.version if row.version else None,
        "origin": row.origin,
        "dry_run": row.dry_run,
        "request_id": row.request_id,
        "reason": row.reason or None,
        "trace_id": read_trace_id(row.trace) or None,
        "created_at": row.created_at.isoformat(),
        "finished_at": row.finished_at.isoformat() if row.finished_at else None,
        "url": f"/api/v1/invocations/{row.wire_id}",
    }


class CallQuerySerializer(PageSerializer):
    q = SearchField(
        required=False,
        max_length=MAX_CHARACTERS,
        help_text="`tool:shop.* outcome:failed after:7d`, as facts are searched; a word alone is also a `request_id`.",
    )
    state = serializers.ChoiceField(State.choices, required=False)


class InvocationListView(Endpoint):
    """The agent's calls, the newest first; with the scope `evidence:read`, and for people, all of the tenant."""

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]
    required_scope = "invocations:read"
    required_permission = "invocations.view"
    query = CallQuerySerializer
    cursor = "inv"

    @extend_schema(operation_id="list_invocations", responses={200: CALLS})
    def get(self, request: Request) -> Response:
        query, by = parse_calls(self.asked.get("q", "").strip()), get_caller(request)
        try:
            with limit_statements(LIMIT_MS):
                page = self._fetch(query, by)
        except StatementTooLong as error:
            raise SearchTooBroad from error
        data = {"invocations": [listed_call_json(row) for row in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    def _fetch(self, query: Query, by: Principal) -> Page[Invocation]:
        rows = find_calls(query, by=by)
        if state := self.asked.get("state"):
            rows = rows.filter(build_state_filter(state))
        return self.page_of(rows.select_related("version").only(*SHOWN))


SHOWN = (
    *("state", "agent_id", "tool", "version__version", "origin", "dry_run", "request_id", "reason", "trace"),
    *("created_at", "finished_at"),
)
