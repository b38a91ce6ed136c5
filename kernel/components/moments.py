"""Moments: times as addresses carry them, and the days of the reader's time zone.

An address may be sent to somebody who reads times in another zone, and an hour may come twice in a night: so it says its offset.
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext

from kernel.components.labels import format_zone

if TYPE_CHECKING:
    from datetime import date, tzinfo


def write_moment(moment: datetime) -> str:
    """To the minute, in the reader's time zone."""
    return timezone.localtime(moment).isoformat(timespec="minutes")


def format_moment(moment: datetime) -> str:
    """For plain text, where no title says the zone."""
    local = timezone.localtime(moment)
    return f"{local:%Y-%m-%d %H:%M} {format_zone(local)}"


def begin_of_day(day: date, zone: tzinfo) -> datetime:
    """Its first moment in the zone: midnight, or what comes in its place where clocks are set forward at midnight."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def head_times(since: datetime, until: datetime) -> str:
    """The head of a column of times of which none says its zone: the zone, and both offsets where clocks are changed between them."""
    zones = dict.fromkeys(format_zone(timezone.localtime(each)) for each in (since, until))
    return gettext("Time (%(zone)s)") % {"zone": " / ".join(zones)}
