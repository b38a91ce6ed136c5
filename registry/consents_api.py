"""How does an agent ask for consent to use a tool?

Lives here because asking needs the tool: its major version and how long its manifest lets a consent last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from access.api import consent_json
from access.consents import request_consent
from access.models import Consent
from access.problems import ConsentNotNeeded
from registry.callability import check_callable, check_known
from registry.standing import load_standing
from toolhub.kernel.api import caller
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.pagination import page_of
from toolhub.kernel.serializers import StrictSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request


class ConsentRequestSerializer(StrictSerializer):
    tool = serializers.CharField(max_length=128)
    purpose = serializers.CharField(max_length=500, help_text="What for. The person who decides reads it.")


class ConsentListView(APIView):
    """The agent's own consents; asking for one."""

    required_scope = "consents:request"

    @extend_schema(
        operation_id="list_consents",
        parameters=[OpenApiParameter("after", str)],
        responses={200: OpenApiTypes.OBJECT},
    )
    def get(self, request: Request) -> Response:
        mine = Consent.objects.visible_to(caller(request)).filter(agent_id=caller(request).agent())
        page = page_of(mine, prefix="cns", after=request.query_params.get("after", ""))
        data = {"consents": [consent_json(consent) for consent in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(
        operation_id="request_consent", request=ConsentRequestSerializer, responses={201: OpenApiTypes.OBJECT}
    )
    def post(self, request: Request) -> Response:
        payload = ConsentRequestSerializer(data=request.data)
        payload.is_valid(raise_exception=True)
        by, name = caller(request), payload.validated_data["tool"]
        standing = load_standing(tenant_id=by.tenant_id, agent_id=by.agent(), tool=name, now=timezone.now())
        check_known(standing)
        manifest = check_callable(standing).manifest
        if not manifest.needs_consent:
            raise ConsentNotNeeded(f"{name} needs no consent; a grant is enough.")
        consent = request_consent(
            tool=name,
            versions=f"^{manifest.major}",
            purpose=payload.validated_data["purpose"],
            validity_s=manifest.consent_validity_s,
            by=caller(request),
        )
        return Response(
            ResponseEnvelope(data=consent_json(consent)).to_json(),
            status=201,
            headers={"Location": f"/api/v1/consents/{consent.wire_id}"},
        )
