"""Request middleware of access: as whom, and for which tenant, a signed-in person acts.

``request.principal`` is a :class:`Principal` with the permissions that django-guardian holds for this person on the chosen
tenant; ``None`` for people who are not signed in or belong to no tenant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Min
from django.http import HttpResponseRedirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from access.members.held_permissions import read_held_permissions
from access.models import Tenant
from access.sign_in.adapters import must_set_up_second_factor
from kernel.database.rows import PreparedQuery
from kernel.database.tenancy import act_for, hub_wide
from kernel.http.exception_handlers import API_PREFIX, SERVED_PREFIXES
from kernel.ids import decode, encode_user
from kernel.principal import ActorKind, Principal

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

SESSION_TENANT = "tenant"
ALWAYS_OPEN = ("/account/", "/sign-")  # also for whom a second factor is missing
ALWAYS_OPEN_PAGES = ("/theme", "/language", "/tenant", "/display", "/display/zone")
TENANTS = PreparedQuery(
    lambda user: (
        Tenant.objects.filter(memberships__user=user)
        .annotate(joined_at=Min("memberships__created_at"))
        .order_by("joined_at", "name")
    ),
    user=int,
)
NOT_OF_CONSOLE = (API_PREFIX, *SERVED_PREFIXES, "/static/", "/healthz", "/readyz")


def principal_of_user(user: Any, tenant: Tenant) -> Principal:
    return Principal(
        kind=ActorKind.USER,
        id=encode_user(user.pk),
        name=user.get_full_name() or user.get_username(),
        tenant_id=tenant.pk,
        allowed=read_held_permissions(user, tenant),
    )


def list_tenants(user: Any) -> list[Tenant]:
    """Where somebody belongs; the tenant they joined first comes first, and is where they begin."""
    return [*TENANTS.all(user=user.pk)]


def tenants_for(request: HttpRequest) -> tuple[Tenant | None, list[Tenant]]:
    """The tenant in which a signed-in person acts, as this session chose it, and all that they may choose from."""
    with hub_wide():
        tenants = list_tenants(request.user)
    chosen = request.session.get(SESSION_TENANT, "")
    return next((each for each in tenants if each.wire_id == chosen), tenants[0] if tenants else None), tenants


def is_of_console(request: HttpRequest) -> bool:
    """Whether a person's browser asks, and no program."""
    return not request.path.startswith(NOT_OF_CONSOLE)


def attach_principal(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    def middleware(request: HttpRequest) -> HttpResponseBase:
        request.principal, request.tenant, request.tenants = None, None, []  # type: ignore[attr-defined]
        request.display = None  # type: ignore[attr-defined]  # for an error page, if finding it is what fails
        if is_of_console(request) and request.user.is_authenticated:
            tenant, tenants = tenants_for(request)
            if tenant is not None:
                act_for(tenant.pk)
                request.principal = principal_of_user(request.user, tenant)  # type: ignore[attr-defined]
            request.tenant, request.tenants = tenant, tenants  # type: ignore[attr-defined]
            governed = not request.path.startswith(ALWAYS_OPEN) and request.path not in ALWAYS_OPEN_PAGES
            if tenant is not None and governed and must_set_up_second_factor(request.user, tenant):
                to = reverse("mfa_index")
                return HttpResponseClientRedirect(to) if getattr(request, "htmx", False) else HttpResponseRedirect(to)
        return get_response(request)

    return middleware


def choose_tenant(request: HttpRequest, tenant_id: str) -> None:
    """Remember the tenant for this session; ``Tenant.DoesNotExist`` when the person does not belong to it."""
    try:
        pk = decode("ten", tenant_id)
    except ValueError:
        raise Tenant.DoesNotExist from None
    with hub_wide():
        tenant = Tenant.objects.filter(memberships__user=request.user).distinct().get(pk=pk)  # type: ignore[misc]
    request.session[SESSION_TENANT] = tenant.wire_id
