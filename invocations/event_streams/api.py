"""Event streams over REST: the address at which a caller follows its call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

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
    from collections.abc import Callable
    from uuid import UUID

    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from invocations.event_streams.stream import Follower

EVENT_STREAM = "text/event-stream"
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    str,
    OpenApiParameter.HEADER,
    description="The id of the last event that arrived: the stream goes on after it. 204: it was the last.",
)
STREAM_RESPONSES = {(200, EVENT_STREAM): OpenApiTypes.STR, 204: None}


class StreamPosition(Protocol):
    """What was told of a stream so far."""

    @property
    def is_over(self) -> bool: ...


C = TypeVar("C", bound=StreamPosition)


class EventStreamRenderer(JSONRenderer):
    """Says to content negotiation what this address answers. The stream writes itself; whatever else is said is JSON."""

    media_type, format = EVENT_STREAM, "events"


class EventStreamView(Endpoint):
    """An address that answers with a stream of events."""

    required_scope = "invocations:read"
    renderer_classes = [EventStreamRenderer]

    def follow(
        self,
        request: Request,
        read_cursor: Callable[[str], C],
        build_follower: Callable[[StreamCredentials, C], Follower],
    ) -> HttpResponseBase:
        """The stream from behind the last event that arrived; 204 where that was the last one."""
        cursor = read_cursor(request.headers.get("Last-Event-ID", ""))
        if cursor.is_over:
            return HttpResponse(status=204)
        agent = get_caller(request).id
        check_stream_limit(agent)
        key = request.headers.get("Authorization", "").partition(" ")[2].strip()
        credentials = StreamCredentials(key, request.META.get("REMOTE_ADDR", ""))
        return StreamingHttpResponse(
            stream_events(build_follower(credentials, cursor), agent=agent),
            content_type=EVENT_STREAM,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )


class InvocationEventsView(EventStreamView):
    """Follow one of the agent's own calls: server-sent events `state`, `progress`, `log`, `evidence` (each fact of the call), and
    at last `end` with the answer, or `error` when the call may not be followed any longer.
    """

    @extend_schema(operation_id="follow_invocation", responses=STREAM_RESPONSES, parameters=[LAST_EVENT_ID])
    def get(self, request: Request, invocation_id: UUID) -> HttpResponseBase:
        Invocation.objects.visible_to(get_caller(request)).only("pk").get(pk=invocation_id)
        return self.follow(request, StreamCursor.read, partial(CallFollower, invocation_id))
