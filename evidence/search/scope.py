"""Scope: facts by what people know of them, the days and who did it, as the search language and as leaves of the log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils import timezone

from evidence.models import Seal
from evidence.search.language import Term
from kernel.ids import lowest_id

if TYPE_CHECKING:
    from uuid import UUID


@dataclass(frozen=True, slots=True)
class FactScope:
    """``since`` and ``until``: days where the reader is, both among them. ``who``: the id of a person or an agent; ``user``: of the
    person for whom an agent called.
    """

    since: date | None = None
    until: date | None = None
    who: str = ""
    user: str = ""

    @property
    def begins_at(self) -> datetime | None:
        return _begin_of(self.since) if self.since else None

    @property
    def ends_at(self) -> datetime | None:
        """None also of the last day that there is: nothing comes after it."""
        return _begin_of(self.until + timedelta(days=1)) if self.until and self.until < date.max else None

    def to_query(self, more: str = "") -> str:
        """As the search language says it, with ``more`` terms behind."""
        terms = []
        if self.who:
            terms.append(Term("agent" if self.who.startswith("agt_") else "actor", self.who))
        if self.user:
            terms.append(Term("user", self.user))
        if self.begins_at:
            terms.append(Term("after", self.begins_at.isoformat()))
        if self.ends_at:
            terms.append(Term("before", self.ends_at.isoformat()))
        return " ".join([*map(str, terms), more.strip()]).strip()

    def find_leaves(self, tenant_id: UUID) -> tuple[int, int] | None:
        """The shortest range of leaves that holds all of these facts: its first and what follows its last. None: no leaf is one.

        Of whom a call was for only its hash is in the log, so ``user`` is not asked here.
        """
        sought = Q(tenant_id=tenant_id)
        if self.begins_at:
            sought &= Q(fact_id__gte=lowest_id(self.begins_at))
        if self.ends_at:
            sought &= Q(fact_id__lt=lowest_id(self.ends_at))
        if self.who:
            sought &= Q(fact__actor_id=self.who)
        found = Seal.objects.filter(sought).order_by("leaf_index").values_list("leaf_index", flat=True)
        first, last = found.first(), found.last()
        return None if first is None or last is None else (first, last + 1)


def _begin_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
