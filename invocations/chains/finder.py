"""Finder of chains: by the id."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from invocations.chains.models import Chain
from kernel.components.labels import STATUS
from kernel.http.finders import Finder, FoundThing

FINDER = Finder(
    noun=gettext_lazy("Chains"),
    icon="list-tree",
    permission="invocations.view",
    order=110,
    prefix="chn",
    rows=lambda by: Chain.objects.visible_to(by),
    show=lambda row: FoundThing(
        row.wire_id, reverse("chain", args=[row.pk]), STATUS[row.state][2] if row.state in STATUS else row.state
    ),
)
