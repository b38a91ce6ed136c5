"""Moments: times as addresses carry them, and the days of the reader's time zone.

An address may be sent to somebody who reads times in another zone, and an hour may come twice in a night: so it says its offset.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext

from kernel.components.labels import format_zone

if TYPE_CHECKING:
    from datetime import tzinfo


def write_moment(moment: datetime) -> str:
    """To the minute, in the reader's time zone."""
    return timezone.localtime(moment).isoformat(timespec="minutes")


def format_moment(moment: datetime) -> str:
    """For plain text, where no title says the zone."""
    local = timezone.localtime(moment)
    return f"{local:%Y-%m-%d %H:%M} {format_zone(local)}"


def add_days(begin: datetime, days: int, zone: tzinfo) -> datetime:
    """So many midnights later: a day on which clocks are changed has 23 or 25 hours."""
    local = begin.astimezone(zone).replace(tzinfo=None) + timedelta(days=days)
    return local.replace(tzinfo=zone).astimezone(UTC)


def head_times(since: datetime, until: datetime) -> str:
    """The head of a column of times of which none says its zone: the zone, and both offsets where clocks are changed between them."""
    zones = dict.fromkeys(format_zone(timezone.localtime(each)) for each in (since, until))
    return gettext("Time (%(zone)s)") % {"zone": " / ".join(zones)}
