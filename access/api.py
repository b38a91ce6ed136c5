"""How do agents ask for consent, and how are grants given over REST?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from access import services
from access.models import Consent, Grant
from toolhub.kernel.api import caller
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.ids import decode, encode
from toolhub.kernel.pagination import page_of
from toolhub.kernel.problems import NotFound
from toolhub.kernel.serializers import StrictSerializer

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


def consent_json(consent: Consent) -> dict[str, Any]:
    return {
        "id": consent.wire_id,
        "tool": consent.tool,
        "versions": consent.versions,
        "state": consent.shown_state,
        "purpose": consent.purpose,
        "expires_at": consent.expires_at.isoformat(),
        "decided_at": consent.decided_at.isoformat() if consent.decided_at else None,
        "reason": consent.decision_reason or None,
    }


def grant_json(grant: Grant) -> dict[str, Any]:
    return {
        "id": grant.wire_id,
        "agent": encode("agt", grant.agent_id),
        "tools": grant.tools,
        "capabilities": grant.capabilities,
        "calls_limit": grant.calls_limit,
        "window_s": grant.window_s,
        "expires_at": grant.expires_at.isoformat() if grant.expires_at else None,
        "state": grant.state,
        "reason": grant.reason,
    }


class ConsentView(APIView):
    """The state of one of the agent's own requests."""

    required_scope = "consents:request"

    @extend_schema(operation_id="read_consent", responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, consent_id: UUID) -> Response:
        mine = Consent.objects.visible_to(caller(request)).filter(agent_id=caller(request).agent())
        return Response(ResponseEnvelope(data=consent_json(mine.get(pk=consent_id))).to_json())


class GrantRequestSerializer(StrictSerializer):
    agent = serializers.CharField(max_length=40, help_text="The agent's id, agt_….")
    tools = serializers.CharField(max_length=128, help_text="A tool id, group.package.*, group.* or *.")
    reason = serializers.CharField(max_length=500)
    capabilities = serializers.JSONField(required=False, default=None)
    calls_limit = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, max_value=2_000_000_000
    )
    window_s = serializers.IntegerField(required=False, default=86400, min_value=1, max_value=31_536_000)
    expires_at = serializers.DateTimeField(required=False, default=None, allow_null=True)


class GrantListView(APIView):
    """The tenant's grants; giving one."""

    required_scope = "grants:manage"

    @extend_schema(
        operation_id="list_grants",
        parameters=[OpenApiParameter("after", str)],
        responses={200: OpenApiTypes.OBJECT},
    )
    def get(self, request: Request) -> Response:
        page = page_of(
            Grant.objects.visible_to(caller(request)), prefix="grt", after=request.query_params.get("after", "")
        )
        data = {"grants": [grant_json(grant) for grant in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="give_grant", request=GrantRequestSerializer, responses={201: OpenApiTypes.OBJECT})
    def post(self, request: Request) -> Response:
        payload = GrantRequestSerializer(data=request.data)
        payload.is_valid(raise_exception=True)
        data = dict(payload.validated_data)
        try:
            agent_id = decode("agt", data.pop("agent"))
        except ValueError as error:
            raise NotFound("There is no agent with this id.") from error
        grant = services.give_grant(agent_id=agent_id, by=caller(request), **data)
        return Response(ResponseEnvelope(data=grant_json(grant)).to_json(), status=201)


class RevokeSerializer(StrictSerializer):
    reason = serializers.CharField(max_length=500)


class GrantRevokeView(APIView):
    """Take a grant back."""

    required_scope = "grants:manage"

    @extend_schema(operation_id="revoke_grant", request=RevokeSerializer, responses={200: OpenApiTypes.OBJECT})
    def post(self, request: Request, grant_id: UUID) -> Response:
        payload = RevokeSerializer(data=request.data)
        payload.is_valid(raise_exception=True)
        grant = services.revoke_grant(grant_id=grant_id, reason=payload.validated_data["reason"], by=caller(request))
        return Response(ResponseEnvelope(data=grant_json(grant)).to_json())
