"""Notifications over REST: the channels, and what became of each message. The secret of a webhook is answered once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers

from access.models import Delivery, Notification
from access.notifications import channels
from access.notifications.services import EVENTS
from evidence.deliveries.api import build_answer, build_secret_answer
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
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

SCOPE = "notifications:manage"

STATES = ["in use", "ended"]
# The state of a message in the words of this resource.
DELIVERY_STATES = {"trying": "waiting", "delivered": "delivered", "given_up": "given up"}


class NotificationChannelSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    channel = serializers.ChoiceField(Notification.Channel.choices)
    target = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(list(EVENTS)))
    state = serializers.ChoiceField(STATES)
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class MadeChannelSerializer(NotificationChannelSerializer):
    secret = serializers.CharField(
        allow_null=True, help_text="What a webhook's messages are signed with (whsec_…). Answered this once."
    )


class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="The webhook-id of the message.")
    channel = serializers.CharField()
    event = serializers.ChoiceField(list(EVENTS))
    subject = serializers.CharField(help_text="What it tells of.")
    state = serializers.ChoiceField(list(DELIVERY_STATES.values()))
    attempts = serializers.IntegerField()
    last_error = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    delivered_at = serializers.DateTimeField(allow_null=True)
    next_attempt_at = serializers.DateTimeField(allow_null=True)


def _events() -> Any:
    return serializers.ListField(
        child=serializers.ChoiceField(list(EVENTS)), min_length=1, max_length=len(EVENTS), help_text="What to tell of."
    )


class NewChannelSerializer(StrictSerializer):
    channel = serializers.ChoiceField(Notification.Channel.choices)
    target = serializers.CharField(max_length=500, help_text="A mail address, or the https address of a webhook.")
    events = _events()


BY_MAIL, BY_WEBHOOK = [Notification.Channel.EMAIL.value], [Notification.Channel.WEBHOOK.value]


class NewMailChannelSerializer(NewChannelSerializer):
    channel = serializers.ChoiceField(BY_MAIL)
    target = serializers.EmailField(max_length=254)


class NewWebhookChannelSerializer(NewChannelSerializer):
    channel = serializers.ChoiceField(BY_WEBHOOK)
    target = WebAddressField(max_length=500, help_text="A public https address.")


NEW_CHANNEL = PolymorphicProxySerializer(
    "NewChannel", [NewMailChannelSerializer, NewWebhookChannelSerializer], resource_type_field_name=None
)


class ChannelEventsSerializer(StrictSerializer):
    events = _events()


CHANNEL = build_envelope_serializer("ChannelEnvelope", NotificationChannelSerializer())
CHANNELS = build_page_serializer("ChannelPage", "channels", NotificationChannelSerializer)
MADE = build_envelope_serializer("MadeChannelEnvelope", MadeChannelSerializer())
DELIVERY = build_envelope_serializer("DeliveryEnvelope", DeliverySerializer())
DELIVERIES = build_page_serializer("DeliveryPage", "deliveries", DeliverySerializer)
WEBHOOK = OpenApiExample(
    "A webhook",
    value={
        "channel": "webhook",
        "target": "https://hooks.example.org/toolhub",
        "events": ["consent.requested", "halt.thrown"],
    },
    request_only=True,
)


def channel_json(row: Notification) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "channel": row.channel,
        "target": row.target,
        "events": row.events,
        "state": "ended" if row.disabled_at else "in use",
        "created_by": row.created_by,
        "created_at": row.created_at.isoformat(),
        "ended_at": row.disabled_at.isoformat() if row.disabled_at else None,
    }


def delivery_json(row: Delivery) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "channel": encode("ntf", row.notification_id),
        "event": row.event,
        "subject": row.subject,
        "state": DELIVERY_STATES[row.state],
        "attempts": row.attempts,
        "last_error": row.last_error or None,
        "created_at": row.created_at.isoformat(),
        "delivered_at": row.delivered_at.isoformat() if row.delivered_at else None,
        "next_attempt_at": row.next_attempt_at.isoformat() if row.next_attempt_at else None,
    }


def _channel(request: Request, notification_id: UUID) -> Notification:
    return Notification.objects.get(pk=notification_id, tenant_id=get_caller(request).tenant_id)


class ChannelListView(Endpoint):
    """Where the tenant's people are told that something waits for them; setting up a channel."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "ntf"

    @extend_schema(operation_id="list_channels", responses={200: CHANNELS})
    def get(self, request: Request) -> Response:
        rows = Notification.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        return build_answer({"channels": [channel_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(operation_id="set_channel", request=NEW_CHANNEL, responses={201: MADE}, examples=[WEBHOOK])
    def post(self, request: Request) -> Response:
        data = read_body(request, NewChannelSerializer)
        row, secret = channels.set_notification(by=get_caller(request), **data)
        answer = build_secret_answer(channel_json(row), secret)
        answer.headers["Location"] = f"/api/v1/channels/{row.wire_id}"
        return answer


class ChannelView(Endpoint):
    """One channel; telling it of other things."""

    required_scope = SCOPE
    conditional = True

    @extend_schema(operation_id="read_channel", responses={200: CHANNEL})
    def get(self, request: Request, notification_id: UUID) -> Response:
        return build_answer(channel_json(_channel(request, notification_id)))

    @extend_schema(operation_id="change_channel", request=ChannelEventsSerializer, responses={200: CHANNEL})
    def patch(self, request: Request, notification_id: UUID) -> Response:
        events = read_body(request, ChannelEventsSerializer)["events"]
        row = channels.change_notification(notification_id=notification_id, events=events, by=get_caller(request))
        return build_answer(channel_json(row))


ChannelEndView = ActionTable(__name__, SCOPE, CHANNEL, channel_json).build_view(
    "end_channel", channels.end_notification, "Tell this channel nothing more."
)


class DeliveryListView(Endpoint):
    """The messages to a channel, and what became of each."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "dlv"

    @extend_schema(operation_id="list_deliveries", responses={200: DELIVERIES})
    def get(self, request: Request, notification_id: UUID) -> Response:
        rows = Delivery.objects.filter(notification=_channel(request, notification_id))
        page = self.page_of(rows)
        return build_answer({"deliveries": [delivery_json(row) for row in page.rows], "next": page.next or None})


DeliveryAgainView = ActionTable(__name__, SCOPE, DELIVERY, delivery_json).build_view(
    "redeliver",
    channels.redeliver_message,
    "Send a message again, now, whatever became of it before.",
    body=None,
)
