"""How do people browse facts in the console?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from evidence.kinds import Kind
from evidence.models import Fact, Pending
from toolhub.kernel.console import ConsoleRequest, needs, render_page
from toolhub.kernel.pagination import page_of
from toolhub.kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

FILTERS = ("kind", "tool", "actor", "outcome", "subject")


@require_GET
@needs("evidence.view")
def facts(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Fact), filters, kinds."""
    filters = {name: request.GET.get(name, "").strip() for name in FILTERS}
    if filters["kind"] and filters["kind"] not in Kind.values:
        raise SchemaInvalid(gettext("There is no such kind of fact to filter by."))
    columns = {"kind": "kind", "tool": "tool", "actor": "actor_id", "outcome": "outcome", "subject": "subject"}
    rows = Fact.objects.visible_to(request.principal).defer("leaf")
    rows = rows.filter(**{columns[name]: value for name, value in filters.items() if value})
    context = {
        "section": "evidence",
        "page": page_of(rows, prefix="fct", after=request.GET.get("after", "")),
        "filters": filters,
        "kinds": Kind.choices,
    }
    return render_page(request, "evidence/fact_list.html", context, partial="rows")


@require_GET
@needs("evidence.view")
def fact(request: ConsoleRequest, fact_id: UUID) -> HttpResponse:
    """Context: fact, leaf (the statement as data), raw (the exact text that is hashed), hash (hex), pending (not yet in a log)."""
    found = Fact.objects.visible_to(request.principal).get(pk=fact_id)
    raw = bytes(found.leaf)
    context = {
        "section": "evidence",
        "fact": found,
        "leaf": json.loads(raw),
        "raw": raw.decode(),
        "hash": bytes(found.leaf_hash).hex(),
        "pending": Pending.objects.filter(pk=found.pk).exists(),
    }
    return render_page(request, "evidence/fact_detail.html", context)
