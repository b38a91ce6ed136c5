"""Log liveness: whether facts get into the log in time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from evidence.models import Log, Pending
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from uuid import UUID

SEALED_WITHIN = timedelta(seconds=60)  # usual are two seconds; a transaction may be long
SIGNED_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class LogState:
    """``oldest``: since when the oldest pending fact waits. ``signed_at``: the newest signature under any checkpoint."""

    pending: int
    oldest: datetime | None
    signed_at: datetime | None

    @property
    def wrong(self) -> str:
        """A sentence; empty when facts are sealed in time."""
        now = database_time()
        if self.oldest and now - self.oldest > SEALED_WITHIN:
            return f"{self.pending} facts are in no log yet, the oldest since {self.oldest:%Y-%m-%d %H:%M:%S} UTC."
        if self.signed_at and now - self.signed_at > SIGNED_WITHIN:
            return f"No checkpoint was signed since {self.signed_at:%Y-%m-%d %H:%M:%S} UTC."
        return ""


def log_state(tenant_id: UUID | None = None) -> LogState:
    """Of one tenant's log, or of all (hub-wide)."""
    pending, logs = Pending.objects.all(), Log.objects.exclude(signed_at=None)
    if tenant_id is not None:
        pending, logs = pending.filter(tenant_id=tenant_id), logs.filter(pk=tenant_id)
    oldest = pending.order_by("fact_id").values_list("fact_id", flat=True).first()
    signed_at = logs.order_by("-signed_at").values_list("signed_at", flat=True).first()
    return LogState(pending.count(), id_time(oldest) if oldest else None, signed_at)


def id_time(id: UUID) -> datetime:
    """When an id (UUIDv7) was made."""
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)
