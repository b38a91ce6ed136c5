"""Finder of calls: by an id of the call, of its request or of its trace, or by an idempotency key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from evidence.search.engine import find_facts
from evidence.search.language import Query, Term
from evidence.search.name_resolution import names_in
from invocations.call_search.selectors import find_ids
from invocations.models import Invocation
from kernel.components.labels import STATUS, read_outcome
from kernel.http.finders import Finder, FoundThing

if TYPE_CHECKING:
    from kernel.principal import Principal

_PASTED = re.compile(r"[A-Za-z0-9._:-]{8,255}")
_TRACE = re.compile(r"(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?")


def match_call(text: str, by: Principal) -> Q | None:
    """What looks like an id. A trace, or a whole ``traceparent``, is looked up in the index of facts."""
    if trace := _TRACE.fullmatch(text.lower()):
        facts = find_facts(Query((Term("trace", trace[1]),)), tenant_id=by.tenant_id, names=names_in(by.tenant_id))
        return Q(pk__in=[row.invocation_id for row in facts.rows if row.invocation_id])
    if not _PASTED.fullmatch(text):
        return None
    return Q(pk__in=find_ids(text, by.tenant_id))


FINDER = Finder(
    noun=gettext_lazy("Calls"),
    icon="list-tree",
    permission="invocations.view",
    order=100,
    prefix="inv",
    rows=lambda by: Invocation.objects.visible_to(by).only("tool", "state", "reason", "created_at"),
    match=match_call,
    show=lambda call: FoundThing(
        f"{call.tool} {call.created_at:%Y-%m-%d %H:%M}",
        reverse("invocation", args=[call.pk]),
        STATUS[read_outcome(call.state, call.reason)][2],
    ),
)
