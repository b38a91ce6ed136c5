"""Sessions of pages: as whom a session acts now, asked again while its stream is open, so that what was taken back ends the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from access.middleware import principal_of_user, tenants_for
from access.sign_in.adapters import must_set_up_second_factor
from kernel.database.tenancy import acting_for, hub_wide

if TYPE_CHECKING:
    from kernel.principal import Principal


@dataclass(frozen=True, slots=True)
class SessionPrincipal:
    principal: Principal
    session_data: str  # what of the session it was read from


def find_principal(session_key: str) -> SessionPrincipal | None:
    """As request middleware finds it for a request; None where that would send the person to sign in."""
    with hub_wide():
        row = Session.objects.filter(session_key=session_key, expire_date__gt=timezone.now()).first()
        if row is None:
            return None
        request = HttpRequest()
        request.session = SessionStore(session_key)
        request.user = get_user(request)
        if not request.user.is_authenticated:
            return None
        tenant, _ = tenants_for(request)
    if tenant is None or must_set_up_second_factor(request.user, tenant):
        return None
    with acting_for(tenant.pk):
        return SessionPrincipal(principal_of_user(request.user, tenant), row.session_data)
