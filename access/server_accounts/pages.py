"""Pages of server accounts: where a person connects their own account at a server elsewhere, and ends it.

Operators enter there who the hub is at a server that takes no other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.models import AccountServer, Agent, ReturnedTokens, ReturnState, ServerAccount, ServerAccountState
from access.server_accounts import services
from access.server_accounts.authorizations import begin_authorization, finish_authorization
from access.server_accounts.clients import callback_url
from access.server_accounts.forms import AccountClientForm, AgentsForm
from invocations.call_outcomes import build_state_filter
from invocations.models import Invocation, State
from kernel.components.forms import submit_form
from kernel.http.console import ConsoleRequest, needs, public, render_page
from kernel.ids import decode
from kernel.problems import Forbidden, Problem, SchemaInvalid
from registry.models import Installation, InstallationState

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from kernel.principal import Principal

MAX_HELD = 20


def find_account_tools(tenant_id: UUID) -> dict[str, dict[str, Any]]:
    """By the address of a server: the installed tools that ask it as a person, the scopes that they want, and what they state of who
    gives tokens for it: nothing where the server itself says that."""
    rows = Installation.objects.filter(tenant_id=tenant_id, version__isnull=False)
    found: dict[str, dict[str, Any]] = {}
    for row in rows.exclude(state=InstallationState.REMOVED).select_related("version").order_by("name"):
        assert row.version is not None
        manifest = row.version.view
        if manifest.account is not None:
            known = found.setdefault(manifest.account_resource, {"tools": [], "scopes": [], "stated": []})
            known["tools"].append(row.name)
            stated = {name: value for name, value in manifest.account.items() if name != "scopes"}
            known["stated"] += [stated] if stated not in known["stated"] else []
            known["scopes"] = list(dict.fromkeys([*known["scopes"], *manifest.account["scopes"]]))
    return found


def list_offered_agents(account: ServerAccount) -> list[Agent]:
    ids = [decode("agt", each) for each in {*account.agents, *account.asked_by}]
    return list(Agent.objects.filter(tenant_id=account.tenant_id, pk__in=ids).order_by("name"))


def find_wishes(account: ServerAccount) -> dict[str, Any]:
    """What the installed tools want of an account, as it is begun with."""
    known = find_account_tools(account.tenant_id).get(account.server.resource, {})
    return {"scopes": known.get("scopes", []), "stated": known.get("stated", [])}


def check_signed_in(request: HttpRequest) -> HttpResponse | None:
    """Where to go first, for who is not signed in; refused who belongs to no tenant."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    if getattr(request, "principal", None) is None:
        raise Forbidden("You belong to no tenant of this hub.", remedy="Ask an owner of a tenant to invite you.")
    return None


@require_GET
@public
def my_server_accounts(request: HttpRequest) -> HttpResponse:
    """Context: rows (list of {resource, host, tools, account: the open one, or the last that has ended, or None}), may_enter."""
    if (first := check_signed_in(request)) is not None:
        return first
    by: Principal = request.principal  # type: ignore[attr-defined]
    asked = find_account_tools(by.tenant_id)
    accounts = ServerAccount.objects.filter(tenant_id=by.tenant_id, member_id=request.user.pk).select_related("server")
    known: dict[str, ServerAccount] = {}
    for account in accounts.order_by("-pk"):
        if account.server.resource in asked or account.is_connected:
            known.setdefault(account.server.resource, account)
    rows = [
        {
            "resource": resource,
            "host": AccountServer(resource=resource).host,
            "tools": asked.get(resource, {}).get("tools", []),
            "account": known.get(resource),
        }
        for resource in sorted(asked.keys() | known.keys())
    ]
    context = {"section": "", "rows": rows, "may_enter": by.may("secrets.manage")}
    return render_page(request, "server_accounts/my_server_accounts.html", context)


@require_POST
@public
def server_account_begin(request: HttpRequest) -> HttpResponse:
    """POST: resource. Goes on to the page of the person's account there, which is made where there is none."""
    if (first := check_signed_in(request)) is not None:
        return first
    by: Principal = request.principal  # type: ignore[attr-defined]
    resource = request.POST.get("resource", "")
    asked = find_account_tools(by.tenant_id)
    if resource not in asked:
        raise SchemaInvalid.at("/resource", "No tool of this organisation asks for an account there.")
    account = services.request_account(resource=resource, member_id=request.user.pk or 0, by=by)
    return redirect("server_account", account.pk)


def _find_own(request: HttpRequest, account_id: UUID) -> ServerAccount:
    """Nobody but its person sees that there is one."""
    by: Principal = request.principal  # type: ignore[attr-defined]
    rows = ServerAccount.objects.select_related("server").filter(tenant_id=by.tenant_id, member_id=request.user.pk)
    found = rows.filter(pk=account_id).first()
    if found is None:
        raise Http404
    return found


@never_cache
@require_GET
@public
def server_account(request: HttpRequest, account_id: UUID) -> HttpResponse:
    """Context: account, tools, wanted (scopes), form (AgentsForm), offered, asking (agents), held (calls that wait for
    it), is_open, returned (ReturnedTokens or None), problem."""
    if (first := check_signed_in(request)) is not None:
        return first
    return _page(request, _find_own(request, account_id))


