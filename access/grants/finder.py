"""Finder of grants: by a part of the tools that one is for, or of the agent's name."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from access.models import Grant
from kernel.http.finders import Finder, FoundThing, match_words

FINDER = Finder(
    noun=gettext_lazy("Grants"),
    icon="handshake",
    permission="grants.view",
    order=60,
    prefix="grt",
    rows=lambda by: Grant.objects.visible_to(by).select_related("agent"),
    match=match_words("tools", "agent__name", "reason"),
    show=lambda grant: FoundThing(
        grant.tools, reverse("grant", args=[grant.pk]), grant.agent.name if grant.agent else gettext_lazy("every agent")
    ),
)
