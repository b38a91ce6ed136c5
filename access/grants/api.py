"""Grants over REST: given, revoked and requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from access.grants import requests
from access.grants import services as grants
from access.grants.conditions import MAX_CONDITIONS, OPS
from access.models import Grant, GrantRequest, RequestState
from access.models.grants import MAX_DEPTH
from kernel.database.connections import database_time
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    ObjectField,
    PageSerializer,
    StatedReasonSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import decode, encode
from kernel.problems import NotFound, SchemaInvalid
from unitools.expressions import MAX_LENGTH

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from access.models.grants import GrantQuerySet

EVERY_AGENT = "*"
STATES = ("active", "suspended", "expired", "revoked")


class ScopeSerializer(serializers.Serializer[Any]):
    resource = serializers.CharField(help_text="A resource and what is below it: soul:fs:/data.")
    action = serializers.CharField(help_text="The action, or * for any.")


class ConditionSerializer(serializers.Serializer[Any]):
    pointer = serializers.CharField(help_text="A JSON Pointer into the arguments; * is every element of a list.")
    op = serializers.ChoiceField(list(OPS))
    value = serializers.JSONField(required=False, allow_null=True)


class TermsSerializer(serializers.Serializer[Any]):
    """What a grant says, given or asked for."""

    agent = serializers.CharField(help_text="agt_…, or * for every agent of the tenant.")
    tools = serializers.CharField()
    capabilities = serializers.JSONField(allow_null=True, help_text="Bounds; null: as the manifest and policy say.")
    scopes = ScopeSerializer(many=True, allow_null=True, help_text="Bounds; null: all that the manifest asks for.")
    conditions = ConditionSerializer(many=True)


class GrantSerializer(TermsSerializer):
    id = serializers.CharField()
    state = serializers.ChoiceField(STATES, help_text="suspended: an agent that handed it on is out of use.")
    may_delegate = serializers.IntegerField(help_text="How often it may be handed on, one agent after the other.")
    delegated_from = serializers.CharField(allow_null=True, help_text="The grant that it was handed on from.")
    calls_limit = serializers.IntegerField(allow_null=True)
    window_s = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()
    origin = serializers.CharField(help_text="console, api, file, delegation, or the request (grq_…) that it answers.")
    given_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class RequestSerializer(TermsSerializer):
    id = serializers.CharField()
    state = serializers.ChoiceField(RequestState.choices)
    purpose = serializers.CharField()
    reason = serializers.CharField(allow_null=True, help_text="Of the decision.")
    grant = serializers.CharField(allow_null=True, help_text="The grant that was given.")
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)


GRANT, GRANTS = (
    build_envelope_serializer("GrantEnvelope", GrantSerializer()),
    build_page_serializer("GrantPage", "grants", GrantSerializer),
)
ASKED = build_envelope_serializer("GrantRequestEnvelope", RequestSerializer())
ALL_ASKED = build_page_serializer("GrantRequestPage", "requests", RequestSerializer)


def _time(moment: Any) -> str | None:
    return moment.isoformat() if moment else None


def _terms(of: Grant | GrantRequest) -> dict[str, Any]:
    return {
        "id": of.wire_id,
        "agent": encode("agt", of.agent_id) if of.agent_id else EVERY_AGENT,
        "tools": of.tools,
        "capabilities": of.capabilities,
        "scopes": of.scopes,
        "conditions": of.conditions,
        "state": of.state,
        "created_at": _time(of.created_at),
    }


def grant_json(grant: Grant) -> dict[str, Any]:
    return _terms(grant) | {
        "may_delegate": grant.may_delegate,
        "delegated_from": encode("grt", grant.delegated_from_id) if grant.delegated_from_id else None,
        "calls_limit": grant.calls_limit,
        "window_s": grant.window_s,
        "reason": grant.reason,
        "origin": grant.source,
        "given_by": grant.given_by,
        "expires_at": _time(grant.expires_at),
        "revoked_at": _time(grant.revoked_at),
    }


def request_json(asked: GrantRequest) -> dict[str, Any]:
    return _terms(asked) | {
        "purpose": asked.purpose,
        "reason": asked.decision_reason or None,
        "grant": encode("grt", asked.grant_id) if asked.grant_id else None,
        "decided_at": _time(asked.decided_at),
    }


@extend_schema_field({"type": "string", "format": "tool-expression", "minLength": 1, "maxLength": MAX_LENGTH})
class ExpressionField(serializers.CharField):
    """Which tools are meant; what is wrong with it is said by the service."""


@extend_schema_field({"$ref": "#/components/schemas/CapabilityBounds"})
class CapabilityBoundsField(serializers.JSONField):
    """What a call may reach at most; read by the service, as what follows."""


@extend_schema_field({"$ref": "#/components/schemas/GrantScope"})
class GrantScopeField(ObjectField):
    """A resource and an action."""


@extend_schema_field({"$ref": "#/components/schemas/GrantCondition"})
class GrantConditionField(ObjectField):
    """What must hold of the arguments."""


class BoundsSerializer(StrictSerializer):
    tools = ExpressionField(
        max_length=MAX_LENGTH, help_text="A tool id, a.b.*, *, tag:x, effect:Read …, with & | ~ ( )."
    )
    capabilities = CapabilityBoundsField(required=False, default=None, allow_null=True)
    scopes = serializers.ListField(
        child=GrantScopeField(),
        required=False,
        default=None,
        allow_null=True,
        max_length=grants.MAX_SCOPES,
        help_text="[{resource, action}]",
    )
    conditions = serializers.ListField(
        child=GrantConditionField(),
        required=False,
        default=list,
        max_length=MAX_CONDITIONS,
        help_text="[{pointer, op, value}] on the arguments.",
    )


class NewGrantSerializer(BoundsSerializer):
    agent = serializers.CharField(max_length=40, help_text="The agent's id, agt_…, or * for every agent.")
    reason = serializers.CharField(max_length=500)
    calls_limit = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, max_value=2_000_000_000
    )
    window_s = serializers.IntegerField(required=False, default=86400, min_value=1, max_value=31_536_000)
    expires_at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    may_delegate = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=MAX_DEPTH, help_text="How often agents may hand it on."
    )


def _require_text(name: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"pattern": r"\S"}}}


class NewRequestSerializer(BoundsSerializer):
    never = ({"not": {"anyOf": [_require_text("purpose"), _require_text("reason")]}},)
    agent = serializers.CharField(max_length=40, required=False, help_text="The agent's own id; it may be left out.")
    purpose = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)
    reason = serializers.CharField(
        max_length=500, required=False, default="", help_text="Same as purpose, as `details.smallest_grant` says it."
    )


class ExtensionSerializer(StatedReasonSerializer):
    expires_at = serializers.DateTimeField(allow_null=True, help_text="null: until it is revoked.")


def _agent_id(text: str) -> UUID:
    try:
        return decode("agt", text)
    except ValueError as error:
        raise NotFound("There is no agent with this id.") from error


def filter_grants(rows: GrantQuerySet, state: str) -> GrantQuerySet:
    """The grants in a state of ``STATES``; all for an empty one."""
    now = database_time()
    match state:
        case "":
            return rows
        case "active":
            return rows.in_force(now)
        case "revoked":
            return rows.that_are(revoked_at__isnull=False)
        case "expired":
            return rows.that_are(expires_at__lte=now).exclude(
                pk__in=rows.that_are(revoked_at__isnull=False).values("pk")
            )
        case "suspended":
            gone = rows.that_are(revoked_at__isnull=False) | rows.that_are(expires_at__lte=now)
            return rows.handed_on_from(agent__disabled_at__isnull=False).exclude(pk__in=gone.values("pk"))
    raise SchemaInvalid(f"There is no state {state[:40]}. The states are {', '.join(STATES)}.")


class GrantQuerySerializer(PageSerializer):
    state = serializers.ChoiceField(STATES, required=False)
    agent = serializers.CharField(required=False, help_text="agt_…, or * for the grants of every agent.")


class GrantListView(Endpoint):
    """The tenant's grants; giving one."""

    required_scope = "grants:manage"
    query = GrantQuerySerializer
    cursor = "grt"

    @extend_schema(
        operation_id="list_grants",
        responses={200: GRANTS},
    )
    def get(self, request: Request) -> Response:
        asked = self.asked
        rows = filter_grants(Grant.objects.visible_to(get_caller(request)), asked.get("state", ""))
        if asked.get("agent"):
            everybodys = asked["agent"] == EVERY_AGENT
            rows = rows.filter(agent=None) if everybodys else rows.filter(agent_id=_agent_id(asked["agent"]))
        page = self.page_of(rows.with_chain().prefetch_related("budgets"))
        data = {"grants": [grant_json(grant) for grant in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="give_grant", request=NewGrantSerializer, responses={201: GRANT})
    def post(self, request: Request) -> Response:
        data = read_body(request, NewGrantSerializer)
        agent = data.pop("agent")
        agent_id = None if agent == EVERY_AGENT else _agent_id(agent)
        grant = grants.give_grant(agent_id=agent_id, by=get_caller(request), source="api", **data)
        return Response(
            ResponseEnvelope(data=grant_json(grant)).to_json(),
            status=201,
            headers={"Location": f"/api/v1/grants/{grant.wire_id}"},
        )


class GrantView(Endpoint):
    """One grant."""

    required_scope = "grants:manage"

    @extend_schema(operation_id="read_grant", responses={200: GRANT})
    def get(self, request: Request, grant_id: UUID) -> Response:
        grant = Grant.objects.visible_to(get_caller(request)).with_chain().get(pk=grant_id)
        return Response(ResponseEnvelope(data=grant_json(grant)).to_json())


GRANT_ACTIONS = ActionTable(__name__, "grants:manage", GRANT, grant_json)
GrantExtendView = GRANT_ACTIONS.build_view(
    "extend_grant", grants.extend_grant, "Let a grant hold longer.", body=ExtensionSerializer
)


GrantRevokeView = GRANT_ACTIONS.build_view("revoke_grant", grants.revoke_grant, "Take a grant back.")


class GrantRequestListView(Endpoint):
    """The grants that the agent has asked for; asking for one. The body may be `details.smallest_grant` of a refusal."""

    required_scope = "grants:request"
    query = PageSerializer
    cursor = "grq"

    @extend_schema(operation_id="list_grant_requests", responses={200: ALL_ASKED})
    def get(self, request: Request) -> Response:
        rows = GrantRequest.objects.visible_to(get_caller(request))
        page = self.page_of(rows)
        data = {"requests": [request_json(asked) for asked in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="request_grant", request=NewRequestSerializer, responses={201: ASKED})
    def post(self, request: Request) -> Response:
        data, by = read_body(request, NewRequestSerializer), get_caller(request)
        agent_id = _agent_id(data.pop("agent")) if "agent" in data else by.agent()
        purpose = data.pop("purpose") or data.pop("reason")
        data.pop("reason", None)
        asked = requests.request_grant(agent_id=agent_id, purpose=purpose, by=by, **data)
        return Response(
            ResponseEnvelope(data=request_json(asked)).to_json(),
            status=201,
            headers={"Location": f"/api/v1/grants/requests/{asked.wire_id}"},
        )


class GrantRequestView(Endpoint):
    """What became of one of the agent's own requests."""

    required_scope = "grants:request"

    @extend_schema(operation_id="read_grant_request", responses={200: ASKED})
    def get(self, request: Request, request_id: UUID) -> Response:
        asked = GrantRequest.objects.visible_to(get_caller(request)).get(pk=request_id)
        return Response(ResponseEnvelope(data=request_json(asked)).to_json())
