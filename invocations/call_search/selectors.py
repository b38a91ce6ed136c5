"""Call search selectors: the calls that a query finds.

The language is that of facts (:mod:`evidence.search.language`), and a term means the same; but a fact is one of several about a call,
and here a call is one row: what was decided and how it went are found together, also of a call that has not ended. Read from the rows
themselves, so there is no index that could be behind. What no row says is refused, with where to look instead.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils.translation import gettext as _

from evidence.problems import SearchInvalid
from evidence.search.engine import build_window, check_own_tenant
from evidence.search.name_resolution import HASHED, names_in
from evidence.services import compute_fingerprint
from invocations.models import Invocation
from kernel.ids import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from evidence.search.language import Query, Term
    from invocations.models import InvocationQuerySet
    from kernel.principal import Principal

ALL = "evidence:read"  # the scope of a key that sees the calls of all agents
OF_TIME = ("after", "before", "tenant")  # narrow all terms


def visible_calls(by: Principal) -> InvocationQuerySet:
    """People see their tenant's calls; an agent its own, or with ``evidence:read`` all of the tenant, as it sees all facts."""
    if by.agent_id and by.may(ALL):
        return Invocation.objects.filter(tenant_id=by.tenant_id)
    return Invocation.objects.visible_to(by)


def find_calls(query: Query, *, by: Principal) -> InvocationQuerySet:
    check_own_tenant(query, by.tenant_id)
    _check_terms(query)
    rows = visible_calls(by).filter(build_window(query, now=datetime.now(UTC), zone=UTC).condition("pk"))
    alternatives: dict[str, Q] = {}
    for term in query.terms:
        if term.name in OF_TIME:
            continue
        meant = CONDITIONS[term.name](term, by.tenant_id)
        if term.negated:
            rows = rows.exclude(meant)
        elif term.name:
            alternatives[term.name] = alternatives.get(term.name, Q()) | meant
        else:
            rows = rows.filter(meant)
    for each in alternatives.values():
        rows = rows.filter(each)
    return rows


def _check_terms(query: Query) -> None:
    text, wrong = str(query), []
    for term in query.terms:
        if term.name not in CONDITIONS and term.name not in OF_TIME:
            message = _("%(name)s finds facts, and no calls.") % {"name": f"{term.name}:"}
            at = text.index(str(term))
            instead = f"GET /api/v1/evidence/facts?q={term}"
            wrong.append({"at": at, "length": len(str(term)), "message": message, "instead": instead})
    if wrong:
        raise SearchInvalid.at(text, wrong)


def _column(column: str) -> Callable[[Term, UUID], Q]:
    return lambda term, _tenant: Q(**{f"{column}__startswith" if term.starts else column: term.value})


def _read_id(text: str) -> UUID | None:
    try:
        return decode(text[:3], text)
    except ValueError:
        return None


def _row(prefix: str, column: str) -> Callable[[Term, UUID], Q]:
    return lambda term, _tenant: Q(**{column: decode(prefix, term.value)})


def _of_agent(term: Term, tenant_id: UUID) -> Q:
    found = [term.value, *names_in(tenant_id).agents(term.value, term.starts)]
    return Q(agent__in=[id for each in found if each.startswith("agt_") and (id := _read_id(each))])


def _of_answer(term: Term, tenant_id: UUID) -> Q:
    if term.value.startswith("inv_"):
        return _row("inv", "proposed_by")(term, tenant_id)
    if term.starts and not term.value:
        return Q(proposed_by__isnull=False)
    return _column("proposed_by__tool")(term, tenant_id)


def _of_user(term: Term, tenant_id: UUID) -> Q:
    """Of a keyed hash, which only facts have, no row says anything."""
    if term.value.startswith(HASHED):
        return Q(pk__in=[])
    return Q(user_fingerprint=compute_fingerprint(term.value.encode(), tenant_id=tenant_id))


def _of_word(term: Term, tenant_id: UUID) -> Q:
    """A part of a tool's name between dots, or its beginning; an agent's name; a reason; an id of the caller's; an id, pasted."""
    word, starts = term.value, term.starts
    if (column := _COLUMN_OF_ID.get(word[:3])) and (id := _read_id(word)):
        return Q(**{column: id})
    low = word.lower()
    found = Q(tool__startswith=low) if starts or "." in word else _between_dots(low)
    found |= Q(tool__contains=f".{low}") if starts else Q()
    found |= Q(request_id=word) | Q(idempotency_key=word)
    found |= Q(reason__startswith=word.upper()) if starts else Q(reason=word.upper())
    return found | _of_agent(term, tenant_id)


def _between_dots(part: str) -> Q:
    return Q(tool=part) | Q(tool__startswith=f"{part}.") | Q(tool__endswith=f".{part}") | Q(tool__contains=f".{part}.")


_COLUMN_OF_ID = {
    "inv": "pk",
    "chn": "chain_step__chain",
    "run": "run_step__run",
    "cns": "consent",
    "grt": "grant",
    "agt": "agent",
}
CONDITIONS: Mapping[str, Callable[[Term, UUID], Q]] = {
    "": _of_word,
    "tool": _column("tool"),
    "agent": _of_agent,
    "outcome": _column("state"),
    "code": _column("reason"),
    "call": _row("inv", "pk"),
    "chain": _row("chn", "chain_step__chain"),
    "run": _row("run", "run_step__run"),
    "consent": _row("cns", "consent"),
    "grant": _row("grt", "grant"),
    "proposed_by": _of_answer,
    "user": _of_user,
}
