"""Finder of saved views: one's own, by a part of the name."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from invocations.saved_views.services import own_views
from kernel.http.finders import Finder, FoundThing, match_words

FINDER = Finder(
    noun=gettext_lazy("Saved views"),
    icon="filter",
    permission="invocations.view",
    order=125,
    prefix="viw",
    rows=own_views,
    match=match_words("name"),
    show=lambda view: FoundThing(view.name, reverse("saved_view", args=[view.slug]), view.query[:80]),
)
