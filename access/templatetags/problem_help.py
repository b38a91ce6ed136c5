"""Problem help tags: what a person who was refused, or found nothing, can do next, in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django import template
from django.core.exceptions import DisallowedHost
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy, ngettext

from access.models import Membership
from access.roles import HUB_PERMISSIONS, PERMISSIONS, ROLE_PERMISSIONS, Role
from kernel.http.console import find_way_back
from kernel.ids import PREFIXES, id_pattern

if TYPE_CHECKING:
    from django.template.context import Context
    from django.utils.functional import _StrPromise

register = template.Library()
WIRE_ID = re.compile("|".join(id_pattern(prefix)[1:-1] for prefix in PREFIXES))
# Of what people look for; of other ids the id alone is said.
THINGS: dict[str, _StrPromise] = {
    "inv": gettext_lazy("Call"),
    "chn": gettext_lazy("Chain"),
    "run": gettext_lazy("Agent run"),
    "cns": gettext_lazy("Consent"),
    "grt": gettext_lazy("Grant"),
    "grq": gettext_lazy("Request for a grant"),
    "agt": gettext_lazy("Agent"),
    "key": gettext_lazy("API key"),
    "bud": gettext_lazy("Budget"),
    "pol": gettext_lazy("Policy version"),
    "hlt": gettext_lazy("Kill switch"),
    "tvn": gettext_lazy("Tool version"),
    "fct": gettext_lazy("Fact"),
    "exp": gettext_lazy("Export"),
    "ver": gettext_lazy("Verification"),
    "imp": gettext_lazy("Import"),
}
NAMED = 3  # of those who can give a permission


@register.simple_tag(takes_context=True)
def permission_help(context: Context, missing: str) -> dict[str, Any]:
    """``label`` of the permission, and ``sentences``: who has it, and who can give it. Empty for what is no permission of people."""
    if missing in HUB_PERMISSIONS:
        return {
            "label": gettext(HUB_PERMISSIONS[missing]),
            "sentences": [gettext("Only owners of the hub have it. One of them can do this for you.")],
        }
    if missing not in PERMISSIONS:
        return {}
    roles = [str(role.label) for role in Role if missing in ROLE_PERMISSIONS[role]]
    sentences = [
        ngettext(
            "People with the role %(roles)s have it.", "People with one of the roles %(roles)s have it.", len(roles)
        )
        % {"roles": ", ".join(roles)}
    ]
    if givers := _list_givers(getattr(context["request"], "tenant", None)):
        names = ", ".join(givers)
        sentences.append(
            ngettext("%(names)s can give it to you.", "Each of these can give it to you: %(names)s.", len(givers))
            % {"names": names}
        )
    return {"label": gettext(PERMISSIONS[missing]), "sentences": sentences}


def _list_givers(tenant: Any) -> list[str]:
    """The owners of the tenant, by name."""
    rows = Membership.objects.filter(tenant=tenant, role=Role.OWNER, user__is_active=True).select_related("user")
    return [row.user.get_full_name() or row.user.get_username() for row in rows.order_by("pk")[:NAMED]]


@register.simple_tag(takes_context=True)
def search_help(context: Context) -> dict[str, Any]:
    """After a page that was not found: ``looked_for`` (what, as people call it), ``tenant`` and ``others`` (whether the person could
    look in another tenant too), and ``page``, which lists what was looked for.
    """
    request = context["request"]
    found = WIRE_ID.search(request.path)
    thing = THINGS.get(found[0][:3]) if found else None
    pages = [page for group in context.get("nav") or () for job in group["items"] for page in job["pages"]]
    near = [page for page in pages if page["url"] != "/" and request.path.startswith(page["url"])]
    return {
        "looked_for": format_lazy("{} {}", thing, found[0]) if found and thing else found[0] if found else request.path,
        "tenant": getattr(request, "tenant", None),
        "others": len(getattr(request, "tenants", ())) > 1,
        "page": max(near, key=lambda page: len(page["url"]), default=None),
    }


@register.simple_tag(takes_context=True)
def way_back(context: Context) -> str:
    """The page of this hub from which somebody came; "" if they came from elsewhere or from this address."""
    request = context["request"]
    try:
        to = find_way_back(request, request.headers.get("Referer", ""), default="")
        return "" if to == request.build_absolute_uri() else to
    except DisallowedHost:  # asked by a name that is not the hub's, which is what the page says
        return ""
