"""Consents over REST: how an agent asks for one, and reads what was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.consents.services import console_url, request_consent, version_range
from access.models import Consent, ConsentMode, ConsentState
from evidence.services import compute_user_fingerprint
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import encode
from kernel.problems import SchemaInvalid
from registry.decision_context import load_decision_context
from registry.tools.callability import check_callable, check_known
from registry.widest_consents import widest_consent

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
    validity_s = serializers.IntegerField(
        help_text="How long the consent is valid once approved; a standing one has no end."
    )
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


class ConsentRequestSerializer(StrictSerializer):
    tool = serializers.CharField(max_length=128)
    purpose = serializers.CharField(max_length=500, help_text="What for. The person who decides reads it.")
    mode = serializers.ChoiceField(
        choices=ConsentMode.choices,
        required=False,
        default=ConsentMode.PERIOD,
        help_text="For a time, or standing: until it is revoked. One for a single call is asked for with the call.",
    )
    validity_s = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=60, help_text="At most what the manifest lets it hold."
    )
    user_id = serializers.CharField(
        max_length=128, required=False, default="", allow_blank=True, help_text="Only for calls on behalf of this user."
    )


def choose_validity(asked: int | None, *, longest: int) -> int:
    """What was asked for; as long as may be, where nothing was."""
    if asked is not None and asked > longest:
        raise SchemaInvalid.at(
            "/validity_s", f"A consent for this tool holds for {longest:,} seconds at most. Ask for that or less."
        )
    return asked or longest


class ConsentQuerySerializer(PageSerializer):
    state = serializers.ChoiceField(ConsentState.values, required=False)
    tool = serializers.CharField(required=False, help_text="The id of a tool.")


class ConsentListView(Endpoint):
    """The agent's own consents; asking for one."""

    required_scope = "consents:request"
    query = ConsentQuerySerializer
    cursor = "cns"

    @extend_schema(
        operation_id="list_consents",
        responses={200: CONSENTS},
    )
    def get(self, request: Request) -> Response:
        asked = self.asked
        mine = Consent.objects.visible_to(get_caller(request)).filter(agent_id=get_caller(request).agent())
        if asked.get("tool"):
            mine = mine.filter(tool=asked["tool"])
        page = self.page_of(mine.in_state(asked.get("state", "")))
        data = {"consents": [consent_json(consent) for consent in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="request_consent", request=ConsentRequestSerializer, responses={201: CONSENT})
    def post(self, request: Request) -> Response:
        said, by = read_body(request, ConsentRequestSerializer), get_caller(request)
        decision_context = load_decision_context(tenant_id=by.tenant_id, agent_id=by.agent(), tool=said["tool"])
        check_known(decision_context)
        version = check_callable(decision_context)
        widest, longest = widest_consent(version, decision_context)
        consent = request_consent(
            tool=said["tool"],
            versions=version_range(version.manifest.version),
            purpose=said["purpose"],
            validity_s=choose_validity(said["validity_s"], longest=longest),
            mode=said["mode"],
            widest=widest,
            data_classes=version.manifest.data_classes,
            user_fingerprint=compute_user_fingerprint(said["user_id"], tenant_id=by.tenant_id),
            by=by,
        )
        return Response(
            ResponseEnvelope(data=consent_json(consent)).to_json(),
            status=201,
            headers={"Location": f"/api/v1/consents/{consent.wire_id}"},
        )


class ConsentView(Endpoint):
    """The state of one of the agent's own requests."""

    required_scope = "consents:request"

    @extend_schema(operation_id="read_consent", responses={200: CONSENT})
    def get(self, request: Request, consent_id: UUID) -> Response:
        mine = Consent.objects.visible_to(get_caller(request)).filter(agent_id=get_caller(request).agent())
        return Response(ResponseEnvelope(data=consent_json(mine.get(pk=consent_id))).to_json())
