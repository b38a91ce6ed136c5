"""Finder of exports: by a part of the query that one was made of, or of its reason."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from evidence.models import ExportJob
from kernel.components.moments import format_moment
from kernel.http.finders import Finder, FoundThing, match_words

FINDER = Finder(
    noun=gettext_lazy("Exports"),
    icon="archive",
    permission="evidence.view",
    order=140,
    prefix="exp",
    rows=lambda by: ExportJob.objects.filter(tenant_id=by.tenant_id),
    match=match_words("query", "reason"),
    show=lambda job: FoundThing(
        f"{job.get_format_display()} {job.query}".strip()[:120],
        reverse("export", args=[job.pk]),
        format_moment(job.created_at),
    ),
)
