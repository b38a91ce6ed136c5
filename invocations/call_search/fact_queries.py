"""Fact queries: a list of calls, as it is filtered, in the words of the search for facts, so that its evidence can be exported."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from evidence.search.language import Term
from invocations.models import FINAL

if TYPE_CHECKING:
    from collections.abc import Mapping

TERMS = {"tool": "tool", "agent": "agent", "reason": "code", "state": "outcome"}
DAYS = {"from": "since", "to": "until"}
DAY = len("2026-11-30")


def build_export_address(filters: Mapping[str, str]) -> str:
    """The form of an export of these calls, filled in; "" where facts cannot be searched for what a filter asks."""
    others = [name for name, value in filters.items() if value and name not in (*TERMS, *DAYS)]
    if others or (filters.get("state") and filters["state"] not in FINAL):
        return ""
    terms = [Term("kind", "invocation.", starts=True)]
    terms += [Term(TERMS[name], value) for name, value in filters.items() if value and name in TERMS]
    said = {"query": " ".join(map(str, terms))}
    said |= {DAYS[name]: value[:DAY] for name, value in filters.items() if value and name in DAYS}
    return f"{reverse('export_new')}?{urlencode(said)}"
