"""Pages of members: people, roles and tenants in the console, and the first visit of somebody invited."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.forms import SetPasswordForm
from django.db.models import Count
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from guardian.shortcuts import get_user_perms

from access.connections.pages import list_rows
from access.connections.resources import mcp_resource
from access.forms import ExceptionForm, HubOwnerForm, PermissionForm, PersonForm, RolesForm, TenantForm
from access.members import invitations
from access.members import services as members
from access.members.finder import match_person
from access.models import Membership, Tenant
from access.object_permissions.rules import build_permission_data, list_object_permissions, user_object_permissions
from access.roles import Role
from access.sign_in.adapters import recently_authenticated
from evidence.kinds import Kind
from evidence.leaves.people import PersonPermission
from evidence.search.related_facts import facts_about
from kernel.canonical import canonicalize
from kernel.components.forms import add_problem, submit_form
from kernel.database.tenancy import hub_wide
from kernel.http.console import ConsoleRequest, needs, public, render_page
from kernel.http.pagination import fetch_page_by_name
from kernel.ids import encode_user
from kernel.problems import NotFound, Problem, SchemaInvalid

if TYPE_CHECKING:
    from django import forms
    from django.http import HttpRequest, HttpResponse

    from evidence.models import Fact


def role_labels(roles: list[str]) -> list[str]:
    return [str(Role(role).label) for role in Role if role in roles]


@require_GET
@needs("members.view")
def people(request: ConsoleRequest) -> HttpResponse:
    """``?q=&role=``. Context: page (Page of users, by their names), people (list of {user, id, roles, waits}), filters, roles
    ({role: label}), may_manage.
    """
    by, filters = request.principal, {name: request.GET.get(name, "") for name in ("q", "role")}
    if filters["role"] and filters["role"] not in Role.values:
        raise SchemaInvalid(gettext("There is no such role to filter by."))
    users = members.find_members(by.tenant_id, role=filters["role"])
    if text := filters["q"].strip():
        users = users.filter(match_person(text, by))
    page = fetch_page_by_name(users, name="username", after=request.GET.get("after", ""))
    roles: dict[int, list[str]] = defaultdict(list)
    held = Membership.objects.filter(tenant_id=by.tenant_id, user__in=page.rows)
    for user_id, role in held.values_list("user_id", "role"):
        roles[user_id].append(role)
    context = {
        "section": "people",
        "page": page,
        "people": [
            {
                "user": user,
                "id": encode_user(user.pk),
                "roles": role_labels(roles[user.pk]),
                "waits": members.has_never_come(user),
            }
            for user in page.rows
        ],
        "filters": filters,
        "roles": dict(Role.choices),
        "may_manage": by.may("members.manage"),
    }
    return render_page(request, "members/person_list.html", context, partial="rows")


@require_http_methods(["GET", "POST"])
@needs("members.manage")
def person_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (PersonForm); after POST the page with the link, if there is one to hand over."""
    form = PersonForm(request.POST if request.method == "POST" else None)
    if invited := submit_form(
        form,
        lambda: invitations.invite_person(
            username=form.cleaned_data["username"],
            name=form.cleaned_data["name"],
            email=form.cleaned_data["email"],
            roles=set(form.cleaned_data["roles"]),
            by=request.principal,
        ),
    ):
        return _link_page(request, *invited)
    status = 422 if request.method == "POST" else 200
    return render_page(request, "members/person_form.html", {"section": "people", "form": form}, status=status)


def _link_page(request: ConsoleRequest, user: Any, link: str | None) -> HttpResponse:
    if not link:
        mailed = link is not None
        told = (
            gettext("The invitation was sent by e-mail.")
            if mailed
            else gettext("The person is now a member of this tenant.")
        )
        messages.success(request, told)
        return redirect("person", user.pk)
    context = {"section": "people", "person": user, "link": link}
    return render_page(request, "members/person_link.html", context)


def get_member(request: ConsoleRequest, user_id: int) -> Any:
    rows = Membership.objects.filter(tenant_id=request.principal.tenant_id, user_id=user_id).select_related("user")
    return rows[:1].get().user


def _held(held: list[tuple[str, Any]], facts: list[Fact]) -> list[dict[str, Any]]:
    """What is held beside the roles, each with the newest fact that gave it."""
    given = {
        canonicalize(fact.read_data(PersonPermission).to_data()): fact
        for fact in facts
        if fact.kind == Kind.PERMISSION_GIVEN
    }
    return [
        {
            "name": permission,
            "label": gettext(list_object_permissions(thing).get(permission, permission)),
            "thing": thing,
            "kind": thing._meta.model_name,
            "given": given.get(canonicalize(build_permission_data(permission, thing))),
        }
        for permission, thing in held
    ]


def person_page(request: ConsoleRequest, user: Any, *, form: forms.Form | None = None, wrong: str = "") -> HttpResponse:
    held = list(Membership.objects.filter(tenant=request.tenant, user=user).values_list("role", flat=True))
    facts = facts_about(request.principal, encode_user(user.pk), size=200)
    single = [(name, request.tenant) for name in sorted(get_user_perms(user, request.tenant))]
    context = {
        "section": "people",
        "person": user,
        "person_id": encode_user(user.pk),
        "roles": role_labels(held),
        "single": _held(single, facts),
        "exceptions": _held(user_object_permissions(user, tenant_id=request.principal.tenant_id), facts),
        "connections": list_rows(request.principal, member=user),
        "mcp_url": mcp_resource(),
        "waits": members.has_never_come(user),
        "may_invite_again": invitations.may_invite_again(user, by=request.principal),
        "roles_form": form if wrong == "roles" else RolesForm(initial={"roles": held}),
        "permission_form": form if wrong == "permission" else PermissionForm(),
        "exception_form": form if wrong == "exception" else ExceptionForm(),
        "facts": facts,
        "may_manage": request.principal.may("members.manage") and request.principal.id != encode_user(user.pk),
        "is_self": request.principal.id == encode_user(user.pk),
    }
    return render_page(request, "members/person_detail.html", context, status=422 if wrong else 200)


