"""Finder of agent runs: by the id."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from invocations.agent_runs.models import AgentRun
from kernel.components.labels import STATUS
from kernel.http.finders import Finder, FoundThing

FINDER = Finder(
    noun=gettext_lazy("Agent runs"),
    icon="bot",
    permission="invocations.view",
    order=115,
    prefix="run",
    rows=lambda by: AgentRun.objects.visible_to(by),
    show=lambda row: FoundThing(
        row.wire_id, reverse("agent_run", args=[row.pk]), STATUS[row.state][2] if row.state in STATUS else row.state
    ),
)
