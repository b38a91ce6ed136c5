"""Sinks over REST: how event sinks are set up, and how far each has got. Secrets are answered once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from evidence.deliveries.api import OverlapSerializer
from evidence.kinds import Kind
from evidence.models import EventSink, SinkChannel, SinkMode, SinkState
from evidence.sinks import services
from evidence.sinks.cursor import load_log_size
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    ReasonSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

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
        child=serializers.CharField(max_length=40), required=False, default=list, max_length=len(Kind.values)
    )
    max_mb = serializers.IntegerField(required=False, default=64, min_value=1, max_value=services.MAX_FILE_MB)
    from_beginning = serializers.BooleanField(
        required=False, default=False, help_text="Begin with the first leaf of the log, not with the next one."
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


def _answer(data: Any, *, status: int = 200, secret: bool = False) -> Response:
    headers = {"Cache-Control": "no-store"} if secret else {}
    return Response(ResponseEnvelope(data=data).to_json(), status=status, headers=headers)


class SinkListView(Endpoint):
    """Where the tenant's events go; setting up another sink."""

    required_scope = SCOPE
    query = PageSerializer

    @extend_schema(operation_id="list_event_sinks", responses={200: SINKS})
    def get(self, request: Request) -> Response:
        rows = EventSink.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows, prefix="snk")
        return _answer({"sinks": [sink_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(
        operation_id="make_event_sink", request=NewSinkSerializer, responses={201: SECRET}, examples=[EXAMPLE]
    )
    def post(self, request: Request) -> Response:
        row, secret = services.make_sink(by=get_caller(request), **read_body(request, NewSinkSerializer))
        return _answer(sink_json(row) | {"secret": secret or None}, status=201, secret=True)


class SinkView(Endpoint):
    """One sink."""

    required_scope = SCOPE

    @extend_schema(operation_id="get_event_sink", responses={200: SINK})
    def get(self, request: Request, sink_id: UUID) -> Response:
        return _answer(sink_json(EventSink.objects.get(pk=sink_id, tenant_id=get_caller(request).tenant_id)))


class SinkPauseView(Endpoint):
    """Send nothing for now. What happens meanwhile waits in the log."""

    required_scope = SCOPE

    @extend_schema(operation_id="pause_event_sink", request=ReasonSerializer, responses={200: SINK})
    def post(self, request: Request, sink_id: UUID) -> Response:
        reason = read_body(request, ReasonSerializer)["reason"]
        return _answer(sink_json(services.pause_sink(sink_id=sink_id, reason=reason, by=get_caller(request))))


class SinkResumeView(Endpoint):
    """Go on where it stopped; also what waits after a failure is tried at once."""

    required_scope = SCOPE

    @extend_schema(operation_id="resume_event_sink", request=None, responses={200: SINK})
    def post(self, request: Request, sink_id: UUID) -> Response:
        return _answer(sink_json(services.resume_sink(sink_id=sink_id, by=get_caller(request))))


class SinkTestView(Endpoint):
    """Send a test event, behind what waits."""

    required_scope = SCOPE

    @extend_schema(operation_id="test_event_sink", request=None, responses={202: SINK})
    def post(self, request: Request, sink_id: UUID) -> Response:
        return _answer(sink_json(services.test_sink(sink_id=sink_id, by=get_caller(request))), status=202)


class SinkRotateView(Endpoint):
    """Another secret; until the overlap is over, messages carry the signatures of both."""

    required_scope = SCOPE

    @extend_schema(operation_id="rotate_event_sink", request=OverlapSerializer, responses={201: SECRET})
    def post(self, request: Request, sink_id: UUID) -> Response:
        overlap = timedelta(seconds=read_body(request, OverlapSerializer)["overlap_s"])
        row, secret = services.rotate_secret(sink_id=sink_id, overlap=overlap, by=get_caller(request))
        return _answer(sink_json(row) | {"secret": secret}, status=201, secret=True)


class SinkEndView(Endpoint):
    """Send nothing there any more; its secrets are destroyed."""

    required_scope = SCOPE

    @extend_schema(operation_id="end_event_sink", request=ReasonSerializer, responses={200: SINK})
    def post(self, request: Request, sink_id: UUID) -> Response:
        reason = read_body(request, ReasonSerializer)["reason"]
        return _answer(sink_json(services.end_sink(sink_id=sink_id, reason=reason, by=get_caller(request))))
