"""Quantities: the formats in which people read numbers, amounts of money, sizes and lengths of time."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from kernel.components.labels import NO_VALUE
from kernel.components.numbers import format_number

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    Text = str | _StrPromise


def number(value: float | None) -> str:
    """Grouped by thousands."""
    return NO_VALUE if value is None else format_number(value)


def money(micros: int | None, currency: str) -> str:
    """Millionths of a currency as people read an amount: small ones with more places, for a call may cost less than a cent."""
    if micros is None:
        return NO_VALUE
    places = 2 if not micros or abs(micros) >= 1_000_000 else 4 if abs(micros) >= 1000 else 6
    return f"{format_number(Decimal(micros) / 1_000_000, places)} {currency}"


def size(count: int | None) -> str:
    """Bytes, in units of 1,024."""
    if count is None:
        return NO_VALUE
    amount, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while round(amount, 1) >= 1024 and len(units) > 1:  # as it is written
        amount /= 1024
        units.pop(0)
    return f"{format_number(amount, 0 if amount.is_integer() else 1)} {units[0]}"


def dur(ms: float | None) -> str:
    """A duration given in milliseconds."""
    if ms is None:
        return NO_VALUE
    if round(ms) < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 59.995:  # from there on it would be written 60.00 s
        return f"{format_number(seconds, 2)} s"
    seconds = round(seconds, 1)
    if seconds < 3600:
        tenths = round(seconds % 60, 1)
        rest = format_number(tenths, 0 if tenths.is_integer() else 1)
        return _("%(m)d m %(s)s s") % {"m": seconds // 60, "s": rest}
    if seconds < 172_800:
        return _("%(h)d h %(m)d m") % {"h": seconds // 3600, "m": seconds % 3600 // 60}
    days = round(seconds / 86_400)
    return ngettext("%(d)d day", "%(d)d days", days) % {"d": days}


def span(seconds: int) -> str:
    """A length of time that a person chose: a day, 90 minutes."""
    unit = next((unit for unit in (86_400, 3600, 60) if seconds and seconds % unit == 0), 1)
    n = int(seconds // unit)
    match unit:
        case 86_400:
            return ngettext("%(d)d day", "%(d)d days", n) % {"d": n}
        case 3600:
            return ngettext("%(n)d hour", "%(n)d hours", n) % {"n": n}
        case 60:
            return ngettext("%(n)d minute", "%(n)d minutes", n) % {"n": n}
        case _:
            return dur(seconds * 1000)


def per(seconds: int) -> str:
    """Of a limit: how often it begins anew."""
    words = {60: _("a minute"), 3600: _("an hour"), 86_400: _("a day"), 604_800: _("a week")}
    return words.get(seconds) or _("per %(span)s") % {"span": span(seconds)}


def seconds(amount: float) -> str:
    """A limit given in seconds, whatever their number: 0.5 s, 30 s."""
    return f"{format_number(int(amount) if float(amount).is_integer() else amount)} s"


def span_ms(ms: float) -> str:
    """A limit of time: 30 s, not 30.00 s."""
    if ms >= 60_000 and ms % 60_000 == 0:
        return span(int(ms // 1000))
    return f"{format_number(int(ms // 1000))} s" if 1000 <= ms < 60_000 and ms % 1000 == 0 else dur(ms)
