"""Pages of a session: signing out and choosing a tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import logout
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from access.middleware import choose_tenant
from kernel.http.console import public

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
@public
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("sign_in")


@require_POST
@public
def switch_tenant(request: HttpRequest) -> HttpResponse:
    """Only to a tenant that the person belongs to; anything else is not found."""
    if request.user.is_authenticated:
        choose_tenant(request, request.POST.get("tenant", ""))
    return redirect("start")
