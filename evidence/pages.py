"""Pages of facts: how people read one fact in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from evidence.integrity.fact_status import decode_leaf, load_fact_status
from evidence.log.reader import build_inclusion_proof
from evidence.models import Fact, Pending
from evidence.services import open_free_text
from kernel.http.console import ConsoleRequest, needs, render_page

if TYPE_CHECKING:
    from uuid import UUID

WORDS = {"reason": gettext_lazy("Reason"), "purpose": gettext_lazy("Purpose"), "note": gettext_lazy("Note")}


@require_GET
@needs("evidence.view")
def fact(request: ConsoleRequest, fact_id: UUID) -> HttpResponse:
    """Context: fact, leaf (the statement as data), raw (the exact text that is hashed), hash (hex), pending (not yet in a log),
    place (Standing in the log), words (what somebody wrote with it, by its label).
    """
    found = Fact.objects.visible_to(request.principal).get(pk=fact_id)
    raw = bytes(found.leaf)
    context = {
        "section": "evidence",
        "fact": found,
        "leaf": decode_leaf(raw),
        "raw": raw.decode(errors="replace"),
        "hash": bytes(found.leaf_hash).hex(),
        "pending": Pending.objects.filter(pk=found.pk).exists(),
        "place": load_fact_status(found),
        "words": {WORDS[name]: text for name, text in open_free_text(found).items()},
    }
    return render_page(request, "evidence/fact_detail.html", context)


@require_GET
@needs("evidence.view")
def fact_proof(request: ConsoleRequest, fact_id: UUID) -> HttpResponse:
    """That the fact is in the log, as a file (c2sp.org/tlog-proof)."""
    found = Fact.objects.visible_to(request.principal).get(pk=fact_id)
    response = HttpResponse(build_inclusion_proof(found), content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{found.wire_id}.tlog-proof"'
    response.headers["Cache-Control"] = "no-store"
    return response
