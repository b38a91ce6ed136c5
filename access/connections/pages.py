"""Pages of connections: where a person lets a program act as an agent, and where it is ended."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.encoding import iri_to_uri
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.connections import services
from access.connections.client_guides import describe_clients, is_public
from access.connections.connection_rules import find_bounds, list_limits, set_connection_rule
from access.connections.forms import SCOPE_WORDS, ConnectionForm, ConnectionRuleForm, read_choices
from access.connections.resources import mcp_resource, tenant_mcp_resource
from access.connections.rights import CONNECT, is_alive, list_connectable_agents, select_permitted
from access.connections.token_texts import compute_token_digest
from access.issuers.services import find_mcp_issuers
from access.middleware import choose_tenant
from access.models import Agent, Connection, ConnectionRule, ConnectionToken
from access.oauth.authorization_requests import (
    PATH,
    AnsweredByRedirect,
    AuthorizationRequest,
    answer_request,
    build_answer,
    open_signed_request,
    read_authorization_request,
    sign_request,
)
from access.oauth.redirect_uris import (
    APP_SCHEMES,
    form_action_source,
    is_on_this_computer,
    name_redirect_host,
)
from access.sign_in.adapters import has_signed_in_within, redirect_to_prove
from invocations.decide.callable_tools import offer_tools
from invocations.explanations.services import build_agent_principal
from kernel.components.forms import add_problem, submit_form
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, needs, public, render_page
from kernel.http.pagination import Excerpt, fetch_excerpt, fetch_page
from kernel.ids import decode, encode, encode_user
from kernel.problems import Forbidden, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.http import HttpRequest

    from access.connections.connection_rules import ConnectionBounds
    from access.models import Tenant
    from kernel.principal import Principal
    from unitools.manifest import Manifest

READS = ("None", "Read")
CALLS = "invocations:create"
NAMED = ("agent__tenant", "member", "issuer")
MOST_SHOWN = 100  # of an agent or a person, on their page
TIME_TO_REDEEM = timedelta(minutes=1)  # that a program has to fetch its first token


def _redirect_browser(uri: str) -> HttpResponse:
    """303: the browser comes with GET. Django's own redirects know no schemes of applications."""
    return HttpResponse(status=303, headers={"Location": iri_to_uri(uri), "Cache-Control": "no-store"})


def group_tools(manifests: list[Manifest]) -> list[dict[str, Any]]:
    """By what happens when it is called: what only reads, what writes, and what a person is asked about each time."""
    titles = (gettext("Read"), gettext("Change things"), gettext("Wait for a person each time"))
    groups: list[dict[str, Any]] = [{"title": title, "tools": []} for title in titles]
    for manifest in manifests:
        at = 2 if manifest.needs_consent else 0 if manifest.side_effect in READS else 1
        groups[at]["tools"].append(manifest.id)
    return [group for group in groups if group["tools"]]


@never_cache
@require_http_methods(["GET", "POST"])
@public
def authorize(request: HttpRequest) -> HttpResponse:
    """Context: asked, form, agents, chosen, groups, picked, signed, on_this_computer, redirect_host, choice_of_tenants, opens_rest
    (whether its tokens are for more than MCP), is_told (whether anybody hears of a request), elsewhere (the tenant of the person which
    alone knows the program, where that is another one), asks_again (within how many minutes a sign-in must be that lets it change
    things, where the person's is older), held (what the person lets the program do already), added (what it asks for beyond). POST:
    request (signed), shown (the agent whose tools were on the page), decision (allow, deny, ask, look, prove, tenant) and the form.
    """
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    _check_has_tenant(request)
    session, tenants = request.session.session_key or "", request.tenants  # type: ignore[attr-defined]
    try:
        if request.method == "GET":
            query = request.META.get("QUERY_STRING", "")
            return _ask(request, read_authorization_request(query, user=request.user, tenants=tenants))
        signed = request.POST.get("request", "")
        asked = open_signed_request(signed, user=request.user, session=session, tenants=tenants)
        return _decide(request, asked)
    except AnsweredByRedirect as answer:
        return _redirect_browser(answer.uri)


def _check_has_tenant(request: HttpRequest) -> None:
    if getattr(request, "principal", None) is None:
        raise Forbidden("You belong to no tenant of this hub.", remedy="Ask an owner of a tenant to invite you.")


def _ask(request: Any, asked: AuthorizationRequest) -> HttpResponse:
    if "login" in asked.prompts:
        rest = [(name, value) for name, value in parse_qsl(asked.query, keep_blank_values=True) if name != "prompt"]
        return redirect_to_login(f"{PATH}?{urlencode(rest)}")
    return _page(request, asked, None)


