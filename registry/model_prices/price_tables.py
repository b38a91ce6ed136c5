"""Price tables: the one that belongs to each version of a tenant's prices.

A version never changes, so it is read once a process and kept by its id: there is nothing to invalidate. Who prices a call reads the
id of the version in force with the provider of the model, so a change counts with the next call everywhere.
"""

from __future__ import annotations

from threading import Lock
from uuid import UUID

from django.db.models import OuterRef, Subquery

from kernel.database.rows import PreparedQuery
from llm.prices import PriceTable
from registry.models import ModelPrices

MAX_TABLES = 256
PACKAGED = PriceTable()  # of a tenant that has set none: the prices of the package, in US dollars
VERSION_IN_FORCE = PreparedQuery(
    lambda tenant_id: ModelPrices.objects.filter(tenant_id=tenant_id).order_by("-number").only("pk")[:1], tenant_id=UUID
)
_tables: dict[UUID, PriceTable] = {}
_lock = Lock()


def build_version_subquery(tenant: str) -> Subquery:
    """The id of the version in force, in a query for rows of a tenant; ``tenant``: the field with its id."""
    rows = ModelPrices.objects.filter(tenant_id=OuterRef(tenant)).order_by("-number")
    return Subquery(rows.values("pk")[:1])


def find_price_table(version_id: UUID | None) -> PriceTable:
    """The prices of a version; of none those of the package."""
    if version_id is None:
        return PACKAGED
    found = _tables.get(version_id)
    return found if found is not None else get_price_table(ModelPrices.objects.get(pk=version_id))


def get_price_table(row: ModelPrices | None) -> PriceTable:
    """The prices of a version that is at hand; of none those of the package."""
    if row is None:
        return PACKAGED
    found = _tables.get(row.pk)
    if found is None:
        found = PriceTable.read(row.document)
        with _lock:
            while len(_tables) >= MAX_TABLES:
                del _tables[next(iter(_tables))]  # the one that was read first
            _tables[row.pk] = found
    return found


def forget_price_tables() -> None:
    """Start as a new process does."""
    with _lock:
        _tables.clear()
