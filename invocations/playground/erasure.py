"""Erasure of playgrounds: whose conversation it was is forgotten with the person. Its words go with their runs and calls."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evidence.erasures.holders import ERASED, HOLDERS
from evidence.services import compute_fingerprint
from invocations.playground.models import PlaygroundConversation

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from evidence.erasures.holders import ErasureSubject
    from kernel.principal import Principal


def _find_conversations(who: ErasureSubject) -> QuerySet[PlaygroundConversation]:
    """Their rows hold the id of the person, an erasure its keyed hash."""
    rows = PlaygroundConversation.objects.filter(tenant_id=who.tenant_id).exclude(person=ERASED)
    people = rows.order_by("person").values_list("person", flat=True).distinct()
    theirs = [each for each in people if compute_fingerprint(each.encode(), tenant_id=who.tenant_id) == who.subject]
    return rows.filter(person__in=theirs)


class ConversationHolder:
    """The holder of conversations that a person has begun (:mod:`evidence.erasures.holders`)."""

    def count(self, who: ErasureSubject) -> Counter[str]:
        return +Counter(conversations=_find_conversations(who).count())

    def end_open(self, who: ErasureSubject, *, by: Principal) -> bool:
        """What is being answered is ended with the calls."""
        del who, by
        return False

    def remove(self, who: ErasureSubject, *, limit: int) -> Counter[str]:
        next_rows = _find_conversations(who).order_by("pk").values_list("pk", flat=True)[:limit]
        gone = PlaygroundConversation.objects.filter(pk__in=list(next_rows)).update(person=ERASED)
        return +Counter(conversations=gone)


HOLDERS.append(ConversationHolder())
