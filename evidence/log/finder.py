"""Finder of facts: by the id of one, or of what it is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from evidence.models import Fact
from kernel.components.labels import FACT
from kernel.components.moments import format_moment
from kernel.http.finders import Finder, FoundThing

if TYPE_CHECKING:
    from kernel.principal import Principal

_SUBJECT = re.compile(r"[a-z]{3}_[0-9a-z]{26}|soul:\S+")


def match_fact(text: str, _by: Principal) -> Q | None:
    """Only what stands in facts as it is: their texts are found by the search of facts."""
    return Q(subject=text) if _SUBJECT.fullmatch(text) else None


FINDER = Finder(
    noun=gettext_lazy("Facts"),
    icon="scroll-text",
    permission="evidence.view",
    order=130,
    prefix="fct",
    rows=lambda by: Fact.objects.visible_to(by),
    match=match_fact,
    show=lambda fact: FoundThing(
        str(FACT[fact.kind][2]) if fact.kind in FACT else fact.kind,
        reverse("fact", args=[fact.pk]),
        format_moment(fact.occurred_at),
    ),
)
