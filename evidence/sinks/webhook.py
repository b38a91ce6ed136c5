"""How do events reach a server?

CloudEvents over HTTP, structured or batched, with the signature of Standard Webhooks. A message that is sent again has the same id.
"""

from __future__ import annotations

import email.utils
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils import timezone

from evidence.keys.keystore import get_keystore
from evidence.models import SinkMode, SinkSecret
from evidence.sinks.cloud_events import BATCH_MEDIA_TYPE, MEDIA_TYPE, encode_event
from evidence.webhooks.messages import signed_headers
from kernel.database.connections import database_time, release_connection
from kernel.http.outbound import send_request

if TYPE_CHECKING:
    from evidence.models import EventSink

ANY = range(100, 600)
GONE = 410
MOST_WAIT = timedelta(hours=1)  # whatever a server asks for


class EndpointGone(Exception):
    """The server wants nothing at this address any more."""


@dataclass
class EventsNotTaken(Exception):
    """The server answered, but did not take the events."""

    status: int
    retry_after: timedelta | None = None

    def __str__(self) -> str:
        return f"Answered {self.status}."


def load_secrets(sink: EventSink) -> list[bytes]:
    """The sink's secrets that have not ended, the newest first."""
    rows = SinkSecret.objects.filter(Q(ends_at=None) | Q(ends_at__gt=database_time()), sink=sink)
    return [
        get_keystore().unwrap(each.key_id, bytes(each.wrapped_key), context=sink.tenant_id.bytes)
        for each in rows.order_by("-created_at")
    ]


def post_events(sink: EventSink, secrets: list[bytes], events: list[tuple[int, dict[str, Any]]]) -> None:
    """One request. Raises :class:`EndpointGone`, :class:`EventsNotTaken`, and what
    :func:`~kernel.http.outbound.send_request` raises.
    """
    if sink.mode == SinkMode.BATCHED:
        body, media = b"[" + b",".join(encode_event(event) for _, event in events) + b"]", BATCH_MEDIA_TYPE
        id = f"{sink.wire_id}.{events[0][0]}-{events[-1][0]}"
    else:
        [(_, event)] = events
        body, media, id = encode_event(event), MEDIA_TYPE, f"{sink.wire_id}.{event['id']}"
    headers = signed_headers(secrets, id=id, body=body) | {"Content-Type": f"{media}; charset=utf-8"}
    release_connection()
    answer = send_request(sink.url, method="POST", body=body, headers=headers, statuses=ANY, read=False)
    if answer.status == GONE:
        raise EndpointGone
    if not 200 <= answer.status < 300:
        raise EventsNotTaken(
            answer.status, parse_retry_after(answer.headers.get("retry-after", ""), now=timezone.now())
        )


def parse_retry_after(text: str, *, now: datetime) -> timedelta | None:
    """What a Retry-After says: seconds or a date (RFC 9110); None when it cannot be read."""
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=min(int(text[:9]), 10**6)), MOST_WAIT)
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(timedelta(), min(at.replace(tzinfo=at.tzinfo or UTC) - now, MOST_WAIT))
