"""Moments: times as people read them and as addresses carry them, and the days of the reader's time zone.

An address may be sent to somebody who reads times in another zone, and an hour may come twice in a night: so it says its offset.
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

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
    return _("Time (%(zone)s)") % {"zone": " / ".join(zones)}


def format_zone(local: datetime) -> str:
    """``UTC+8``, as the top bar shows it."""
    offset = local.utcoffset()
    minutes = int(offset.total_seconds() // 60) if offset else 0
    hours, rest = divmod(abs(minutes), 60)
    return "UTC" if not minutes else f"UTC{'+' if minutes > 0 else '−'}{hours}{f':{rest:02d}' if rest else ''}"


def _choose_unit(seconds: float) -> tuple[str, int]:
    unit = next((unit for unit, span in (("s", 60), ("m", 3600), ("h", 86_400)) if seconds < span), "d")
    return unit, int(seconds // {"s": 1, "m": 60, "h": 3600, "d": 86_400}[unit])


def format_wait(since: datetime, now: datetime) -> str:
    """How long something waits that came at a moment."""
    unit, n = _choose_unit(max((now - since).total_seconds(), 0))
    match unit:
        case "s":
            said = ngettext("waiting for %(n)d s", "waiting for %(n)d s", n)
        case "m":
            said = ngettext("waiting for %(n)d min", "waiting for %(n)d min", n)
        case "h":
            said = ngettext("waiting for %(n)d h", "waiting for %(n)d h", n)
        case _:
            said = ngettext("waiting for %(n)d day", "waiting for %(n)d days", n)
    return said % {"n": n}


def format_relative_time(value: datetime, now: datetime) -> str:
    """How long before or after ``now`` the moment is."""
    seconds = (now - value).total_seconds()
    if abs(seconds) < 5:
        return _("just now")
    unit, n = _choose_unit(abs(seconds))
    match unit, seconds > 0:
        case "s", True:
            said = ngettext("%(n)d s ago", "%(n)d s ago", n)
        case "m", True:
            said = ngettext("%(n)d min ago", "%(n)d min ago", n)
        case "h", True:
            said = ngettext("%(n)d h ago", "%(n)d h ago", n)
        case _, True:
            said = ngettext("%(n)d day ago", "%(n)d days ago", n)
        case "s", _:
            said = ngettext("in %(n)d s", "in %(n)d s", n)
        case "m", _:
            said = ngettext("in %(n)d min", "in %(n)d min", n)
        case "h", _:
            said = ngettext("in %(n)d h", "in %(n)d h", n)
        case _:
            said = ngettext("in %(n)d day", "in %(n)d days", n)
    return said % {"n": n}