@require_GET
@needs("members.view")
def person(request: ConsoleRequest, user_id: int) -> HttpResponse:
    """Context: person, person_id, roles, single and exceptions (lists of {name, label, thing, kind, given}: kind is tenant, tool or
    agent, given the Fact), connections, mcp_url, waits, roles_form, permission_form, exception_form, facts, may_manage, is_self.
    """
    return person_page(request, get_member(request, user_id))


@require_POST
@needs("members.manage")
def person_roles(request: ConsoleRequest, user_id: int) -> HttpResponse:
    """POST roles (none: leaves the tenant) and reason."""
    user, form = get_member(request, user_id), RolesForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        try:
            members.set_roles(
                tenant=request.tenant, user=user, roles=set(data["roles"]), reason=data["reason"], by=request.principal
            )
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("The roles were changed. They apply from the next request."))
            return redirect("person", user_id) if data["roles"] else redirect("people")
    return person_page(request, user, form=form, wrong="roles")


@require_POST
@needs("members.manage")
def person_permissions(request: ConsoleRequest, user_id: int) -> HttpResponse:
    """POST permission and action (give or take)."""
    user, form = get_member(request, user_id), PermissionForm(request.POST)
    if form.is_valid():
        change = members.give_permission if form.cleaned_data["action"] == "give" else members.take_permission
        try:
            change(user_id=user_id, permission=form.cleaned_data["permission"], by=request.principal)
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(request, gettext("The permission was changed. It applies from the next request."))
            return redirect("person", user_id)
    return person_page(request, user, form=form, wrong="permission")


@require_POST
@needs("members.manage")
def person_link(request: ConsoleRequest, user_id: int) -> HttpResponse:
    """POST again: another invitation, for somebody who has not come yet."""
    user = get_member(request, user_id)
    if "again" not in request.POST:
        return person_page(request, user, wrong="link")
    return _link_page(request, user, invitations.invite_again(user_id=user_id, by=request.principal))


@never_cache
@sensitive_post_parameters("new_password1", "new_password2")
@require_http_methods(["GET", "POST"])
@public
def invitation(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Context: form (SetPasswordForm)."""
    user = invitations.find_invited_person(uid, token)
    if user is None:
        raise NotFound(
            gettext("This link does not work: it was already used, or it has expired."),
            remedy=gettext("Ask the person who invited you for a new one."),
        )
    form = SetPasswordForm(user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        invitations.accept_invitation(user=user, password=form.cleaned_data["new_password1"], token=token)
        messages.success(request, gettext("Your password is set. Sign in with it."))
        return redirect("sign_in")
    context = {"form": form, "username": user.get_username()}
    return render_page(request, "members/invitation.html", context, status=422 if form.is_bound else 200)


@require_GET
@needs("hub.manage")
def tenants(request: ConsoleRequest) -> HttpResponse:
    return _tenants_page(request, HubOwnerForm(initial={"action": "give"}))


def _tenants_page(request: ConsoleRequest, form: HubOwnerForm) -> HttpResponse:
    """Context: page (Page of Tenant, by their short names), all_tenants (list of {tenant, people}), owners (of the hub), form
    (HubOwnerForm).
    """
    with hub_wide():
        page = fetch_page_by_name(Tenant.objects.all(), name="slug", after=request.GET.get("after", ""))
        counted = Membership.objects.filter(tenant__in=page.rows).values("tenant").order_by()
        people = dict(counted.annotate(people=Count("user", distinct=True)).values_list("tenant", "people"))
        owners = list(members.hub_owners())
    context = {
        "section": "tenants",
        "page": page,
        "all_tenants": [{"tenant": each, "people": people.get(each.pk, 0)} for each in page.rows],
        "owners": owners,
        "form": form,
    }
    return render_page(request, "members/tenant_list.html", context, status=422 if form.is_bound else 200)


@require_POST
@needs("hub.manage")
@recently_authenticated
def hub_owners(request: ConsoleRequest) -> HttpResponse:
    """POST username and action (give or take)."""
    form = HubOwnerForm(request.POST)
    if form.is_valid():
        change = members.make_hub_owner if form.cleaned_data["action"] == "give" else members.end_hub_ownership
        try:
            with hub_wide():
                change(user=form.cleaned_data["username"], by=request.principal)
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(
                request, gettext("The owners of the hub were changed. This applies from the next request.")
            )
            return redirect("tenants")
    return _tenants_page(request, form)


@require_http_methods(["GET", "POST"])
@needs("hub.manage")
def tenant_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (TenantForm). Who makes a tenant is its first owner."""
    form = TenantForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            with hub_wide():
                made = members.create_tenant(**form.cleaned_data, owner=request.user, by=request.principal)
        except Problem as problem:
            add_problem(form, problem)
        else:
            messages.success(
                request, gettext("Tenant %(name)s was created, and you are its owner.") % {"name": made.name}
            )
            return redirect("tenants")
    status = 422 if request.method == "POST" else 200
    return render_page(request, "members/tenant_form.html", {"section": "tenants", "form": form}, status=status)
