"""Connection rules over REST: what a tenant says of how long its programs stay connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import ApiKeyAuthentication
from access.authentication.sessions import PersonAuthentication
from access.connections.connection_rules import ANYWHERE, find_bounds, set_connection_rule
from access.models import ConnectionRule
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import StrictSerializer, build_envelope_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from access.connections.connection_rules import ConnectionBounds

WORDS = {
    "days": "A connection ends after so many.",
    "idle_days": "One for which no newer token was fetched for so long ends.",
    "token_minutes": "So long an access token is good.",
    "sign_in_minutes": "Whoever lets a program use tools that change things has signed in so lately.",
}
HUBS, AT_ANY_TIME = "Null: as the hub says.", "Null: at any time."


def _taken(name: str) -> serializers.IntegerField:
    least, most = ANYWHERE[name]
    return serializers.IntegerField(
        min_value=least, max_value=most, required=False, default=None, allow_null=True, help_text=WORDS[name]
    )


def _answered(name: str, null: str = "") -> serializers.IntegerField:
    return serializers.IntegerField(allow_null=bool(null), help_text=f"{WORDS[name]} {null}".strip())


class SetConnectionRuleSerializer(StrictSerializer):
    """A field that is null or left out leaves it to the hub."""

    days = _taken("days")
    idle_days = _taken("idle_days")
    token_minutes = _taken("token_minutes")
    sign_in_minutes = _taken("sign_in_minutes")


class ConnectionBoundsSerializer(serializers.Serializer[Any]):
    """Of what the hub and the tenant say the shorter."""

    days = _answered("days")
    idle_days = _answered("idle_days")
    token_minutes = _answered("token_minutes")
    sign_in_minutes = _answered("sign_in_minutes", AT_ANY_TIME)


class ConnectionRuleSerializer(serializers.Serializer[Any]):
    days = _answered("days", HUBS)
    idle_days = _answered("idle_days", HUBS)
    token_minutes = _answered("token_minutes", HUBS)
    sign_in_minutes = _answered("sign_in_minutes", AT_ANY_TIME)
    in_force = ConnectionBoundsSerializer()
    set_by = serializers.CharField(allow_null=True, help_text="Null: nobody has said anything.")
    set_at = serializers.DateTimeField(allow_null=True)


RULE = build_envelope_serializer("ConnectionRuleEnvelope", ConnectionRuleSerializer())


def bounds_json(bounds: ConnectionBounds) -> dict[str, int | None]:
    return {
        "days": bounds.days,
        "idle_days": bounds.idle.days,
        "token_minutes": bounds.token_s // 60,
        "sign_in_minutes": None if bounds.sign_in is None else int(bounds.sign_in.total_seconds()) // 60,
    }


def rule_json(tenant_id: UUID) -> dict[str, Any]:
    row = ConnectionRule.objects.filter(tenant_id=tenant_id).first()
    in_force = bounds_json(find_bounds(tenant_id))
    said = {name: getattr(row, name, None) for name in in_force}
    return said | {
        "in_force": in_force,
        "set_by": row.set_by if row else None,
        "set_at": row.set_at.isoformat() if row else None,
    }


class ConnectionRuleView(Endpoint):
    """How long programs stay connected in this tenant; setting it, which those that are connected follow with their next token.

    For keys with the scope, and for people with the permission.
    """

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]
    required_scope = "agents:manage"
    required_permission = "agents.manage"
    conditional = True

    @extend_schema(operation_id="read_connection_rule", responses={200: RULE})
    def get(self, request: Request) -> Response:
        return Response(ResponseEnvelope(data=rule_json(get_caller(request).tenant_id)).to_json())

    @extend_schema(operation_id="set_connection_rule", request=SetConnectionRuleSerializer, responses={200: RULE})
    def put(self, request: Request) -> Response:
        by = get_caller(request)
        set_connection_rule(by=by, **read_body(request, SetConnectionRuleSerializer))
        return Response(ResponseEnvelope(data=rule_json(by.tenant_id)).to_json())