def _page(request: Any, asked: AuthorizationRequest, form: ConnectionForm | None) -> HttpResponse:
    by: Principal = request.principal
    elsewhere = _find_elsewhere(request, asked)
    agents = [] if elsewhere else list(list_connectable_agents(by))
    chosen = _find_chosen(agents, request.POST.get("agent", ""))
    manifests = offer_tools(by=build_agent_principal(chosen)).manifests if chosen else []
    bounds = find_bounds(by.tenant_id)
    if form is None:
        form = _build_form(None, asked, agents, manifests, bounds, read_choices(request.POST))
    held = services.find_held_scopes(chosen, member=request.user, client_id=asked.client.id) if chosen else []
    context = {
        "asked": asked,
        "held": [SCOPE_WORDS[scope] for scope in held],
        "added": [SCOPE_WORDS[scope] for scope in asked.scopes if scope not in held],
        "form": form,
        "agents": agents,
        "elsewhere": elsewhere,
        "chosen": chosen,
        "groups": group_tools(manifests),
        "picked": set(request.POST.getlist("tools")),
        "signed": sign_request(asked, user=request.user, session=request.session.session_key or ""),
        "redirect_host": name_redirect_host(asked.redirect_uri),
        "is_told": not agents and services.has_request_channel(by),
        "opens_rest": asked.resource != mcp_resource(),
        "on_this_computer": is_on_this_computer(asked.redirect_uri),
        "asks_again": None
        if bounds.sign_in is None or has_signed_in_within(request, bounds.sign_in)
        else round(bounds.sign_in.total_seconds() / 60),
        "choice_of_tenants": request.tenants if len(request.tenants) > 1 else [],
    }
    status = 422 if form.is_bound and form.errors else 200
    response = render_page(request, "connections/authorize.html", context, status=status)
    # Browsers hold where a form leads, and on to where it is sent from there, against the page's policy.
    apps = [f"{scheme}:" for scheme in APP_SCHEMES]
    response._csp_update = {"form-action": [form_action_source(asked.redirect_uri), *apps]}  # type: ignore[attr-defined]
    return response


def _find_elsewhere(request: Any, asked: AuthorizationRequest) -> Tenant | None:
    """The tenant to which the person goes first, since it has entered the program by hand and no other knows it."""
    whose = asked.client.tenant_id
    return next((each for each in request.tenants if each.pk == whose != request.principal.tenant_id), None)


def _find_chosen(agents: list[Agent], wire_id: str) -> Agent | None:
    return next((each for each in agents if each.wire_id == wire_id), agents[0] if agents else None)


def _build_form(
    data: Any,
    asked: AuthorizationRequest,
    agents: list[Agent],
    manifests: list[Manifest],
    bounds: ConnectionBounds,
    initial: dict[str, Any] | None = None,
) -> ConnectionForm:
    tools = [manifest.id for manifest in manifests]
    return ConnectionForm(data, agents=agents, scopes=asked.scopes, tools=tools, bounds=bounds, initial=initial)


def lets_change_things(form: ConnectionForm, manifests: Iterable[Manifest]) -> bool:
    """Whether what was chosen lets a program use a tool that changes things or is marked High; all tools, now and later, may."""
    if CALLS not in form.cleaned_data["scopes"]:
        return False
    chosen = form.chosen_tools
    return chosen is None or any(
        manifest.side_effect not in READS or manifest.safety_class == "High"
        for manifest in manifests
        if manifest.id in chosen
    )


def _build_form_of_unseen(
    data: QueryDict,
    asked: AuthorizationRequest,
    agents: list[Agent],
    manifests: list[Manifest],
    bounds: ConnectionBounds,
) -> ConnectionForm:
    """Somebody has chosen an agent and not looked what it may do: the list that they saw was another's."""
    its_own = {manifest.id for manifest in manifests}
    data.setlist("tools", [tool for tool in data.getlist("tools") if tool in its_own])
    form = _build_form(data, asked, agents, manifests, bounds)
    form.add_error("agent", gettext("Look at what this agent may do, then connect."))
    return form


