"""Delegations over REST: an agent delegates its grants to other agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.delegations import services as delegations
from access.grants.api import BoundsSerializer, ExpressionField, GrantSerializer, grant_json
from access.grants.attenuation import RequestedTerms
from access.models.grants import MAX_DEPTH
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import ObjectField, PageSerializer, build_envelope_serializer, build_page_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import decode
from kernel.problems import NotFound

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from access.models import Grant

TERMS = ("tools", "capabilities", "scopes", "conditions")


class ChainActorSerializer(serializers.Serializer[Any]):
    agent = serializers.CharField()
    grant = serializers.CharField()


class DelegationSerializer(GrantSerializer):
    actors = ChainActorSerializer(many=True, help_text="Through whose hands it came, the first of them first.")


DELEGATION = build_envelope_serializer("DelegationEnvelope", DelegationSerializer())
DELEGATIONS = build_page_serializer("DelegationPage", "delegations", DelegationSerializer)


class NewDelegationSerializer(BoundsSerializer):
    grant = serializers.CharField(max_length=40, help_text="A grant of the agent itself, grt_….")
    to_agent = serializers.CharField(max_length=40, help_text="The agent that gets it, agt_….")
    tools = ExpressionField(
        max_length=500, required=False, default=None, allow_null=True, help_text="null: as the grant says."
    )
    conditions = serializers.ListField(
        child=ObjectField(), required=False, default=list, help_text="On top of those of the grant."
    )
    expires_at = serializers.DateTimeField(help_text="No later than the grant ends.")
    depth = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_DEPTH,
        help_text="How often it may be handed on from there.",
    )
    purpose = serializers.CharField(max_length=500)
    calls_limit = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, max_value=2_000_000_000
    )
    window_s = serializers.IntegerField(required=False, default=86400, min_value=1, max_value=31_536_000)


def delegation_json(grant: Grant) -> dict[str, Any]:
    return grant_json(grant) | {"actors": delegations.list_chain_actors(grant)}


def _id(prefix: str, text: str, what: str) -> UUID:
    try:
        return decode(prefix, text)
    except ValueError as error:
        raise NotFound(f"There is no {what} with this id.") from error


class DelegationListView(Endpoint):
    """What the agent has handed on and was handed; handing a grant on."""

    required_scope = {"GET": "grants:request", "POST": "delegations:create"}
    query = PageSerializer
    cursor = "grt"

    @extend_schema(operation_id="list_delegations", responses={200: DELEGATIONS})
    def get(self, request: Request) -> Response:
        rows = delegations.visible_delegations(get_caller(request)).with_chain().prefetch_related("budgets")
        page = self.page_of(rows)
        data = {"delegations": [delegation_json(grant) for grant in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="hand_on_grant", request=NewDelegationSerializer, responses={201: DELEGATION})
    def post(self, request: Request) -> Response:
        data = read_body(request, NewDelegationSerializer)
        grant = delegations.delegate_grant(
            grant_id=_id("grt", data.pop("grant"), "grant"),
            to_agent_id=_id("agt", data.pop("to_agent"), "agent"),
            asked=RequestedTerms(**{name: data.pop(name) for name in TERMS}),
            by=get_caller(request),
            **data,
        )
        return Response(
            ResponseEnvelope(data=delegation_json(grant)).to_json(),
            status=201,
            headers={"Location": f"/api/v1/delegations/{grant.wire_id}"},
        )


class DelegationView(Endpoint):
    """One grant that was handed on."""

    required_scope = {"GET": "grants:request", "DELETE": "delegations:create"}

    @extend_schema(operation_id="read_delegation", responses={200: DELEGATION})
    def get(self, request: Request, grant_id: UUID) -> Response:
        grant = delegations.visible_delegations(get_caller(request)).with_chain().get(pk=grant_id)
        return Response(ResponseEnvelope(data=delegation_json(grant)).to_json())

    @extend_schema(operation_id="take_back_delegation", responses={200: DELEGATION})
    def delete(self, request: Request, grant_id: UUID) -> Response:
        grant = delegations.revoke_delegation(grant_id=grant_id, by=get_caller(request))
        return Response(ResponseEnvelope(data=delegation_json(grant)).to_json())
