"""Signing in: the page for it, and what the hub adds to pages of django-allauth."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.core.ratelimit import consume_or_429
from allauth.mfa.base import views as mfa
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from access.sign_in.adapters import is_from_known_device, must_set_up_second_factor
from kernel.http.console import public, render_page
from kernel.problems import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest


class SignInForm(AuthenticationForm):
    """Name or e-mail address, and password; what is wrong with them is not told apart."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.fields["username"].help_text = gettext_lazy("Or your e-mail address.")

    def clean(self) -> Any:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if name and password:
            # The adapter slows down guessing: it raises a ValidationError after too many attempts.
            user = get_adapter().authenticate(self.request, username=name, password=password)
            if user is None:
                raise self.get_invalid_login_error()
            self.user_cache = user
            self.confirm_login_allowed(user)
        return self.cleaned_data


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
@public
def sign_in(request: HttpRequest) -> HttpResponse:
    """Context: form, next, providers (list of {name, url}), may_reset."""
    to = request.POST.get("next", request.GET.get("next", ""))
    if not url_has_allowed_host_and_scheme(to, {request.get_host()}, require_https=request.is_secure()):
        to = "/"
    form = SignInForm(request, data=request.POST if request.method == "POST" else None)
    if request.method == "POST":
        known = is_from_known_device(request, form.data.get("username", ""))
        if not known and (limited := consume_or_429(request, action="login")) is not None:
            return limited  # type: ignore[no-any-return]
        if form.is_valid():
            login = Login(user=form.get_user(), redirect_url=reverse("start") if to == "/" else to)
            return perform_password_login(request, {"username": form.cleaned_data["username"]}, login)  # type: ignore[no-any-return]
    max_age = request.GET.get("max_age", "")
    providers = list_providers(to, max_age_s=int(max_age) if re.fullmatch(r"[0-9]{1,7}", max_age) else None)
    context = {"form": form, "next": to, "providers": providers, "may_reset": bool(settings.TOOLHUB_EMAIL_URL)}
    return render_page(request, "sign_in/sign_in.html", context, status=422 if form.is_bound else 200)


def list_providers(to: str, *, max_age_s: int | None = None) -> list[dict[str, str]]:
    """``to``: where people go after they have signed in there; a program that sent them here waits for them to come back.
    ``max_age_s``: the provider asks them again if it did so longer ago.
    """
    apps = settings.SOCIALACCOUNT_PROVIDERS.get("openid_connect", {}).get("APPS", [])
    said = {"next": to} if to != "/" else {}
    if max_age_s is not None:
        said["auth_params"] = urlencode({"max_age": max_age_s})
    query = f"?{urlencode(said)}" if said else ""
    return [
        {"name": app["name"], "url": reverse("openid_connect_login", args=[app["provider_id"]]) + query} for app in apps
    ]


@require_GET
@public
def sign_in_elsewhere(request: HttpRequest) -> HttpResponse:
    """The address that allauth sends people to."""
    query = request.META.get("QUERY_STRING", "")
    return HttpResponseRedirect(reverse("sign_in") + (f"?{query}" if query else ""))


class SecurityView(mfa.IndexView):  # type: ignore[misc]
    """Says also whether what the person holds waits for a second factor."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        tenant = getattr(self.request, "tenant", None)
        waits = tenant is not None and must_set_up_second_factor(self.request.user, tenant)
        return {**super().get_context_data(**kwargs), "must_set_up": waits}


def with_mail(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Not there on a hub that cannot send mail: the page would promise a link that never comes."""

    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.TOOLHUB_EMAIL_URL:
            raise NotFound(gettext("This hub cannot send e-mail. Ask an owner of the hub to restore your access."))
        return view(request, *args, **kwargs)

    return checked
