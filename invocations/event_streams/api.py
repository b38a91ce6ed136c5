"""Event streams over REST: the address at which a caller follows its call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import JSONRenderer

from invocations.event_streams.stream import (
    CallFollower,
    StreamCredentials,
    StreamCursor,
    check_stream_limit,
    stream_events,
)
from invocations.models import Invocation
from kernel.http.api_requests import get_caller
from kernel.http.endpoints import Endpoint

if TYPE_CHECKING:
    from uuid import UUID

    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

EVENT_STREAM = "text/event-stream"


class EventStreamRenderer(JSONRenderer):
    """Says to content negotiation what this address answers. The stream writes itself; whatever else is said is JSON."""

    media_type, format = EVENT_STREAM, "events"


class InvocationEventsView(Endpoint):
    """Follow one of the agent's own calls: server-sent events `state`, `progress`, `log`, `evidence` (each fact of the call), and
    at last `end` with the answer, or `error` when the call may not be followed any longer.
    """

    required_scope = "invocations:read"
    renderer_classes = [EventStreamRenderer]

    @extend_schema(
        operation_id="follow_invocation",
        responses={(200, EVENT_STREAM): OpenApiTypes.STR, 204: None},
        parameters=[
            OpenApiParameter(
                "Last-Event-ID",
                str,
                OpenApiParameter.HEADER,
                description="The id of the last event that arrived: the stream goes on after it. 204: it was the last.",
            )
        ],
    )
    def get(self, request: Request, invocation_id: UUID) -> HttpResponseBase:
        by = get_caller(request)
        Invocation.objects.visible_to(by).only("pk").get(pk=invocation_id)
        cursor = StreamCursor.read(request.headers.get("Last-Event-ID", ""))
        if cursor.is_over:
            return HttpResponse(status=204)
        check_stream_limit(by.id)
        key = request.headers.get("Authorization", "").partition(" ")[2].strip()
        credentials = StreamCredentials(key, request.META.get("REMOTE_ADDR", ""))
        return StreamingHttpResponse(
            stream_events(CallFollower(invocation_id, credentials, cursor), agent=by.id),
            content_type=EVENT_STREAM,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