def _page(request: HttpRequest, account: ServerAccount, problem: Problem | None = None) -> HttpResponse:
    offered = list_offered_agents(account)
    asked = find_account_tools(account.tenant_id).get(account.server.resource, {"tools": [], "scopes": []})
    held = Invocation.objects.filter(build_state_filter(State.HELD), account_id=account.pk)
    form = AgentsForm(None, offered=offered, initial={"agents": account.agents})
    context = {
        "section": "",
        "account": account,
        "tools": asked["tools"],
        "wanted": asked["scopes"],
        "form": form,
        "offered": offered,
        "asking": [each for each in offered if each.wire_id in account.asked_by],
        "held": list(held.select_related("agent").order_by("-pk")[:MAX_HELD]),
        "is_open": account.state != ServerAccountState.ENDED,
        "returned": account.returned_tokens.order_by("-pk").first(),
        "problem": problem,
    }
    return render_page(
        request, "server_accounts/server_account.html", context, status=problem.status if problem else 200
    )


def _read_agents(request: HttpRequest, account: ServerAccount) -> list[str]:
    offered = {each.wire_id for each in list_offered_agents(account)}
    return [each for each in request.POST.getlist("agents") if each in offered]


@require_POST
@public
def server_account_connect(request: HttpRequest, account_id: UUID) -> HttpResponse:
    """POST: agents. Context: account, address (of the authorization server), host; or the page of the account, with why not.

    A link and no redirect: the person sees where they are sent, and no form of the hub may end elsewhere.
    """
    if (first := check_signed_in(request)) is not None:
        return first
    account = _find_own(request, account_id)
    try:
        address = begin_authorization(
            account_id=account.pk,
            browser=request.session.session_key or "",
            agents=_read_agents(request, account),
            **find_wishes(account),
            by=request.principal,  # type: ignore[attr-defined]
        )
    except Problem as problem:
        return _page(request, _find_own(request, account_id), problem)
    context = {"section": "", "account": account, "address": address, "host": urlsplit(address).hostname}
    return render_page(request, "server_accounts/go_on.html", context)


@never_cache
@require_GET
@public
def server_account_callback(request: HttpRequest, key: str = "") -> HttpResponse:
    """Where an authorization server sends the browser back. Goes on to the page of the account. Context of a refusal: problem."""
    if (first := check_signed_in(request)) is not None:
        return first
    answer = {name: value for name, value in request.GET.items() if isinstance(value, str)}
    try:
        account = finish_authorization(
            answer=answer,
            browser=request.session.session_key or "",
            callback=key,
            by=request.principal,  # type: ignore[attr-defined]
        )
    except Problem as problem:
        context = {"section": "", "problem": problem}
        return render_page(request, "server_accounts/not_connected.html", context, status=problem.status)
    messages.success(request, gettext("Your account is connected. Calls that waited for it go on."))
    return redirect("server_account", account.pk)


@require_POST
@public
def server_account_agents(request: HttpRequest, account_id: UUID) -> HttpResponse:
    """POST: agents, all of those that may from now on."""
    if (first := check_signed_in(request)) is not None:
        return first
    account = _find_own(request, account_id)
    services.allow_agents(account_id=account.pk, agents=_read_agents(request, account), by=request.principal)  # type: ignore[attr-defined]
    messages.success(request, gettext("Kept. It counts with the next call."))
    return redirect("server_account", account.pk)


@require_POST
@public
def server_account_end(request: HttpRequest, account_id: UUID) -> HttpResponse:
    """POST: disconnects it, or says no to who asks for it."""
    if (first := check_signed_in(request)) is not None:
        return first
    account = services.disconnect_account(account_id=_find_own(request, account_id).pk, by=request.principal)  # type: ignore[attr-defined]
    if account.end_reason == services.DECLINED:
        messages.success(request, gettext("Your account stays unconnected. Calls that waited for it have ended."))
    else:
        messages.success(request, gettext("Your account is disconnected. No call uses it any more."))
    return redirect("my_server_accounts")


@require_GET
@needs("secrets.manage")
def account_servers(request: ConsoleRequest) -> HttpResponse:
    """Context: rows (list of {resource, server: AccountServer or None, connected: how many accounts, lapsed: tokens of how many
    the server has not taken back, callback}), form."""
    return _servers_page(request, None)


def _servers_page(request: ConsoleRequest, form: AccountClientForm | None) -> HttpResponse:
    tenant_id = request.principal.tenant_id
    known = {each.resource: each for each in AccountServer.objects.filter(tenant_id=tenant_id)}
    resources = sorted(find_account_tools(tenant_id).keys() | known.keys())
    connected = ServerAccount.objects.filter(tenant_id=tenant_id, state=ServerAccountState.CONNECTED)
    counts = list(connected.values_list("server__resource", flat=True))
    lapsed = ReturnedTokens.objects.filter(tenant_id=tenant_id, state=ReturnState.LAPSED).exclude(last_error="")
    not_taken = list(lapsed.values_list("account__server__resource", flat=True))
    rows = [
        {
            "resource": each,
            "server": known.get(each),
            "connected": counts.count(each),
            "lapsed": not_taken.count(each),
            "callback": callback_url(AccountServer(tenant_id=tenant_id, resource=each).callback_key),
        }
        for each in resources
    ]
    context = {
        "section": "secrets",
        "rows": rows,
        "form": form or AccountClientForm(None, resources=resources),
    }
    return render_page(
        request, "server_accounts/account_servers.html", context, status=422 if form and form.errors else 200
    )


@sensitive_post_parameters("client_secret")
@require_http_methods(["POST"])
@needs("secrets.manage")
def account_server_client(request: ConsoleRequest) -> HttpResponse:
    """POST: resource, client_id, client_secret."""
    by = request.principal
    known = AccountServer.objects.filter(tenant_id=by.tenant_id).values_list("resource", flat=True)
    form = AccountClientForm(request.POST, resources=sorted({*find_account_tools(by.tenant_id), *known}))
    if submit_form(form, lambda: services.enter_client(**form.cleaned_data, by=by)):
        messages.success(request, gettext("Kept. Who connects an account from now on does so by it."))
        return redirect("account_servers")
    return _servers_page(request, form)
