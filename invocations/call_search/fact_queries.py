"""Fact queries: a search of calls in the words of the search for facts, so that the evidence of the found calls can be exported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from evidence.search.language import Query, Term, fix_days
from invocations.call_search.language import OF_BOTH
from invocations.models import FINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMER = {"for": "agent", "state": "outcome"}  # what facts call it


def build_export_address(query: Query) -> str:
    """The form of an export of these calls, filled in; "" where facts cannot be searched for what the query asks."""
    terms = list(_translate(query))
    if len(terms) < len(query.terms):
        return ""
    said = fix_days(Query((Term("kind", "invocation.", starts=True), *terms)), timezone.get_current_timezone())
    return f"{reverse('export_new')}?{urlencode({'query': str(said)})}"


def _translate(query: Query) -> Iterator[Term]:
    for term in query.terms:
        named = replace(term, name=FORMER.get(term.name, term.name))
        if named.name in (*OF_BOTH, "call") or (named.name == "outcome" and term.value in FINAL):
            yield named
