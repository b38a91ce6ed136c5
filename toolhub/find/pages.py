"""Page of finding: what Ctrl K shows over a page, and as a page of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.views.decorators.http import require_GET

from kernel.http.console import ConsoleRequest, needs, render_page
from toolhub.find.search import MAX_CHARACTERS, find_anything

if TYPE_CHECKING:
    from django.http import HttpResponse


@require_GET
@needs("invocations.view")
def find(request: ConsoleRequest) -> HttpResponse:
    """Context: text, groups (list of FoundGroup), most (characters)."""
    text = request.GET.get("q", "").strip()
    context = {
        "section": "find",
        "text": text,
        "groups": find_anything(text, by=request.principal),
        "most": MAX_CHARACTERS,
    }
    return render_page(request, "find/find.html", context, partial="found")