def _decide(request: Any, asked: AuthorizationRequest) -> HttpResponse:
    decision, by = request.POST.get("decision", ""), request.principal
    if _find_elsewhere(request, asked) and decision != "tenant":
        return _page(request, asked, None)
    match decision:
        case "allow":
            return _allow(request, asked)
        case "deny" | "ask":
            why = services.DECLINED if decision == "deny" else services.ASKED
            told = services.refuse_connection(
                client=asked.client, redirect_host=name_redirect_host(asked.redirect_uri), why=why, by=by
            )
            said = "The person has asked somebody who may decide." if told else "The person declined."
            uri = build_answer(asked.redirect_uri, asked.state, error="access_denied", error_description=said)
            return _redirect_browser(uri)
        case "prove":
            lasts = find_bounds(by.tenant_id).sign_in or timedelta()
            return redirect_to_prove(request, to=f"{PATH}?{asked.query}", lasts=lasts)
        case "tenant":
            choose_tenant(request, request.POST.get("tenant", ""))
            return redirect(f"{PATH}?{asked.query}")
        case _:
            return _page(request, asked, None)


def _allow(request: Any, asked: AuthorizationRequest) -> HttpResponse:
    by: Principal = request.principal
    bounds = find_bounds(by.tenant_id)
    agents = list(list_connectable_agents(by))
    chosen = next((each for each in agents if each.wire_id == request.POST.get("agent")), None)
    manifests = offer_tools(by=build_agent_principal(chosen)).manifests if chosen else []
    if chosen is not None and request.POST.get("shown") != chosen.wire_id:
        return _page(request, asked, _build_form_of_unseen(request.POST.copy(), asked, agents, manifests, bounds))
    form = _build_form(request.POST, asked, agents, manifests, bounds)
    if chosen is None or not form.is_valid():
        return _page(request, asked, form)
    lasts = bounds.sign_in if lets_change_things(form, manifests) else None
    if lasts is not None and not has_signed_in_within(request, lasts):
        return redirect_to_prove(request, to=f"{PATH}?{asked.query}", lasts=lasts)
    data = form.cleaned_data
    opened = partial(
        services.open_connection,
        agent_id=chosen.pk,
        member=request.user,
        client=asked.client,
        redirect_host=name_redirect_host(asked.redirect_uri),
        resource=asked.resource,
        scopes=data["scopes"],
        tools=form.chosen_tools,
        refreshable=not data["once"],
        days=data["days"],
        form_digest=compute_token_digest(request.POST["request"]),
        by=by,
    )
    try:
        uri = answer_request(asked, user=request.user, scopes=data["scopes"], open_connection=opened)
    except Problem as problem:
        add_problem(form, problem)
        return _page(request, asked, form)
    return _redirect_browser(uri)


def list_rows(by: Principal, **which: Any) -> Excerpt[dict[str, Any]]:
    """Connections with their state, and whether this person may end them; the newest first."""
    rows = Connection.objects.filter(tenant_id=by.tenant_id, **which).select_related(*NAMED).order_by("-pk")
    found = fetch_excerpt(rows, MOST_SHOWN)
    return Excerpt(describe_rows(found.rows, by=by), found.is_cut)


def describe_rows(connections: Iterable[Connection], *, by: Principal) -> list[dict[str, Any]]:
    """With as many statements as there are agents that differ, and three more."""
    shown, now = list(connections), database_time()
    asked = Connection.objects.filter(pk__in=[each.pk for each in shown])
    permitted = set(select_permitted(asked).values_list("pk", flat=True))
    good = ConnectionToken.objects.filter(connection__in=asked, used_at=None, expires_at__gt=now)
    with_tokens = set(good.values_list("connection_id", flat=True))
    manages: dict[UUID, bool] = {}
    rows = []
    for each in shown:
        waits = each.redeemed_at is None and now - each.opened_at < TIME_TO_REDEEM
        alive = is_alive(each, now=now) and (waits or each.pk in with_tokens)
        counts = "live" if each.pk in permitted else "suspended"  # it opens nothing, until that changes
        member = encode_user(each.member_id)
        if each.agent_id not in manages:
            manages[each.agent_id] = services.manages_agent(each.agent, by=by)
        rows.append(
            {
                "connection": each,
                "state": "ended" if each.ended_at else counts if alive else "expired",
                "member": member,
                "may_end": alive and (member == by.id or manages[each.agent_id]),
            }
        )
    return rows


