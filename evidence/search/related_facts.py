"""Related facts: what pages show of the facts about the thing that they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.archives.leaves import load_leaves_at_hand
from evidence.models import Fact, Snapshot, SnapshotKind
from evidence.problems import ValuesErased
from evidence.search.engine import find_by_tags
from evidence.search.tags import TagQuery, exact_span, exact_spans
from evidence.services import open_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.principal import Principal

AT_MOST = 50


def facts_about(by: Principal, *subjects: str, size: int = AT_MOST) -> list[Fact]:
    """The newest facts with one of these subjects, in the order in which they happened."""
    asked = TagQuery(wanted=[[exact_span("subject", each) for each in subjects]])
    return attach_free_text(find_by_tags(asked, tenant_id=by.tenant_id, size=size).rows[::-1])


def facts_naming(by: Principal, id: str, size: int = AT_MOST) -> list[Fact]:
    """The newest facts that name a thing by its id, whatever they are about, in the order in which they happened."""
    asked = TagQuery(wanted=[exact_spans("id", id)])
    return attach_free_text(find_by_tags(asked, tenant_id=by.tenant_id, size=size).rows[::-1])


def facts_around(by: Principal, id: str, size: int = AT_MOST) -> list[Fact]:
    """For who may browse evidence all that name the thing, its calls with it; for others what it was itself: who looked into calls,
    and why, is not for everybody."""
    return facts_naming(by, id, size) if by.may("evidence.view") else facts_about(by, id, size=size)


def attach_free_text(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact with ``words``: the reason, purpose or note that somebody wrote, unless it was erased. Of a fact whose leaf cannot be
    had there are its columns, and why (``leaf_problem``).
    """
    rows = list(facts)
    load_leaves_at_hand(rows)
    written = [fact.pk for fact in rows if b'"words":' in bytes(fact.leaf)]
    sealed = Snapshot.objects.filter(invocation_id__in=written, kind=SnapshotKind.WORDS)
    opened = {each.invocation_id: _opened(each) for each in sealed.select_related("subject_key__tenant_key")}
    for fact in rows:
        fact.words = opened.get(fact.pk, {})  # type: ignore[attr-defined]
    return rows


def _opened(snapshot: Snapshot) -> dict[str, str]:
    try:
        found: dict[str, str] = open_values(snapshot)
    except ValuesErased:
        return {}
    return found
