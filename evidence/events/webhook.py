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

from evidence.events.envelopes import BATCH_MEDIA_TYPE, MEDIA_TYPE, written
from evidence.keystore import keystore
from evidence.models import SinkMode, SinkSecret
from evidence.webhooks import signed_headers
from toolhub.kernel.db import release_connection
from toolhub.kernel.outbound import ask

if TYPE_CHECKING:
    from evidence.models import EventSink

ANY = range(100, 600)
GONE = 410
MOST_WAIT = timedelta(hours=1)  # whatever a server asks for


class Gone(Exception):
    """The server wants nothing at this address any more."""


@dataclass
class NotTaken(Exception):
    """The server answered, but did not take the events."""

    status: int
    retry_after: timedelta | None = None

    def __str__(self) -> str:
        return f"Answered {self.status}."


def secrets_of(sink: EventSink) -> list[bytes]:
    """The sink's secrets that have not ended, the newest first."""
    rows = SinkSecret.objects.filter(Q(ends_at=None) | Q(ends_at__gt=timezone.now()), sink=sink)
    return [
        keystore().unwrap(each.key_id, bytes(each.wrapped_key), context=sink.tenant_id.bytes)
        for each in rows.order_by("-created_at")
    ]


def post(sink: EventSink, secrets: list[bytes], events: list[tuple[int, dict[str, Any]]]) -> None:
    """One request. Raises :class:`Gone`, :class:`NotTaken`, and what :func:`~toolhub.kernel.outbound.ask` raises."""
    if sink.mode == SinkMode.BATCHED:
        body, media = b"[" + b",".join(written(event) for _, event in events) + b"]", BATCH_MEDIA_TYPE
        id = f"{sink.wire_id}.{events[0][0]}-{events[-1][0]}"
    else:
        [(_, event)] = events
        body, media, id = written(event), MEDIA_TYPE, f"{sink.wire_id}.{event['id']}"
    headers = signed_headers(secrets, id=id, body=body) | {"Content-Type": f"{media}; charset=utf-8"}
    release_connection()
    answer = ask(sink.url, method="POST", body=body, headers=headers, statuses=ANY, read=False)
    if answer.status == GONE:
        raise Gone
    if not 200 <= answer.status < 300:
        raise NotTaken(answer.status, wait_asked(answer.headers.get("retry-after", ""), now=timezone.now()))


def wait_asked(text: str, *, now: datetime) -> timedelta | None:
    """What a Retry-After says: seconds or a date (RFC 9110); None when it cannot be read."""
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=min(int(text[:9]), 10**6)), MOST_WAIT)
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(timedelta(), min(at.replace(tzinfo=at.tzinfo or UTC) - now, MOST_WAIT))
