"""Finder of agents: by a part of the name, or by the id of one of the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from access.models import Agent
from kernel.http.finders import Finder, FoundThing, match_words
from kernel.ids import decode

if TYPE_CHECKING:
    from kernel.principal import Principal


def match_agent(text: str, by: Principal) -> Q:
    try:
        return Q(keys__pk=decode("key", text))
    except ValueError:
        return match_words("name")(text, by)


FINDER = Finder(
    noun=gettext_lazy("Agents"),
    icon="bot",
    permission="agents.view",
    order=40,
    prefix="agt",
    rows=lambda by: Agent.objects.filter(tenant_id=by.tenant_id),
    match=match_agent,
    sort=("name",),
    show=lambda agent: FoundThing(
        agent.name, reverse("agent", args=[agent.pk]), gettext_lazy("disabled") if agent.disabled_at else ""
    ),
)
