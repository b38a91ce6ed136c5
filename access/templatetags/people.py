"""People tags: who is behind an actor's id.

Evidence holds ids; people know names. ``{% actor id %}`` shows the name of a member or an agent of the reader's tenant, with
the id in its title; an id that is not from there stays an id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.utils.html import format_html
from django.utils.translation import gettext

from access.models import Agent, Membership
from kernel.ids import encode, encode_user

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.template.context import Context
    from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(takes_context=True)
def actor(context: Context, id: str) -> SafeString:
    """A page has the same few actors in many places: each is drawn once."""
    request = context.get("request")
    drawn: dict[str, SafeString] = {} if request is None else request.__dict__.setdefault("_actors_drawn", {})
    if id not in drawn:
        drawn[id] = _drawn(request, id)
    return drawn[id]


def _drawn(request: Any, id: str) -> SafeString:
    """The first one that is met has the names of its kind read, all at once."""
    principal = getattr(request, "principal", None)
    name = ""
    if id.startswith("system:"):
        name = gettext("the hub (%(part)s)") % {"part": id.removeprefix("system:")}
    elif principal is not None:
        known: dict[str, dict[str, str]] = request.__dict__.setdefault("_actor_names", {})
        kind = id.partition("_")[0]
        if kind in READ and kind not in known:
            known[kind] = READ[kind](principal.tenant_id)
        name = known.get(kind, {}).get(id, "")
    if not name:
        return format_html('<span class="mono">{}</span>', id)
    return format_html('<span title="{}">{}</span>', id, name)


def _people(tenant_id: UUID) -> dict[str, str]:
    members = Membership.objects.filter(tenant_id=tenant_id).select_related("user")
    users: dict[int, Any] = {member.user_id: member.user for member in members}
    return {encode_user(pk): user.get_full_name() or user.get_username() for pk, user in users.items()}


def _agents(tenant_id: UUID) -> dict[str, str]:
    return {encode("agt", pk): name for pk, name in Agent.objects.filter(tenant_id=tenant_id).values_list("pk", "name")}


READ: dict[str, Callable[[UUID], dict[str, str]]] = {"usr": _people, "agt": _agents}
