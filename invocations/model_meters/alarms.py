"""Meter alarms: models of which something else is reported than was to be expected, for those who look after the hub."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils.translation import gettext

from evidence.integrity.alarms import METERED, SOURCES, Alarm
from invocations.model_meters.models import ModelMeter
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from uuid import UUID

STAYS = timedelta(days=7)


def list_meter_alarms(tenant_id: UUID) -> list[Alarm]:
    """Of the last days; each stays for a week, since what it tells of is over once the new figures are learned."""
    rows = ModelMeter.objects.filter(tenant_id=tenant_id, differed_at__gt=database_time() - STAYS)
    return [_show(row) for row in rows.order_by("differed_at")]


def _show(row: ModelMeter) -> Alarm:
    assert row.differed_at is not None
    said = gettext("%(provider)s · %(model)s, %(figure)s: %(percent)s %% against what was to be expected.") % {
        "provider": row.provider,
        "model": row.model,
        "figure": row.figure,
        "percent": f"{row.difference_per_mille / 10:+.1f}",
    }
    subject = f"meter {row.pk} {row.differed_at:%Y-%m-%dT%H:%M:%S}"
    return Alarm(METERED, subject, row.differed_at, said, row.tenant_id)


SOURCES.append(list_meter_alarms)
