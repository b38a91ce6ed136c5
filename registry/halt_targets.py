"""Halt targets: whether there is anything here that a kill switch of this tool or version would stop.

:mod:`access.halts.services` throws and lifts. Only what the tenant publishes or has installed can be named: a misspelt name would look
as if something had been stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from access.halts import services as halts
from access.models import Halt, Reach
from kernel.ids import decode
from kernel.problems import StateUnfit
from registry.models import Installation, Tool, ToolVersion

if TYPE_CHECKING:
    from kernel.principal import Principal


def check_target_is_here(reach: Reach, target: str, *, by: Principal) -> None:
    if reach is Reach.TOOL:
        found = (
            Tool.objects.visible_to(by).filter(name=target).exists()
            or Installation.objects.visible_to(by).filter(name=target).exists()
        )
    elif reach is Reach.VERSION:
        here = Q(tool__tenant_id=by.tenant_id) | Q(tool__installations__tenant_id=by.tenant_id)
        found = ToolVersion.objects.filter(here, pk=decode("tvn", target)).exists()
    else:
        return
    if not found:
        raise StateUnfit.at("/target", f"This tenant neither publishes nor has installed a {reach} {target[:128]}.")


def throw_halt(*, reach: Reach, reason: str, by: Principal, target: str = "") -> Halt:
    """Stop everything within ``reach`` at once: the next call is refused, in every process."""
    target = halts.checked_target(reach, target, by=by)
    check_target_is_here(reach, target, by=by)
    return halts.throw_halt(reach=reach, reason=reason, target=target, by=by)
