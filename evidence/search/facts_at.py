"""Facts at places: those that are these leaves of a log.

The statement finds each by its place and then by its id, whatever the places are, and a plan that is made for some of them is no
better than one for all. Made anew it has to look at the indexes of all months, which takes longer than to run it: so it is prepared.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import connection
from django.db.models.expressions import RawSQL

from evidence.models import Fact
from kernel.database.rows import PreparedQuery
from kernel.database.statement_limits import check_time_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

# In one parameter, so that the text is the same for any number of them.
_EACH = {"postgresql": "SELECT unnest(%s::bigint[])", "sqlite": "SELECT value FROM json_each(%s)"}


@cache
def _make_query(vendor: str, order: str) -> PreparedQuery[Fact]:
    def make(*, tenant: UUID, places: str) -> QuerySet[Fact]:
        each = RawSQL(_EACH[vendor], [places])  # noqa: S611  a constant
        rows = Fact.objects.filter(tenant_id=tenant, seal__tenant_id=tenant, seal__leaf_index__in=each)
        return rows.order_by(order)

    return PreparedQuery(make, tenant=UUID, places=str)


def read_facts_at(tenant_id: UUID, places: Sequence[int], *, newer: bool) -> list[Fact]:
    """In the order of the log, or newest first."""
    check_time_left()
    query = _make_query(connection.vendor, "seal__leaf_index" if newer else "-seal__leaf_index")
    asked = list(places) if connection.vendor == "postgresql" else json.dumps(list(places))
    tenant = Fact._meta.get_field("tenant_id").get_db_prep_value(tenant_id, connection)
    return query.all(tenant=tenant, places=asked)
