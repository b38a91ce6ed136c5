"""Saved searches: how searches are kept that somebody makes again.

They decide nothing and witness nothing, so they leave no facts. A person's id in a query is kept as its keyed hash, as facts have it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import Q

from evidence.models import SavedSearch
from evidence.search.engine import check_own_tenant
from evidence.search.language import MAX_CHARACTERS, Query, parse
from evidence.search.name_resolution import keyed_hash
from kernel.problems import Conflict, Forbidden, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from kernel.principal import Principal

MAX_NAME = 60
MOST = 50  # of one person


def visible_searches(by: Principal) -> QuerySet[SavedSearch]:
    """One's own, and those that others share with the tenant."""
    mine = Q(owner=by.id) | Q(shared=True)
    return SavedSearch.objects.filter(mine, tenant_id=by.tenant_id).order_by("name", "pk")


def may_change(search: SavedSearch, by: Principal) -> bool:
    return search.owner == by.id or (search.shared and by.may("members.manage"))


def check_can_change(search: SavedSearch, by: Principal) -> None:
    if not may_change(search, by):
        raise Forbidden(
            "This search belongs to somebody else.", remedy="Ask whoever saved it, or save one of your own."
        )


def _checked_name(name: str) -> str:
    if not name.strip() or len(name.strip()) > MAX_NAME:
        raise SchemaInvalid.at("/name", f"Give the search a name of at most {MAX_NAME} characters.")
    return name.strip()


def _hashed(query: Query, tenant_id: UUID) -> Query:
    return Query(
        tuple(
            replace(term, value=keyed_hash(tenant_id, term.value)) if term.name == "user" else term
            for term in query.terms
        )
    )


def save_search(*, name: str, query: str, shared: bool, by: Principal) -> SavedSearch:
    said = _hashed(parse(query), by.tenant_id)
    if not said.terms:
        raise SchemaInvalid.at("/query", "There is no search to save: write one first.")
    check_own_tenant(said, by.tenant_id)
    if len(str(said)) > MAX_CHARACTERS:
        raise SchemaInvalid.at("/query", "With the hashes of the people it names this search is too long to be saved.")
    if SavedSearch.objects.filter(tenant_id=by.tenant_id, owner=by.id).count() >= MOST:
        raise Conflict(f"You have saved {MOST} searches already.", remedy="Delete one that you need no more.")
    row = SavedSearch(tenant_id=by.tenant_id, owner=by.id, name=_checked_name(name), query=str(said), shared=shared)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise SchemaInvalid.at("/name", "You have saved a search of this name already.") from error
    return row


def change_search(*, search_id: UUID, name: str, shared: bool, by: Principal) -> SavedSearch:
    row = visible_searches(by).get(pk=search_id)
    check_can_change(row, by)
    row.name, row.shared = _checked_name(name), shared
    try:
        with transaction.atomic():
            row.save(update_fields=["name", "shared"])
    except IntegrityError as error:
        raise SchemaInvalid.at("/name", "There is a search of this name already.") from error
    return row


def delete_search(*, search_id: UUID, by: Principal) -> None:
    row = visible_searches(by).get(pk=search_id)
    check_can_change(row, by)
    SavedSearch.objects.filter(pk=row.pk).delete()
