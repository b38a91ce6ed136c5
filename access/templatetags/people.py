"""Who is behind an actor's id?

Evidence holds ids; people know names. ``{% actor id %}`` shows the name of a member or an agent of the reader's tenant, with
the id in its title; an id that is not from there stays an id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.utils.html import format_html
from django.utils.translation import gettext

from access.models import Agent, Membership
from toolhub.kernel.ids import decode

if TYPE_CHECKING:
    from uuid import UUID

    from django.template.context import Context
    from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(takes_context=True)
def actor(context: Context, id: str) -> SafeString:
    """Looked up once a request and id."""
    request = context.get("request")
    principal = getattr(request, "principal", None)
    known: dict[str, str] = getattr(request, "_actor_names", {})
    if request is not None and principal is not None and id not in known:
        known[id] = name_of(id, tenant_id=principal.tenant_id)
        request._actor_names = known
    name = known.get(id, "")
    if not name:
        return format_html('<span class="mono">{}</span>', id)
    return format_html('<span title="{}">{}</span>', id, name)


def name_of(id: str, *, tenant_id: UUID) -> str:
    """Empty when nobody of this tenant has the id."""
    prefix, _, rest = id.partition("_")
    if id.startswith("system:"):
        return gettext("the hub (%(part)s)") % {"part": id.removeprefix("system:")}
    if prefix == "usr" and rest.isdecimal():
        membership = Membership.objects.filter(tenant_id=tenant_id, user_id=int(rest)).select_related("user").first()
        user: Any = membership.user if membership else None
        return (user.get_full_name() or user.get_username()) if user else ""
    if prefix == "agt":
        try:
            pk = decode("agt", id)
        except ValueError:
            return ""
        return Agent.objects.filter(tenant_id=tenant_id, pk=pk).values_list("name", flat=True).first() or ""
    return ""
