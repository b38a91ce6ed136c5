"""Pages of sandbox hosts: how people see what the sandboxes do."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from django.views.decorators.http import require_GET

from access.models import Tenant
from invocations.sandbox_hosts.reports import list_hosts
from kernel.database.connections import database_time
from kernel.database.tenancy import hub_wide
from kernel.http.console import ConsoleRequest, needs, render_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpResponse

    from invocations.models import SandboxHost
    from invocations.sandbox.stats import SandboxSnapshot

MOVING = ("creating", "loading", "busy", "retiring")


@dataclass(frozen=True, slots=True)
class HostView:
    """One process that owns sandboxes. ``boxes``: those that the one who looks may know more of than that they exist."""

    host: SandboxHost
    snapshot: SandboxSnapshot
    boxes: list[dict[str, Any]]  # as BoxView, with age_ms and tenant_name
    hidden: int
    calls: list[tuple[str, int, dict[str, int]]]  # by level: how many, and by status


def _sum(parts: Iterable[dict[str, int]]) -> list[tuple[str, int]]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return sorted((name, number) for name, number in total.items() if number)


def _names_of_tenants() -> dict[str, str]:
    with hub_wide():
        return {str(pk): name for pk, name in Tenant.objects.values_list("pk", "name")}


@require_GET
@needs("invocations.view")
def sandbox_list(request: ConsoleRequest) -> HttpResponse:
    """Context: hosts (list of HostView), states, kills, retired ((name, number) of all), waiting, refills,
    cold_starts, failed, moving (whether to look again soon), sees_all. Boxes of other tenants are counted and not shown.
    """
    sees_all = request.principal.may("hub.manage")
    mine = str(request.principal.tenant_id)
    tenants = _names_of_tenants() if sees_all else {}
    found = []
    for host, snapshot in list_hosts(database_time()):
        boxes = [
            asdict(box) | {"age_ms": box.age_s * 1000, "tenant_name": tenants.get(box.tenant, "")}
            for box in snapshot.boxes
            if sees_all or box.tenant in ("", mine)
        ]
        calls = [(level, sum(ends.values()), ends) for level, ends in snapshot.calls.items()]
        found.append(HostView(host, snapshot, boxes, len(snapshot.boxes) - len(boxes), calls))
    all_of_them = [each.snapshot for each in found]
    states = dict(_sum(each.states for each in all_of_them))
    context = {
        "section": "sandboxes",
        "hosts": found,
        "states": [
            (state, states.get(state, 0)) for state in ("ready", "loading", "loaded", "busy", "creating", "retiring")
        ],
        "kills": _sum(each.kills for each in all_of_them),
        "retired": _sum(each.retired for each in all_of_them),
        "waiting": sum(each.waits.now for each in all_of_them),
        "refills": sum(each.refills for each in all_of_them),
        "cold_starts": sum(each.cold_starts for each in all_of_them),
        "failed": sum(each.failed_starts + each.failed_refills for each in all_of_them),
        "moving": any(states.get(state) for state in MOVING),
        "sees_all": sees_all,
    }
    return render_page(request, "sandbox_hosts/sandboxes.html", context, partial="now")
