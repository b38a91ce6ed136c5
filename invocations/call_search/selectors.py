"""Call search selectors: the calls that a query finds.

The language is that of facts (:mod:`evidence.search.language`), and a term means the same; but a fact is one of several about a call,
and here a call is one row: what was decided and how it went are found together, also of a call that has not ended. Read from the rows
themselves, so there is no index that could be behind. What no row says is refused, with where to look instead.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db.models import F, Q
from django.utils.translation import gettext as _

from access.models import Agent, Grant
from evidence.problems import SearchInvalid
from evidence.search.engine import build_window, check_own_tenant, find_facts
from evidence.search.language import Query
from evidence.search.name_resolution import HASHED, names_in
from evidence.services import compute_fingerprint
from invocations.call_costs.models import CallCost
from invocations.call_outcomes import CallOutcome, build_outcome_filter, build_state_filter
from invocations.call_search.language import read_amount, read_length
from invocations.call_search.problem_words import find_reasons, list_reasons
from invocations.call_search.tool_names import find_tool_names
from invocations.models import FINAL, Invocation, State
from invocations.unfinished_calls.models import build_unfinished_filter
from kernel.ids import decode
from registry.models import ToolVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import tzinfo
    from uuid import UUID

    from evidence.search.language import Term
    from invocations.models import InvocationQuerySet
    from kernel.principal import Principal

ALL = "evidence:read"  # the scope of a key that sees the calls of all agents
OF_TIME = ("after", "before", "tenant")  # narrow all terms
MOST_BY_ID = 200  # calls of one request, key or trace
SHORTEST_ID = 8
UNFINISHED = {*State.values, CallOutcome.OPEN} - FINAL
LIMIT_MS = 2_000  # for the rows, with what is looked up for them; and once more for what is counted of them


def visible_calls(by: Principal) -> InvocationQuerySet:
    """People see their tenant's calls; an agent its own, or with ``evidence:read`` all of the tenant, as it sees all facts."""
    if by.agent_id and by.may(ALL):
        return Invocation.objects.filter(tenant_id=by.tenant_id)
    return Invocation.objects.visible_to(by)


def find_calls(query: Query, *, by: Principal, zone: tzinfo = UTC) -> InvocationQuerySet:
    """``zone``: that of times without one."""
    check_calls(query, by=by)
    rows = visible_calls(by).filter(build_window(query, now=datetime.now(UTC), zone=zone).condition("pk"))
    return rows.filter(
        build_condition(query, by.tenant_id), *([build_unfinished_filter()] if _asks_for_unfinished(query) else [])
    )


def _asks_for_unfinished(query: Query) -> bool:
    """Whether it finds calls alone that have not ended. The condition does not say it, since counted hours are asked by it too."""
    terms = [term for term in query.terms if not term.negated]
    asked = [{term.value for term in terms if term.name == name} for name in ("state", "outcome")]
    return any(values and values <= UNFINISHED for values in asked)


def check_calls(query: Query, *, by: Principal) -> None:
    check_own_tenant(query, by.tenant_id)
    _check_terms(query)


def build_condition(query: Query, tenant_id: UUID) -> Q:
    """What the terms ask for, but for the times."""
    found = Q()
    alternatives: dict[str, Q] = {}
    for term in query.terms:
        if term.name in OF_TIME:
            continue
        meant = CONDITIONS[term.name](term, tenant_id)
        if term.negated:
            found &= ~meant
        elif term.name:
            alternatives[term.name] = alternatives[term.name] | meant if term.name in alternatives else meant
        else:
            found &= meant
    for each in alternatives.values():
        found &= each
    return found


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
    """A keyed hash as rows have it, which saved views say; of that which only facts have, no row says anything."""
    if term.value.startswith(HASHED):
        return Q(user_fingerprint=term.value)
    return Q(user_fingerprint=compute_fingerprint(term.value.encode(), tenant_id=tenant_id))


def _of_outcome(term: Term, _tenant_id: UUID) -> Q:
    if term.value in CallOutcome.values and term.value not in State.values:
        outcome = CallOutcome(term.value)
        return ~Q(state__in=sorted(FINAL)) if outcome is CallOutcome.OPEN else build_outcome_filter(outcome)
    return build_state_filter(term.value) if term.value in FINAL else Q(state=term.value)


