"""Signing secrets of one receiver: made, shown once, and two of them while one takes over from the other."""

from __future__ import annotations

import base64
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from evidence.keys.keystore import get_keystore
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import Manager

SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105  how a signing secret is written
OVERLAP = timedelta(days=1)
MAX_OVERLAP = timedelta(days=30)


def new_secret(*, tenant_id: UUID) -> tuple[str, bytes, str]:
    """A signing secret: the id of the key that wraps it, what is kept of it, and its text, which is shown once."""
    secret = secrets.token_bytes(SECRET_BYTES)
    key_id, wrapped = get_keystore().wrap(secret, context=tenant_id.bytes)
    return key_id, wrapped, SECRET_PREFIX + base64.b64encode(secret).decode()


def add_secret(rows: Manager[Any], *, tenant_id: UUID) -> str:
    """The first secret of a receiver (``rows`` are its secrets); returns its text."""
    key_id, wrapped, text = new_secret(tenant_id=tenant_id)
    rows.create(tenant_id=tenant_id, key_id=key_id, wrapped_key=wrapped)
    return text


def rotate_secret(rows: Manager[Any], *, tenant_id: UUID, overlap: timedelta) -> tuple[str, int]:
    """Another secret of a receiver that is locked; returns its text, and for how many seconds the old one signs, too."""
    overlap = min(overlap, MAX_OVERLAP)
    rows.filter(ends_at__isnull=False).delete()  # never more than two
    rows.update(ends_at=database_time() + overlap)
    return add_secret(rows, tenant_id=tenant_id), int(overlap.total_seconds())


def load_secrets(rows: Manager[Any], *, tenant_id: UUID) -> list[bytes]:
    """The secrets that have not ended, the newest first."""
    lasting = rows.filter(Q(ends_at=None) | Q(ends_at__gt=database_time())).order_by("-created_at")
    return [get_keystore().unwrap(each.key_id, bytes(each.wrapped_key), context=tenant_id.bytes) for each in lasting]
