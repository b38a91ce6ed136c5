"""Page of service levels: whether they are met for this tenant, and what they demand."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from invocations.models import Invocation
from invocations.sandbox_hosts.reports import list_hosts
from invocations.service_levels.report import FAST_MS, SAMPLE, build_service_level_report
from kernel.components.numbers import format_number
from kernel.http.console import ConsoleRequest, needs, render_page

if TYPE_CHECKING:
    from django.http import HttpResponse

TITLES = {
    "schema_validation": gettext_lazy("Arguments and results validated against their schema"),
    "fast_preflight": gettext_lazy("Preflights within 5 ms"),
    "boxed_side_effects": gettext_lazy("Runs with a side effect that were in a box"),
    "paired_facts": gettext_lazy("Ended calls with Begin and End"),
    "known_results": gettext_lazy("Results without an unknown error"),
}


@require_GET
@needs("invocations.view")
def service_levels(request: ConsoleRequest) -> HttpResponse:
    """Context: report (Report of this tenant), rows (list of {title, level, share, objective}: both in percent), workers (int: hosts
    that report now), sample, fast_ms.
    """
    now = timezone.now()
    report = build_service_level_report(Invocation.objects.visible_to(request.principal), now)
    rows = [
        {
            "title": TITLES[level.name],
            "level": level,
            "share": format_percent(level.share),
            "objective": format_percent(level.objective),
        }
        for level in report.levels
    ]
    context = {
        "section": "service_levels",
        "report": report,
        "rows": rows,
        "workers": len(list_hosts(now)),
        "sample": SAMPLE,
        "fast_ms": FAST_MS,
    }
    return render_page(request, "service_levels/service_levels.html", context, partial="levels")


def format_percent(share: float) -> str:
    """Never rounded up to a whole that it is not: 99.996 % is not 100 %."""
    return format_number((Decimal(int(share * 100_00)) / 100).normalize())
