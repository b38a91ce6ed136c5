"""Notification tags: what channels are told of, as people read it."""

from __future__ import annotations

from django import template

from access.notifications.services import EVENTS

register = template.Library()


@register.simple_tag
def event_word(event: str) -> str:
    """An event that is not known any more is shown as it is."""
    return str(EVENTS.get(event, event))