def _of_code(term: Term, _tenant_id: UUID) -> Q:
    """By reasons that there are: no index finds the beginning of one."""
    codes = [reason for reason in list_reasons() if reason.startswith(term.value)] if term.starts else [term.value]
    return _met(codes)


def _met(reasons: list[str]) -> Q:
    """The index by reason has the calls that met a problem, and is used only if this is said."""
    return Q(reason__in=reasons) & ~Q(reason="")


def _of_version(term: Term, _tenant_id: UUID) -> Q:
    said = {"version__startswith" if term.starts else "version": term.value}
    return Q(version__in=ToolVersion.objects.filter(**said).values("pk"))


def _of_length(term: Term, _tenant_id: UUID) -> Q:
    more, length = read_length(term.value)
    return Q(**{f"finished_at__{'gt' if more else 'lt'}": F("created_at") + length})


def _of_cost(term: Term, tenant_id: UUID) -> Q:
    more, micros = read_amount(term.value)
    asked = {f"micros__{'gt' if more else 'lt'}": micros}
    return Q(pk__in=CallCost.objects.filter(tenant_id=tenant_id, **asked).values("invocation_id"))


def _of_trace(term: Term, tenant_id: UUID) -> Q:
    """By the index of facts: rows are in none by their trace."""
    found = find_facts(Query((term,)), tenant_id=tenant_id, names=names_in(tenant_id), size=MOST_BY_ID)
    return Q(pk__in={row.invocation_id for row in found.rows if row.invocation_id})


def _of_whom(term: Term, tenant_id: UUID) -> Q:
    who = {"tenant_id": tenant_id, "name": term.value}
    agents = [row.pk for row in Agent.objects.filter(**who)]
    return Q(agent__in=agents) | Q(grant__in=Grant.objects.handed_on_from(agent__in=agents))


def _of_problem(term: Term, _tenant_id: UUID) -> Q:
    return _met(find_reasons(term.value, starts=term.starts))


def _of_word(term: Term, tenant_id: UUID) -> Q:
    """A part of a tool's name between dots, or its beginning; an agent's name; a reason, or a word of a problem; an id of its request;
    an id, pasted. Each is looked up first, so that what remains are columns with an index.
    """
    word, starts = term.value, term.starts
    if (column := _COLUMN_OF_ID.get(word[:3])) and (id := _read_id(word)):
        return Q(**{column: id})
    found = Q(pk__in=find_ids(word, tenant_id))
    if tools := find_tool_names(word.lower(), tenant_id=tenant_id, starts=starts):
        found |= Q(tool__in=tools)
    if reasons := find_reasons(word, starts=starts):
        found |= _met(reasons)
    return found | _of_agent(term, tenant_id)


def find_ids(word: str, tenant_id: UUID) -> list[UUID]:
    """Of the calls whose request has this id, or this idempotency key: each is asked by itself, by the index that it has."""
    if len(word) < SHORTEST_ID:
        return []
    agents = Agent.objects.filter(tenant_id=tenant_id).values("pk")
    requests = Invocation.objects.filter(agent__in=agents, request_id=word).values_list("pk", flat=True)
    keyed = Invocation.objects.exclude(idempotency_key="").filter(tenant_id=tenant_id, idempotency_key=word)
    return [*requests[:MOST_BY_ID], *keyed.values_list("pk", flat=True)[:MOST_BY_ID]]


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
    "outcome": _of_outcome,
    "state": _of_outcome,
    "problem": _of_problem,
    "version": _of_version,
    "took": _of_length,
    "cost": _of_cost,
    "for": _of_whom,
    "origin": _column("origin"),
    "dry": lambda term, _tenant: Q(dry_run=term.value == "yes"),
    "trace": _of_trace,
    "code": _of_code,
    "call": _row("inv", "pk"),
    "chain": _row("chn", "chain_step__chain"),
    "run": _row("run", "run_step__run"),
    "consent": _row("cns", "consent"),
    "grant": _row("grt", "grant"),
    "proposed_by": _of_answer,
    "user": _of_user,
}
