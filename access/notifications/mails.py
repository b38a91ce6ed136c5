"""Mails: what people read of a message, with times and numbers as who reads it has chosen.

A channel is an address. Where it is that of a person of the tenant, their display settings count; else those of the hub. Programs read
the body itself, with times in UTC (:mod:`access.notifications.deliveries`).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.utils import translation
from django.utils.translation import gettext, gettext_lazy

from access.display.services import find_display, use_display
from access.models import Budget
from access.notifications.services import EVENTS
from access.templatetags.budgets import dimension_word, scope_word, write_limit
from kernel.components.labels import MARKS
from kernel.components.moments import format_moment
from kernel.ids import decode

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from access.models import Delivery, DisplaySettings, Notification

# Of what a message may say (access.notifications.services.MAY_SAY), how people call it. ``url`` stands by itself.
WORDS: dict[str, StrOrPromise] = {
    "agent": gettext_lazy("Agent"),
    "tool": gettext_lazy("Tool"),
    "version": gettext_lazy("Version"),
    "policy": gettext_lazy("Policy"),
    "budget": gettext_lazy("Budget"),
    "reach": gettext_lazy("Reach"),
    "until": gettext_lazy("Until"),
    "alarm": gettext_lazy("Alarm"),
    "member": gettext_lazy("Person"),
    "program": gettext_lazy("Program"),
}


def build_mail(message: Delivery, *, link: str) -> EmailMessage:
    """What happened and when, the names that it concerns, and where to look. In the hub's own language."""
    channel = message.notification
    with translation.override(settings.LANGUAGE_CODE), use_display(find_reader_display(channel)):
        title, colon = str(EVENTS.get(message.event, message.event)), str(MARKS["colon"])
        names = [
            f"{WORDS[name]}{colon}{_write_value(name, value, message)}"
            for name, value in sorted(message.body.items())
            if name != "url"
        ]
        happened = f"{gettext('Time')}{colon}{format_moment(message.created_at)}"
        end = str(MARKS["stop"])
    foot = f"{message.event} · {message.subject} · {message.wire_id}"
    return EmailMessage(
        subject=f"[toolhub] {title}",
        body="\n".join([f"{title}{end}", "", happened, *names, link, "", foot]),
        to=[channel.target],
        headers={"Auto-Submitted": "auto-generated"},
    )


def find_reader_display(channel: Notification) -> DisplaySettings | None:
    """Of the one person of the tenant whose address it is; None: nobody's, or more than one's."""
    people = get_user_model().objects.filter(
        email__iexact=channel.target, is_active=True, memberships__tenant_id=channel.tenant_id
    )
    found = list(people.distinct()[:2])
    return find_display(found[0]) if len(found) == 1 else None


def _write_value(name: str, value: str, message: Delivery) -> str:
    if name == "until":
        return format_moment(datetime.fromisoformat(value))
    if name == "budget":
        return _write_budget(message) or value
    return value


def _write_budget(message: Delivery) -> str:
    """As its page names it; empty where it is gone."""
    row = Budget.objects.filter(pk=decode("bud", message.subject), tenant_id=message.notification.tenant_id).first()
    if row is None:
        return ""
    what = f"{scope_word(row.scope)} · {dimension_word(row.dimension)}"
    return f"{what}{MARKS['colon']}{write_limit(row)}"
