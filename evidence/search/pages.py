"""Pages of search: how people search facts in the console, and keep the searches that they use again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evidence.problems import SearchInvalid
from evidence.search import saved_searches
from evidence.search.engine import LIMIT_MS, FactPage, find_facts
from evidence.search.language import QUALIFIERS, Query, Term, fix_days, parse
from evidence.search.name_resolution import names_in
from evidence.search.related_facts import attach_free_text
from kernel.components.forms import add_problem
from kernel.database.statement_limits import StatementTooLong, limit_statements
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse

    from evidence.models import SavedSearch

# What this page took before it had a language, and still takes.
FORMER = ("kind", "tool", "actor", "outcome", "subject")
VIEWS = ("table", "timeline")
# What auditors ask first.
SHORTCUTS = (
    (gettext_lazy("Failed"), "outcome:failed outcome:timed_out outcome:outcome_unknown"),
    (gettext_lazy("Denied"), "outcome:denied"),
    (gettext_lazy("Personal data"), "pii:any"),
    (gettext_lazy("Decisions of people"), "actor:usr_* -kind:snapshot.read"),
    (gettext_lazy("Values read"), "kind:snapshot.read"),
    (gettext_lazy("Last day"), "after:24h"),
)
TIMES = ((gettext_lazy("Last day"), "24h"), (gettext_lazy("Last 7 days"), "7d"))


class SavedSearchForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=saved_searches.MAX_NAME)
    shared = forms.BooleanField(label=gettext_lazy("Share with everyone who may browse evidence"), required=False)
    query = forms.CharField(widget=forms.HiddenInput, max_length=1000, required=False)


def query_text(request: ConsoleRequest) -> str:
    text = request.GET.get("q", "").strip()
    former = [str(Term(name, value)) for name in FORMER if (value := request.GET.get(name, "").strip())]
    return " ".join([text, *former]).strip()


@require_GET
@needs("evidence.view")
def facts(request: ConsoleRequest) -> HttpResponse:
    """Context: text (the query as written), found (Found), chips (list of {text, without}), wrong (list of {before, wrong, after,
    message, instead} of a query that is not understood), too_broad (it took too long: list of {label, to} that narrow it), view,
    qualifiers, shortcuts, searches (list of {search, to}), form, and addresses: export, views, first, older, newer.
    """
    text, view = query_text(request), request.GET.get("view", "")
    view = view if view in VIEWS else VIEWS[0]
    query, found, wrong, too_broad = Query(), FactPage(), list[dict[str, Any]](), list[dict[str, Any]]()
    try:
        query = parse(text)
        with limit_statements(LIMIT_MS):
            found = _found(request, query)
    except StatementTooLong:
        too_broad = [{"label": label, "to": _address(_with_time(query, ago), view)} for label, ago in TIMES]
    except SearchInvalid as problem:
        wrong = problem.underline()
    context = {
        "section": "evidence",
        "text": text,
        "found": found,
        "chips": [{"text": str(term), "without": _address(query.without(term), view)} for term in query.terms],
        "wrong": wrong,
        "too_broad": too_broad,
        "view": view,
        "export": _export_address(query),
        "views": {each: _address(query, each) for each in VIEWS},
        "continued": bool(request.GET.get("after") or request.GET.get("before")),
        "first": _address(query, view),
        "older": _address(query, view, after=found.older),
        "newer": _address(query, view, before=found.newer),
        "qualifiers": [
            {"name": name, "means": each.means, "example": each.example} for name, each in QUALIFIERS.items()
        ],
        "shortcuts": [{"label": label, "to": _address(said, view)} for label, said in SHORTCUTS],
        "searches": [
            {"search": each, "to": _address(each.query, view)}
            for each in saved_searches.visible_searches(request.principal)
        ],
        "form": SavedSearchForm(initial={"query": str(query)}, auto_id="id_save_%s"),
    }
    return render_page(request, "search/fact_list.html", context, partial="rows", status=422 if wrong else 200)


def _found(request: ConsoleRequest, query: Query) -> FactPage:
    ask: dict[str, Any] = {
        "tenant_id": request.principal.tenant_id,
        "names": names_in(request.principal.tenant_id),
        "zone": timezone.get_current_timezone(),
    }
    before = request.GET.get("before", "")
    found = find_facts(query, after=request.GET.get("after", ""), before=before, **ask)
    if before and not found.rows:  # what was newer is on the first page
        found = find_facts(query, **ask)
    return replace(found, rows=attach_free_text(found.rows)) if request.GET.get("view") == "timeline" else found


def _address(query: Query | str, view: str, **more: str) -> str:
    asked = {"q": str(query), "view": view if view != VIEWS[0] else "", **more}
    return "?" + urlencode({name: value for name, value in asked.items() if value})


def _export_address(query: Query) -> str:
    """The form of an export of what is found, filled in."""
    asked = str(fix_days(query, timezone.get_current_timezone()))
    return f"{reverse('export_new')}?{urlencode({'query': asked})}"


def _with_time(query: Query, ago: str) -> Query:
    return Query((*(term for term in query.terms if term.name not in ("after", "before")), Term("after", ago)))


# Saved searches.


def _searches_page(request: ConsoleRequest, form: SavedSearchForm, changed: SavedSearch | None = None) -> HttpResponse:
    rows = [
        {
            "search": each,
            "to": _address(each.query, VIEWS[0]),
            "may_change": saved_searches.may_change(each, request.principal),
            "form": form
            if each == changed
            else SavedSearchForm(initial={"name": each.name, "shared": each.shared}, auto_id=f"id_{each.wire_id}_%s"),
        }
        for each in saved_searches.visible_searches(request.principal)
    ]
    context = {"section": "evidence", "rows": rows, "form": None if changed else form}
    return render_page(request, "search/search_list.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@needs("evidence.view")
def searches(request: ConsoleRequest) -> HttpResponse:
    """Context: rows (list of {search, to, may_change, form}), form (what was not accepted). POST name, query, shared saves one."""
    form = SavedSearchForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = saved_searches.save_search(**form.cleaned_data, by=request.principal)
        except (SchemaInvalid, SearchInvalid) as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("The search was saved."))
            return redirect(reverse("facts") + _address(made.query, VIEWS[0]))
    return _searches_page(request, form)


@require_POST
@needs("evidence.view")
def search_change(request: ConsoleRequest, search_id: UUID) -> HttpResponse:
    """POST name, shared."""
    found = saved_searches.visible_searches(request.principal).get(pk=search_id)
    form = SavedSearchForm(request.POST, auto_id=f"id_{found.wire_id}_%s")
    if form.is_valid():
        try:
            saved_searches.change_search(
                search_id=search_id,
                name=form.cleaned_data["name"],
                shared=form.cleaned_data["shared"],
                by=request.principal,
            )
        except SchemaInvalid as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("The search was changed."))
            return redirect("searches")
    return _searches_page(request, form, found)


@require_POST
@needs("evidence.view")
def search_delete(request: ConsoleRequest, search_id: UUID) -> HttpResponse:
    saved_searches.delete_search(search_id=search_id, by=request.principal)
    messages.success(request, gettext("The search was deleted."))
    return redirect("searches")
