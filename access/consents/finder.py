"""Finder of consents: by a part of the tool, the agent's name or the purpose."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from access.models import Consent
from kernel.http.finders import Finder, FoundThing, match_words

FINDER = Finder(
    noun=gettext_lazy("Consents"),
    icon="user-check",
    permission="consents.view",
    order=70,
    prefix="cns",
    rows=lambda by: Consent.objects.visible_to(by).select_related("agent"),
    match=match_words("tool", "agent__name", "purpose"),
    show=lambda consent: FoundThing(
        f"{consent.tool}: {consent.purpose}"[:120], reverse("consent", args=[consent.pk]), consent.agent.name
    ),
)
