"""Signed requests: Standard Webhooks, version 1. A signature over id, time and body, and for a while those of two secrets."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from kernel.http.outbound import AddressRefused, check_url, send_request
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY = range(100, 600)
GONE = 410
MAX_WAIT = timedelta(hours=1)  # whatever a server asks for


@dataclass(eq=False)
class RequestNotTaken(Exception):
    """The server answered, but did not take the message."""

    status: int
    retry_after: timedelta | None = None

    def __str__(self) -> str:
        return f"Answered {self.status}."

    @property
    def is_gone(self) -> bool:
        """The server wants nothing at this address any more."""
        return self.status == GONE


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """One message to somebody's server. Whoever knows one of the secrets can check it, and knows it again by its id.

    ``id`` has no full stop, which parts what is signed: two messages could else have the same signature.
    """

    url: str
    id: str
    body: bytes
    secrets: Sequence[bytes] = field(repr=False)
    media_type: str = "application/json"

    def __post_init__(self) -> None:
        assert "." not in self.id

    def send(self) -> int:
        """The status of the answer; raises :class:`RequestNotTaken`, and what ``send_request`` raises."""
        answer = send_request(
            self.url, method="POST", body=self.body, headers=self._headers(), statuses=ANY, read=False
        )
        if not 200 <= answer.status < 300:
            wait = parse_retry_after(answer.headers.get("retry-after", ""), now=timezone.now())
            raise RequestNotTaken(answer.status, wait)
        return answer.status

    def _headers(self) -> dict[str, str]:
        timestamp = str(int(time.time()))
        signatures = (sign_message(each, id=self.id, timestamp=timestamp, body=self.body) for each in self.secrets)
        return {
            "Content-Type": self.media_type,
            "webhook-id": self.id,
            "webhook-timestamp": timestamp,
            "webhook-signature": " ".join(signatures),
        }


def check_receiver(url: str, *, pointer: str) -> None:
    """Refuse an address that the hub does not ask; ``pointer`` leads to its field."""
    try:
        check_url(url)
    except AddressRefused as refused:
        raise SchemaInvalid.at(pointer, str(refused)) from refused


def sign_message(secret: bytes, *, id: str, timestamp: str, body: bytes) -> str:
    signed = b".".join((id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def parse_retry_after(text: str, *, now: datetime) -> timedelta | None:
    """What a Retry-After says: seconds or a date (RFC 9110); None when it cannot be read."""
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=min(int(text[:9]), 10**6)), MAX_WAIT)
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(timedelta(), min(at.replace(tzinfo=at.tzinfo or UTC) - now, MAX_WAIT))
