"""Tenant order: whose work the one builder of a host takes next, of all tenants that have some waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Exists, F, OuterRef, Subquery
from django.db.models.functions import Coalesce

from kernel.database.connections import database_time

if TYPE_CHECKING:
    from django.db.models import QuerySet


def order_by_turn(waiting: QuerySet[Any], *, tenant: str, served: QuerySet[Any], served_at: str) -> QuerySet[Any]:
    """Who asks for much is in nobody's way: the turn is that of the tenant that was served longest ago, or asked first.

    What was put off counts as served until its pause is over: else who has much that cannot be done now would be in the way again.
    ``tenant``: the column of the tenant; ``served``: the rows that a worker has been at, and ``served_at`` until when.
    """
    of_tenant = {tenant: OuterRef(tenant)}
    leased = waiting.model._default_manager.filter(**of_tenant, lease_until__gt=database_time())
    last = served.filter(**of_tenant).order_by(f"-{served_at}").values(served_at)[:1]
    told = waiting.annotate(is_served=Exists(leased), served_at=Coalesce(Subquery(last), F("changed_at")))
    ordered: QuerySet[Any] = told.order_by("is_served", "served_at", "changed_at")
    return ordered
