"""Search over REST: how facts are searched.

An agent finds what it did itself and the evidence of its own calls; with the scope `evidence:read`, as people with `evidence.view`,
everything of the tenant.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import ApiKeyAuthentication
from access.authentication.sessions import PersonAuthentication
from evidence.archives.leaves import load_leaves_at_hand
from evidence.kinds import PAIR, Kind
from evidence.problems import SearchTooBroad
from evidence.search.engine import LIMIT_MS, find_facts
from evidence.search.language import MAX_CHARACTERS, parse
from evidence.search.name_resolution import names_in
from evidence.search.tags import TagQuery, exact_span
from kernel.database.statement_limits import StatementTooLong, limit_statements
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import IdField, PageSerializer, build_envelope_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import encode
from kernel.principal import ActorKind

if TYPE_CHECKING:
    from rest_framework.request import Request

    from evidence.models import Fact
    from evidence.search.engine import FactPage
    from evidence.search.language import Query
    from kernel.principal import Principal

OWN, ALL, SEE = "invocations:read", "evidence:read", "evidence.view"


class FactSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.CharField()
    occurred_at = serializers.DateTimeField()
    subject = serializers.CharField()
    actor = serializers.CharField()
    call = serializers.CharField(allow_null=True)
    tool = serializers.CharField(allow_blank=True)
    outcome = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    leaf = serializers.CharField(
        allow_null=True,
        help_text="The exact text that is hashed; null where it is in an archive that does not give it.",
    )
    leaf_problem = serializers.CharField(
        allow_blank=True,
        help_text="The reason of the problem for which there is no leaf: `EVIDENCE.ARCHIVE_UNAVAILABLE`, …",
    )
    leaf_hash = serializers.CharField(help_text="SHA-256 over a zero byte and the leaf.")


class FactPageSerializer(serializers.Serializer[Any]):
    facts = FactSerializer(many=True)
    next = serializers.CharField(allow_null=True, help_text="Cursor `after` of the older facts.")
    previous = serializers.CharField(allow_null=True, help_text="Cursor `before` of the newer facts.")
    indexed_until = serializers.DateTimeField(
        allow_null=True,
        help_text="Given when the index is so far behind that not all of what came later was looked through.",
    )


def fact_json(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.wire_id,
        "kind": fact.kind,
        "occurred_at": fact.occurred_at.isoformat(),
        "subject": fact.subject,
        "actor": fact.actor_id,
        "call": encode("inv", fact.invocation_id) if fact.invocation_id else None,
        "tool": fact.tool,
        "outcome": fact.outcome,
        "reason": fact.reason,
        "leaf": None if fact.leaf_problem else fact.text,
        "leaf_problem": fact.leaf_problem.reason if fact.leaf_problem else "",
        "leaf_hash": bytes(fact.leaf_hash).hex(),
    }


def agent_scope(by: Principal) -> TagQuery | None:
    """What an agent may see: what it did, and Begin, segments and End of its calls. Who looked into them is not for it."""
    if by.kind is not ActorKind.AGENT or by.may(ALL):
        return None
    mine = [exact_span("agent", by.id)]
    told = [exact_span("kind", str(kind)) for kind in (*PAIR, Kind.INVOCATION_SEGMENT)]
    return TagQuery(wanted=[mine, [exact_span("actor", by.id), *told]])


@extend_schema_field({"type": "string", "format": "search-query", "minLength": 1, "maxLength": MAX_CHARACTERS})
class SearchField(serializers.CharField):
    """A search; what in it is not understood is said with its place."""


class FactQuerySerializer(PageSerializer):
    q = SearchField(
        required=False,
        max_length=MAX_CHARACTERS,
        help_text="`tool:shop.* -code:QUOTA.* after:7d`; without it, all facts. A call is `call:inv_…`.",
    )
    after = IdField("fct", required=False, help_text="The cursor `next` of the page before: older facts.")
    before = IdField("fct", required=False, help_text="The cursor `previous` of a page: newer facts.")


class FactListView(Endpoint):
    """Search facts with the qualifiers of the console, newest first."""

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]
    required_scope = OWN
    required_permission = SEE
    query = FactQuerySerializer

    @extend_schema(
        operation_id="search_facts",
        responses={200: build_envelope_serializer("FactsEnvelope", FactPageSerializer())},
    )
    def get(self, request: Request) -> Response:
        try:
            with limit_statements(LIMIT_MS):
                found = self._find(parse(self.asked.get("q", "").strip()), get_caller(request))
        except StatementTooLong as error:
            raise SearchTooBroad from error
        load_leaves_at_hand(found.rows)
        data = {
            "facts": [fact_json(fact) for fact in found.rows],
            "next": found.older or None,
            "previous": found.newer or None,
            "indexed_until": found.behind.isoformat() if found.behind else None,
        }
        return Response(ResponseEnvelope(data=data).to_json())

    def _find(self, query: Query, by: Principal) -> FactPage:
        return find_facts(
            query,
            tenant_id=by.tenant_id,
            names=names_in(by.tenant_id),
            zone=UTC,
            scope=agent_scope(by),
            after=self.asked.get("after", ""),
            before=self.asked.get("before", ""),
            size=self.asked["limit"],
        )
