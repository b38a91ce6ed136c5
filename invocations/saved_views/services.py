"""Saved views: kept, listed and removed by whom they belong to.

They decide nothing and witness nothing, so they leave no facts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from evidence.search.language import MAX_CHARACTERS, Query
from evidence.search.name_resolution import HASHED
from evidence.services import compute_fingerprint
from invocations.call_search.language import parse_calls
from invocations.call_search.selectors import check_calls
from invocations.saved_views.models import SavedView
from kernel.problems import Conflict, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from kernel.principal import Principal

MAX_NAME = 60
MAX_SLUG = 80
MOST = 50  # of one person


def own_views(by: Principal) -> QuerySet[SavedView]:
    return SavedView.objects.filter(tenant_id=by.tenant_id, owner=by.id).order_by("name", "pk")


def save_view(*, name: str, query: str, by: Principal) -> SavedView:
    """Keep a search. One of the same name is replaced."""
    name = name.strip()
    if not name or len(name) > MAX_NAME:
        raise SchemaInvalid.at("/name", f"Give the view a name of at most {MAX_NAME} characters.")
    asked = _hash_users(parse_calls(query), by.tenant_id)
    if not asked.terms:
        raise SchemaInvalid.at("/query", "There is no search to save: write one first.")
    check_calls(asked, by=by)
    if len(str(asked)) > MAX_CHARACTERS:
        raise SchemaInvalid.at("/query", "With the hashes of the people it names this search is too long to be saved.")
    kept = list(own_views(by))
    if same := next((row for row in kept if row.name.casefold() == name.casefold()), None):
        same.name, same.query = name, str(asked)
        same.save(update_fields=["name", "query"])
        return same
    if len(kept) >= MOST:
        raise Conflict(f"You have saved {MOST} views already.", remedy="Delete one that you need no more.")
    slug = _choose_slug(name, {row.slug for row in kept})
    row = SavedView(tenant_id=by.tenant_id, owner=by.id, slug=slug, name=name, query=str(asked))
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict("You saved another view of that name at the same moment.", remedy="Save it again.") from error
    return row


def _choose_slug(name: str, taken: set[str]) -> str:
    """Of the address. Other names may have the same one, and get a number."""
    # What a letter stands for may be many: U+FDFA is eighteen of them.
    slug = slugify(name, allow_unicode=True)[:MAX_SLUG] or "view"
    return next(found for n in count(1) if (found := slug if n == 1 else _number(slug, n)) not in taken)


def _number(slug: str, n: int) -> str:
    return f"{slug[: MAX_SLUG - len(f'-{n}')]}-{n}"


def _hash_users(query: Query, tenant_id: UUID) -> Query:
    """A person's id is kept as rows of calls have it."""

    def hashed(value: str) -> str:
        return value if value.startswith(HASHED) else compute_fingerprint(value.encode(), tenant_id=tenant_id)

    return Query(
        tuple(replace(term, value=hashed(term.value)) if term.name == "user" else term for term in query.terms)
    )


def delete_view(*, view_id: UUID, by: Principal) -> None:
    own_views(by).get(pk=view_id).delete()
