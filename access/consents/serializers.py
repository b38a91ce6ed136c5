"""How does an agent read over REST what was decided on its requests for consent?

Asking for a consent needs the tool, so it lives with the registry: ``access.consents.api``. Grants: ``access.grants.api``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.consents.services import console_url
from access.models import Consent, ConsentMode, ConsentState
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import build_envelope_serializer, build_page_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import encode

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class ConsentSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    tool = serializers.CharField()
    versions = serializers.CharField(help_text="The range of versions that it is for.")
    mode = serializers.ChoiceField(ConsentMode.choices)
    state = serializers.ChoiceField(ConsentState.choices)
    purpose = serializers.CharField()
    data_classes = serializers.ListField(child=serializers.CharField())
    call = serializers.CharField(allow_null=True, help_text="The call that asked.")
    validity_s = serializers.IntegerField(help_text="How long it holds once it is approved; a standing one has no end.")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Of the request, then of the consent.")
    decided_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(allow_null=True, help_text="Of the decision.")
    url = serializers.CharField(help_text="Where a person decides.")


CONSENT, CONSENTS = (
    build_envelope_serializer("ConsentEnvelope", ConsentSerializer()),
    build_page_serializer("ConsentPage", "consents", ConsentSerializer),
)


def consent_json(consent: Consent) -> dict[str, Any]:
    return {
        "id": consent.wire_id,
        "tool": consent.tool,
        "versions": consent.versions,
        "mode": consent.mode,
        "state": consent.shown_state,
        "purpose": consent.purpose,
        "data_classes": consent.data_classes,
        "call": encode("inv", consent.invocation_id) if consent.invocation_id else None,
        "validity_s": consent.validity_s,
        "expires_at": consent.expires_at.isoformat() if consent.expires_at else None,
        "decided_at": consent.decided_at.isoformat() if consent.decided_at else None,
        "reason": consent.decision_reason or None,
        "url": console_url(consent),
    }


class ConsentView(Endpoint):
    """The state of one of the agent's own requests."""

    required_scope = "consents:request"

    @extend_schema(operation_id="read_consent", responses={200: CONSENT})
    def get(self, request: Request, consent_id: UUID) -> Response:
        mine = Consent.objects.visible_to(get_caller(request)).filter(agent_id=get_caller(request).agent())
        return Response(ResponseEnvelope(data=consent_json(mine.get(pk=consent_id))).to_json())
