"""How is a message to somebody's server signed, and when is it tried again?

Standard Webhooks, version 1: a secret that is shown once, a signature over id, time and body, and for a while the signatures of
two secrets. Used for what people are told (``access.notifications.deliveries``), for what agents are
(``invocations.callbacks``), and for the
events that sinks get (:mod:`evidence.sinks`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from evidence.keys.keystore import get_keystore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105  how a signing secret is written
PAUSES = tuple(timedelta(seconds=s) for s in (10, 60, 300, 1800, 7200, 21600, 43200))
CLAIMED_FOR = timedelta(minutes=2)  # a sender that died leaves its message to others after so long


def new_secret(*, tenant_id: UUID) -> tuple[str, bytes, str]:
    """A signing secret: the id of the key that wraps it, what is kept of it, and its text, which is shown once."""
    secret = secrets.token_bytes(SECRET_BYTES)
    key_id, wrapped = get_keystore().wrap(secret, context=tenant_id.bytes)
    return key_id, wrapped, SECRET_PREFIX + base64.b64encode(secret).decode()


def sign_message(secret: bytes, *, id: str, timestamp: str, body: bytes) -> str:
    signed = b".".join((id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def signed_headers(secrets: Iterable[bytes], *, id: str, body: bytes) -> dict[str, str]:
    """The headers of a message that is sent now. Whoever knows one of the secrets can check it."""
    timestamp = str(int(time.time()))
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(
            sign_message(secret, id=id, timestamp=timestamp, body=body) for secret in secrets
        ),
    }


def next_attempt(attempts: int, *, now: datetime) -> datetime | None:
    """When a message is tried again that has failed so often; None when it is given up."""
    return now + PAUSES[attempts - 1] if attempts <= len(PAUSES) else None
