"""Finder of reviews: of submitted versions that wait for one, by the name of the tool."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from kernel.http.finders import Finder, FoundThing, match_words
from registry.models import ToolVersion, VersionState

FINDER = Finder(
    noun=gettext_lazy("Reviews"),
    icon="git-compare",
    permission="tools.review",
    order=30,
    prefix="tvn",
    rows=lambda by: (
        ToolVersion.objects.filter(tool__tenant_id=by.tenant_id, review_state=VersionState.SUBMITTED)
        .select_related("tool")
        .defer("manifest", "changes")
    ),
    match=match_words("tool__name"),
    show=lambda version: FoundThing(
        f"{version.tool.name} {version.version}", reverse("review", args=[version.pk]), gettext_lazy("waits for review")
    ),
)
