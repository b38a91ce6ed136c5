"""Display settings of a person: kept, and put on for as long as a request of theirs is answered.

They decide nothing and witness nothing, so they leave no facts; evidence, answers of the API and logs stay in UTC.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

from django.utils import timezone
from django.utils.translation import gettext

from access.models import DisplaySettings
from kernel.components.numbers import NumberStyle, use_number_style
from kernel.database.rows import PreparedQuery
from kernel.database.tenancy import hub_wide
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator

# Groups of the database that name no place where somebody lives, or the same places under older names.
_NOT_OFFERED = ("Etc", "SystemV", "US", "Canada", "Brazil", "Chile", "Mexico", "posix", "right")
CHOSEN = PreparedQuery(lambda user: DisplaySettings.objects.filter(pk=user), user=int)
LONGEST_NAME = 64  # that is kept


@cache
def _list_known() -> frozenset[str]:
    """Once in a process: the files of the database are looked through for it."""
    return frozenset(available_timezones())


@cache
def list_time_zones() -> tuple[str, ...]:
    """What people choose from: UTC, then the places of the database by region."""
    places = {name for name in _list_known() if "/" in name and name.split("/")[0] not in _NOT_OFFERED}
    return ("UTC", *sorted(places))


def is_time_zone(name: str) -> bool:
    """Also one of those that are not offered: a browser may know its place by an older name. The name may be any text, so nothing is
    kept of it."""
    return len(name) <= LONGEST_NAME and name in _list_known()


def find_display(user: Any) -> DisplaySettings | None:
    """None: nothing was chosen yet."""
    with hub_wide():
        return CHOSEN.first(user=user.pk)


def set_display(*, time_zone: str, number_style: str | None = None, user: Any) -> DisplaySettings:
    """Of whom it is about, by themselves. ``number_style``: None leaves it as it is."""
    if not is_time_zone(time_zone):
        raise SchemaInvalid.at("/time_zone", gettext("This is no time zone of the IANA database, as Europe/Berlin."))
    if number_style is not None and number_style not in NumberStyle.values:
        raise SchemaInvalid.at("/number_style", gettext("Numbers are not written in this way here."))
    said = {"time_zone": time_zone} | ({} if number_style is None else {"number_style": number_style})
    with hub_wide():
        return DisplaySettings.objects.update_or_create(pk=user.pk, defaults=said)[0]


@contextmanager
def use_display(settings: DisplaySettings | None) -> Iterator[None]:
    """Times and numbers are written as the person has chosen. None: as the hub does. A zone that this machine does not know (any more)
    is as none."""
    zone = ZoneInfo(settings.time_zone) if settings and is_time_zone(settings.time_zone) else None
    with (
        timezone.override(zone or timezone.get_default_timezone()),
        use_number_style(settings.number_style if settings else NumberStyle.LANGUAGE),
    ):
        yield
