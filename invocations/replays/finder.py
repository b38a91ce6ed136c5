"""Finder of replays: by the id."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from invocations.replays.models import Replay
from kernel.components.labels import STATUS
from kernel.http.finders import Finder, FoundThing

FINDER = Finder(
    noun=gettext_lazy("Replays"),
    icon="repeat",
    permission="invocations.replay",
    order=120,
    prefix="rpl",
    rows=lambda by: Replay.objects.visible_to(by),
    show=lambda row: FoundThing(
        row.wire_id, reverse("replay", args=[row.pk]), STATUS[row.state][2] if row.state in STATUS else row.state
    ),
)