@require_GET
@needs("agents.view")
def connections(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Connection), rows (list of {connection, state, member, may_end}), mcp_url, may_connect, may_enter."""
    rows = Connection.objects.filter(tenant_id=request.principal.tenant_id).select_related(*NAMED)
    page = fetch_page(rows, prefix="con", after=request.GET.get("after", ""))
    context = {
        "section": "connections",
        "page": page,
        "may_connect": request.principal.may(CONNECT),
        "may_enter": request.principal.may("agents.manage"),
        "mcp_url": mcp_resource(),
        "rows": describe_rows(page.rows, by=request.principal),
    }
    return render_page(request, "connections/connection_list.html", context)


@require_http_methods(["GET", "POST"])
@needs("agents.manage")
def connection_rule(request: ConsoleRequest) -> HttpResponse:
    """Context: form (ConnectionRuleForm), rule (ConnectionRule or None)."""
    by, limits = request.principal, list_limits()
    rule = ConnectionRule.objects.filter(tenant_id=by.tenant_id).first()
    now = {name: getattr(rule, name, None) for name in limits}
    form = ConnectionRuleForm(request.POST if request.method == "POST" else None, initial=now, limits=limits)
    if submit_form(form, lambda: set_connection_rule(**form.cleaned_data, by=by)):
        messages.success(request, gettext("Set. Programs that are connected follow when they fetch their next token."))
        return redirect("connection_rule")
    context = {"section": "connections", "form": form, "rule": rule}
    return render_page(
        request, "connections/connection_rule.html", context, status=422 if request.method == "POST" else 200
    )


@require_GET
@needs("agents.connect")
def connect_client(request: ConsoleRequest) -> HttpResponse:
    """Context: url, clients (list of {name, steps, text, link}), is_public: whether servers of others can reach the hub; since (the
    person's newest connection when they opened the page), arrived: what has connected after it; may_enter; tenant_url, tenant_issuers:
    the tenant's own address and who signs people in there, if there is one.
    """
    mine = Connection.objects.filter(tenant_id=request.principal.tenant_id, member_id=request.user.pk).order_by("-pk")
    since = _read_since(request.GET["since"]) if "since" in request.GET else mine.values_list("pk", flat=True).first()
    newer = mine if since is None else mine.filter(pk__gt=since)
    waits = "since" in request.GET
    of_tenant = find_mcp_issuers(request.tenant.slug)
    context = {
        "section": "connections",
        "url": mcp_resource(),
        "clients": describe_clients(mcp_resource()),
        "is_public": is_public(mcp_resource()),
        "since": encode("con", since) if since else "",
        "may_enter": request.principal.may("agents.manage"),
        "tenant_url": tenant_mcp_resource(request.tenant.slug) if of_tenant else "",
        "tenant_issuers": of_tenant[1] if of_tenant else [],
        "arrived": newer.filter(redeemed_at__isnull=False).select_related("agent").first() if waits else None,
    }
    return render_page(request, "connections/connect_client.html", context, partial="arrival")


def _read_since(text: str) -> UUID | None:
    """None: there was none, or it is nothing that the page has written."""
    try:
        return decode("con", text)
    except ValueError:
        return None


def _of_member(by: Principal, *, connection_id: UUID) -> Connection | None:
    return Connection.objects.filter(pk=connection_id, tenant_id=by.tenant_id).select_related("agent").first()


def may_end_it(by: Principal, _: str, *, connection_id: UUID) -> bool:
    """Who opened it, and who manages its agent."""
    found = _of_member(by, connection_id=connection_id)
    return found is not None and services.may_end(found, by=by)


def _agent_of(by: Principal, *, connection_id: UUID) -> Agent | None:
    found = _of_member(by, connection_id=connection_id)
    return found.agent if found else None


may_end_it.find = _agent_of  # type: ignore[attr-defined]  # the thing that `agents.manage` is held on


@require_POST
@needs("agents.manage", held=may_end_it)
def connection_end(request: ConsoleRequest, connection_id: UUID) -> HttpResponse:
    """POST: ends it. Goes back to the page of its agent, or to what the person may see."""
    ended = services.end_connection(connection_id=connection_id, by=request.principal)
    messages.success(request, gettext("The program is disconnected. Its next request is refused."))
    return redirect("agent", ended.agent_id) if request.principal.may("agents.view") else redirect("my_connections")


@require_GET
@public
def my_connections(request: HttpRequest) -> HttpResponse:
    """Context: rows (what speaks in the name of who looks, in the tenant in which they act), is_cut, mcp_url."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    _check_has_tenant(request)
    found = list_rows(request.principal, member=request.user)  # type: ignore[attr-defined]
    context = {"section": "", "rows": found.rows, "is_cut": found.is_cut, "mcp_url": mcp_resource()}
    return render_page(request, "connections/my_connections.html", context)
