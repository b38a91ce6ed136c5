"""Sinks over REST: how event sinks are set up, and how far each has got. Secrets are answered once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers

from evidence.deliveries.api import (
    ROTATION,
    OverlapSerializer,
    build_answer,
    build_secret_actions,
    build_secret_answer,
)
from evidence.kinds import Kind
from evidence.models import EventSink, SinkChannel, SinkMode, SinkState
from evidence.sinks import services
from evidence.sinks.cursor import load_log_size
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

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request
    from rest_framework.response import Response

SCOPE = "sinks:manage"
EXAMPLE = OpenApiExample(
    "A server that gets the ends of calls",
    value={
        "name": "siem",
        "channel": "webhook",
        "url": "https://siem.example.org/cloudevents",
        "mode": "batched",
        "kinds": ["invocation.ended"],
    },
    request_only=True,
)


class SinkSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    channel = serializers.ChoiceField(SinkChannel.values)
    url = serializers.CharField(allow_null=True)
    mode = serializers.ChoiceField(SinkMode.values)
    kinds = serializers.ListField(child=serializers.CharField(), help_text="Empty: all.")
    max_mb = serializers.IntegerField(help_text="Of a file; then another one begins.")
    state = serializers.ChoiceField(SinkState.values)
    cursor = serializers.IntegerField(help_text="The index of the next leaf of the log that it has not got.")
    lag = serializers.IntegerField(help_text="How many leaves of the log it has not got.")
    sent = serializers.IntegerField(help_text="Events that have arrived.")
    sent_at = serializers.DateTimeField(allow_null=True)
    attempts = serializers.IntegerField(help_text="That failed since the last one that did not.")
    next_attempt_at = serializers.DateTimeField(allow_null=True, help_text="After a failure.")
    last_error = serializers.CharField(allow_null=True)
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()


class NewSinkSerializer(StrictSerializer):
    name = serializers.SlugField(max_length=40)
    channel = serializers.ChoiceField(SinkChannel.values)
    url = serializers.CharField(
        required=False, max_length=500, allow_blank=True, default="", help_text="Of a webhook: a public https address."
    )
    mode = serializers.ChoiceField(SinkMode.values, required=False, default=SinkMode.STRUCTURED.value)
    kinds = serializers.ListField(
        child=serializers.ChoiceField(Kind.values), required=False, default=list, max_length=len(Kind.values)
    )
    max_mb = serializers.IntegerField(required=False, default=64, min_value=1, max_value=services.MAX_FILE_MB)
    from_beginning = serializers.BooleanField(
        required=False, default=False, help_text="Begin with the first leaf of the log, not with the next one."
    )


INTO_FILES = [SinkChannel.FILE.value]


class NewFileSinkSerializer(NewSinkSerializer):
    """Into files of the hub's."""

    channel = serializers.ChoiceField(INTO_FILES)
    url = None  # type: ignore[assignment]


class NewWebhookSinkSerializer(NewSinkSerializer):
    """To a server."""

    channel = serializers.ChoiceField([SinkChannel.WEBHOOK.value])
    url = WebAddressField(max_length=500, help_text="A public https address.")


NEW_SINK = PolymorphicProxySerializer(
    "NewSink", [NewFileSinkSerializer, NewWebhookSinkSerializer], resource_type_field_name=None
)


class SinkSecretSerializer(SinkSerializer):
    secret = serializers.CharField(
        allow_null=True, help_text="What the messages are signed with (whsec_…). Answered this once; null of files."
    )


SINK = build_envelope_serializer("EventSinkEnvelope", SinkSerializer())
SINKS = build_page_serializer("EventSinkPage", "sinks", SinkSerializer)
SECRET = build_envelope_serializer("EventSinkSecretEnvelope", SinkSecretSerializer())


def sink_json(row: EventSink) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "name": row.name,
        "channel": row.channel,
        "url": row.url or None,
        "mode": row.mode,
        "kinds": row.kinds,
        "max_mb": row.max_mb,
        "state": row.state,
        "cursor": row.cursor,
        "lag": max(0, load_log_size(row.tenant_id) - row.cursor),
        "sent": row.sent,
        "sent_at": row.sent_at.isoformat() if row.sent_at else None,
        "attempts": row.attempts,
        "next_attempt_at": row.next_attempt_at.isoformat() if row.attempts else None,
        "last_error": row.last_error or None,
        "created_by": row.created_by,
        "created_at": row.created_at.isoformat(),
    }


class SinkListView(Endpoint):
    """Where the tenant's events go; setting up another sink."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "snk"

    @extend_schema(operation_id="list_event_sinks", responses={200: SINKS})
    def get(self, request: Request) -> Response:
        rows = EventSink.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        return build_answer({"sinks": [sink_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(operation_id="make_event_sink", request=NEW_SINK, responses={201: SECRET}, examples=[EXAMPLE])
    def post(self, request: Request) -> Response:
        row, secret = services.make_sink(by=get_caller(request), **read_body(request, NewSinkSerializer))
        return build_secret_answer(sink_json(row), secret)


class SinkView(Endpoint):
    """One sink."""

    required_scope = SCOPE

    @extend_schema(operation_id="get_event_sink", responses={200: SINK})
    def get(self, request: Request, sink_id: UUID) -> Response:
        return build_answer(sink_json(EventSink.objects.get(pk=sink_id, tenant_id=get_caller(request).tenant_id)))


SINK_ACTIONS = ActionTable(__name__, SCOPE, SINK, sink_json)
SinkPauseView = SINK_ACTIONS.build_view(
    "pause_event_sink", services.pause_sink, "Send nothing for now. What happens meanwhile waits in the log."
)
SinkResumeView = SINK_ACTIONS.build_view(
    "resume_event_sink",
    services.resume_sink,
    "Go on where it stopped; also what waits after a failure is tried at once.",
    body=None,
)
SinkTestView = SINK_ACTIONS.build_view(
    "test_event_sink", services.test_sink, "Send a test event, behind what waits.", body=None, status=202
)
SinkRotateView = build_secret_actions(__name__, SCOPE, SECRET, sink_json).build_view(
    "rotate_event_sink", services.rotate_secret, ROTATION, body=OverlapSerializer, status=201
)
SinkEndView = SINK_ACTIONS.build_view(
    "end_event_sink", services.end_sink, "Send nothing there any more; its secrets are destroyed."
)
