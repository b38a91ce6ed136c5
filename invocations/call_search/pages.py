"""Page of call search: the list of calls, found by a query, with what the found ones have in common and when they were made.

All of its state is in the address: what somebody sees can be sent to somebody else, and Back goes back to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.http import HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from evidence.problems import SearchInvalid
from evidence.search.language import Query, Term
from invocations.call_search.columns import COOKIE, LABELS, read_columns, write_columns
from invocations.call_search.facets import Facet, list_facets
from invocations.call_search.fact_queries import build_export_address
from invocations.call_search.histogram import Stretch, choose_stretch, count_columns, draw_histogram
from invocations.call_search.language import OF_CALLS, parse_calls
from invocations.call_search.sample import MOST, CallSample, take_sample
from invocations.call_search.selectors import LIMIT_MS, find_calls
from invocations.saved_views.services import own_views
from kernel.database.statement_limits import StatementTooLong, limit_statements
from kernel.http.console import ConsoleRequest, find_way_back, needs, render_page
from kernel.http.pagination import Page, fetch_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponse

    from invocations.models import Invocation, InvocationQuerySet
    from kernel.components.stacked_chart import StackedChart
    from kernel.principal import Principal

YEAR_S = 365 * 24 * 60 * 60
VIEWS = ("calls", "groups")
# What other pages and charts ask by, as terms of the language.
FORMER = {"state": "state", "outcome": "outcome", "tool": "tool", "agent": "for", "reason": "code"}
# What operators ask first.
SHORTCUTS = (
    (gettext_lazy("Failed"), "outcome:faulty"),
    (gettext_lazy("Denied"), "outcome:denied"),
    (gettext_lazy("Outcome unknown"), "outcome:outcome_unknown"),
    (gettext_lazy("Not ended yet"), "outcome:under_way"),
    (gettext_lazy("Slow"), "took:>10s"),
    (gettext_lazy("Last day"), "after:24h"),
)
SHOWN = (
    *("state", "agent__name", "tool", "version__version", "origin", "dry_run", "request_id", "idempotency_key"),
    *("reason", "policy_version", "trace", "chain_step_id", "run_step_id", "created_at", "finished_at", "attempt"),
    *("cost__micros", "cost__currency", "tenant_id"),
)


@dataclass(slots=True)
class CallList:
    """What is shown of a search. ``is_too_broad``: its rows could not be found in the time there is; ``is_uncounted``: they were, and
    could not be counted."""

    page: Page[Invocation] = field(default_factory=lambda: Page([], ""))
    sample: CallSample = field(default_factory=CallSample)
    facets: list[Facet] = field(default_factory=list)
    chart: StackedChart | None = None
    stretch: Stretch | None = None
    is_too_broad: bool = False
    is_uncounted: bool = False


def query_text(request: ConsoleRequest) -> str:
    """The query as it was written, with what other pages ask by."""
    said = [request.GET.get("q", "").strip()]
    for name, qualifier in FORMER.items():
        if value := request.GET.get(name, "").strip():
            said.append(str(Term(qualifier, value)))
    if since := request.GET.get("from", "").strip():
        said.append(str(Term("after", since)))
    if until := request.GET.get("to", "").strip():
        said.append(str(Term("before", _next_day(until))))
    return " ".join(said).strip()


def _next_day(text: str) -> str:
    """A day is meant with all of it; a moment is one."""
    try:
        return (date.fromisoformat(text) + timedelta(days=1)).isoformat() if len(text) == len("2026-11-29") else text
    except (ValueError, OverflowError):
        return text


def load_calls(query: Query, *, by: Principal, after: str, groups: bool, link: Callable[[Query], str]) -> CallList:
    found, zone = CallList(), timezone.get_current_timezone()
    try:
        with limit_statements(LIMIT_MS):
            rows = find_calls(query, by=by, zone=zone)
            found.page = _fetch(rows, after) if not groups else found.page
    except StatementTooLong:
        found.is_too_broad = True
        return found
    now = datetime.now(UTC)
    found.stretch = choose_stretch(query, now=now, zone=zone)
    try:
        with limit_statements(LIMIT_MS):
            found.sample = take_sample(rows)
            columns = count_columns(query, found.sample, found.stretch, tenant_id=by.tenant_id, now=now)
    except StatementTooLong:
        found.is_uncounted = True
        return found
    if found.sample.count:
        found.facets = list_facets(query, found.sample, by=by, link=link)
        found.chart = draw_histogram(query, columns, found.stretch, link=link)
    return found


def _fetch(rows: InvocationQuerySet, after: str) -> Page[Invocation]:
    return fetch_page(rows.select_related("agent", "version", "cost").only(*SHOWN), prefix="inv", after=after)


@require_GET
@needs("invocations.view")
def invocation_list(request: ConsoleRequest) -> HttpResponse:
    """Context: text (the query as written), chips (list of {text, without}), wrong (list of {before, wrong, after, message, instead,
    fixed}), found (CallList), page, groups (CallGroups with .url), view and views, columns (names) and all_columns, qualifiers,
    shortcuts, saved (SavedViews), export (the address of an export of these calls, or ""), most (calls that are counted), and first,
    all (addresses).
    """
    text, view = query_text(request), request.GET.get("view", "")
    view = view if view in VIEWS else VIEWS[0]
    query, found, wrong = Query(), CallList(), list[dict[str, Any]]()

    def link(asked: Query) -> str:
        return build_address(asked, view)

    try:
        query = parse_calls(text)
        found = load_calls(
            query, by=request.principal, after=request.GET.get("after", ""), groups=view == "groups", link=link
        )
    except SearchInvalid as problem:
        wrong = [_add_fixed(each, view) for each in problem.underline()]
    chosen = read_columns(request)
    context = {
        "section": "invocations",
        "text": text,
        "chips": [{"text": str(term), "without": link(query.without(term))} for term in query.terms],
        "wrong": wrong,
        "found": found,
        "page": found.page,
        "groups": [{"group": group, "url": link_group(query, group.kind)} for group in found.sample.list_groups()]
        if view == "groups"
        else [],
        "view": view,
        "views": {each: build_address(query, each) for each in VIEWS},
        "columns": chosen,
        "all_columns": [{"name": name, "label": label, "chosen": name in chosen} for name, label in LABELS.items()],
        "qualifiers": [{"name": name, "means": each.means, "example": each.example} for name, each in OF_CALLS.items()],
        "shortcuts": [{"label": label, "to": build_address(said, view)} for label, said in SHORTCUTS],
        "saved": own_views(request.principal),
        "export": build_export_address(query) if request.principal.may("evidence.view") and not wrong else "",
        "most": MOST,
        "times": [
            {"label": label, "to": link(_with_time(query, value))}
            for label, value in ((gettext_lazy("Last day"), "24h"), (gettext_lazy("Last 7 days"), "7d"))
        ],
    }
    return render_page(request, "call_search/call_list.html", context, partial="rows", status=422 if wrong else 200)


def build_address(query: Query | str, view: str) -> str:
    asked = {"q": str(query), "view": view if view != VIEWS[0] else ""}
    said = urlencode({name: value for name, value in asked.items() if value})
    return f"{reverse('invocations')}?{said}" if said else reverse("invocations")


def link_group(query: Query, kind: Any) -> str:
    """The calls of a group, each in a row of its own."""
    others = tuple(term for term in query.terms if term.negated or term.name not in ("tool", "code", "state"))
    which = Term("code", kind.reason) if kind.reason else Term("state", kind.state)
    return build_address(Query((*others, Term("tool", kind.tool), which)), VIEWS[0])


def _with_time(query: Query, ago: str) -> Query:
    return Query((*(term for term in query.terms if term.name not in ("after", "before")), Term("after", ago)))


def _add_fixed(finding: dict[str, Any], view: str) -> dict[str, Any]:
    """``fixed``: the query with what to write instead, where that is a term and no explanation of one."""
    before, wrong, after, instead = (finding[each] for each in ("before", "wrong", "after", "instead"))
    candidates = [f"{wrong.partition(':')[0]}:{instead}", instead] if " " not in instead else []
    fixed = next((f"{before}{each}{after}" for each in candidates if _is_understood(each)), "")
    return finding | {"fixed": build_address(fixed, view) if fixed else ""}


def _is_understood(term: str) -> bool:
    try:
        parse_calls(term)
    except SearchInvalid:
        return False
    return True


@require_POST
@needs("invocations.view")
def call_columns(request: ConsoleRequest) -> HttpResponse:
    """POST column (each that is to be shown), next."""
    back = find_way_back(request, request.POST.get("next", ""), default=reverse("invocations"))
    response = HttpResponseRedirect(back)
    kept = write_columns(request.POST.getlist("column"))
    response.set_cookie(COOKIE, kept, max_age=YEAR_S, samesite="Lax", httponly=True)
    return response
