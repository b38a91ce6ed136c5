"""Requests with events: CloudEvents over HTTP, structured or batched. One that is sent again has the same id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidence.deliveries.signed_requests import SignedRequest
from evidence.models import SinkMode
from evidence.sinks.cloud_events import BATCH_MEDIA_TYPE, MEDIA_TYPE, encode_event
from kernel.database.connections import release_connection

if TYPE_CHECKING:
    from evidence.models import EventSink


def post_events(sink: EventSink, secrets: list[bytes], events: list[tuple[int, dict[str, Any]]]) -> None:
    """One request; raises what :meth:`~evidence.deliveries.signed_requests.SignedRequest.send` raises."""
    if sink.mode == SinkMode.BATCHED:
        body, media = b"[" + b",".join(encode_event(event) for _, event in events) + b"]", BATCH_MEDIA_TYPE
        id = f"{sink.wire_id}-{events[0][0]}-{events[-1][0]}"
    else:
        [(_, event)] = events
        body, media, id = encode_event(event), MEDIA_TYPE, f"{sink.wire_id}-{event['id']}"
    release_connection()
    SignedRequest(sink.url, id, body, secrets, media_type=f"{media}; charset=utf-8").send()
