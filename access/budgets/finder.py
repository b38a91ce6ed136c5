"""Finder of budgets: by a part of the tool or of the agent's name that one is for, or of its reason."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from access.models import Budget
from kernel.http.finders import Finder, FoundThing, match_words


def show_budget(budget: Budget) -> FoundThing:
    of = budget.tool or (budget.agent.name if budget.agent else "") or (budget.grant.tools if budget.grant else "")
    return FoundThing(of or budget.reason[:80], reverse("budget", args=[budget.pk]), budget.get_dimension_display())


FINDER = Finder(
    noun=gettext_lazy("Budgets"),
    icon="timer",
    permission="budgets.view",
    order=90,
    prefix="bud",
    rows=lambda by: Budget.objects.visible_to(by).select_related("agent", "grant"),
    match=match_words("tool", "agent__name", "grant__tools", "reason"),
    show=show_budget,
)
