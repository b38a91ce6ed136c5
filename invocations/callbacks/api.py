"""Callbacks over REST: how endpoints are set up, and what became of each message. Secrets are answered once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers

from access.models import Agent
from evidence.deliveries.api import (
    ROTATION,
    OverlapSerializer,
    build_answer,
    build_secret_actions,
    build_secret_answer,
)
from invocations.callbacks import services
from invocations.callbacks.models import CallbackDelivery, CallbackEndpoint
from invocations.callbacks.selectors import STATES, filter_deliveries
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    IdField,
    PageSerializer,
    StrictSerializer,
    WebAddressField,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.ids import encode

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request
    from rest_framework.response import Response

SCOPE = "agents:manage"
EXAMPLE = OpenApiExample(
    "An endpoint",
    value={"name": "orders", "url": "https://agents.example.org/hooks/toolhub", "include_answer": False},
    request_only=True,
)

ENDPOINT_STATES = ["in use", "disabled"]


class EndpointSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    agent = serializers.CharField()
    name = serializers.CharField(help_text="What calls name in `callback`.")
    url = serializers.CharField()
    include_answer = serializers.BooleanField()
    state = serializers.ChoiceField(ENDPOINT_STATES)
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()


class NewEndpointSerializer(StrictSerializer):
    name = serializers.SlugField(max_length=40)
    url = WebAddressField(max_length=500, help_text="A public https address.")
    include_answer = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Include the answer. Otherwise a message says which call has ended, and where its answer is.",
    )


class SigningSecretSerializer(EndpointSerializer):
    secret = serializers.CharField(help_text="What the messages are signed with (whsec_…). Answered this once.")


class CallbackAttemptSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    status = serializers.IntegerField(allow_null=True, help_text="Null: no answer.")
    ms = serializers.IntegerField()
    error = serializers.CharField(allow_null=True)


class CallbackDeliverySerializer(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="The webhook-id of the message.")
    endpoint = serializers.CharField()
    call_id = serializers.CharField()
    state = serializers.ChoiceField(STATES)
    attempts = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    delivered_at = serializers.DateTimeField(allow_null=True)
    next_attempt_at = serializers.DateTimeField(allow_null=True)


class TriedDeliverySerializer(CallbackDeliverySerializer):
    tries = CallbackAttemptSerializer(many=True)


ENDPOINT = build_envelope_serializer("CallbackEndpointEnvelope", EndpointSerializer())
ENDPOINTS = build_page_serializer("CallbackEndpointPage", "endpoints", EndpointSerializer)
SECRET = build_envelope_serializer("CallbackSecretEnvelope", SigningSecretSerializer())
DELIVERY = build_envelope_serializer("CallbackDeliveryEnvelope", TriedDeliverySerializer())
DELIVERIES = build_page_serializer("CallbackDeliveryPage", "deliveries", CallbackDeliverySerializer)


def endpoint_json(row: CallbackEndpoint) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "agent": encode("agt", row.agent_id),
        "name": row.name,
        "url": row.url,
        "include_answer": row.include_answer,
        "state": "disabled" if row.disabled_at else "in use",
        "created_by": row.created_by,
        "created_at": row.created_at.isoformat(),
    }


def delivery_json(row: CallbackDelivery, *, tries: bool = False) -> dict[str, Any]:
    found = {
        "id": row.wire_id,
        "endpoint": encode("cbe", row.endpoint_id),
        "call_id": encode("inv", row.invocation_id),
        "state": row.state,
        "attempts": row.attempts,
        "created_at": row.created_at.isoformat(),
        "delivered_at": row.delivered_at.isoformat() if row.delivered_at else None,
        "next_attempt_at": row.next_attempt_at.isoformat() if row.next_attempt_at else None,
    }
    if tries:
        found["tries"] = [
            {"at": each.at.isoformat(), "status": each.status, "ms": each.ms, "error": each.error or None}
            for each in row.tries.order_by("id")
        ]
    return found


class EndpointListView(Endpoint):
    """Where an agent may have its calls told of; setting up another endpoint."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "cbe"

    @extend_schema(operation_id="list_callbacks", responses={200: ENDPOINTS})
    def get(self, request: Request, agent_id: UUID) -> Response:
        agent = Agent.objects.get(pk=agent_id, tenant_id=get_caller(request).tenant_id)
        rows = CallbackEndpoint.objects.filter(agent=agent)
        page = self.page_of(rows)
        return build_answer({"endpoints": [endpoint_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(
        operation_id="make_callback", request=NewEndpointSerializer, responses={201: SECRET}, examples=[EXAMPLE]
    )
    def post(self, request: Request, agent_id: UUID) -> Response:
        data = read_body(request, NewEndpointSerializer)
        row, secret = services.make_endpoint(agent_id=agent_id, by=get_caller(request), **data)
        return build_secret_answer(endpoint_json(row), secret)


EndpointRotateView = build_secret_actions(__name__, SCOPE, SECRET, endpoint_json).build_view(
    "rotate_callback", services.rotate_secret, ROTATION, body=OverlapSerializer, status=201
)


EndpointDisableView = ActionTable(__name__, SCOPE, ENDPOINT, endpoint_json).build_view(
    "disable_callback", services.disable_endpoint, "Send nothing there any more."
)


class DeliveryQuerySerializer(PageSerializer):
    state = serializers.ChoiceField(STATES, required=False)
    endpoint = IdField("cbe", required=False, help_text="The id of an endpoint.")
    call = IdField("inv", required=False, help_text="The id of a call.")


class CallbackDeliveryListView(Endpoint):
    """The messages about calls that have ended, the newest first."""

    required_scope = SCOPE
    query = DeliveryQuerySerializer
    cursor = "cbd"

    @extend_schema(
        operation_id="list_callback_deliveries",
        responses={200: DELIVERIES},
    )
    def get(self, request: Request) -> Response:
        rows = filter_deliveries(self.asked, by=get_caller(request))
        page = self.page_of(rows)
        return build_answer({"deliveries": [delivery_json(row) for row in page.rows], "next": page.next or None})


class CallbackDeliveryView(Endpoint):
    """One message, with each try to bring it there."""

    required_scope = SCOPE

    @extend_schema(operation_id="read_callback_delivery", responses={200: DELIVERY})
    def get(self, request: Request, delivery_id: UUID) -> Response:
        row = CallbackDelivery.objects.get(pk=delivery_id, tenant_id=get_caller(request).tenant_id)
        return build_answer(delivery_json(row, tries=True))


CallbackDeliveryAgainView = ActionTable(__name__, SCOPE, DELIVERY, partial(delivery_json, tries=True)).build_view(
    "redeliver_callback",
    services.redeliver_callback,
    "Send a message again, now, whatever became of it before.",
    body=None,
)
