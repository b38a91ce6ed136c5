"""Which of django-allauth's pages does the hub have, and who may open them?

All are for people about themselves, so none needs a permission: those of somebody who is signed in send others to the sign-in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account import views as account
from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.core.ratelimit import consume_or_429
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect import views as oidc
from allauth.usersessions import views as usersessions
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from access.signing_in import must_set_up_second_factor
from toolhub.kernel.console import public, render_page
from toolhub.kernel.problems import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.urls import URLPattern


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
        if (limited := consume_or_429(request, action="login")) is not None:
            return limited  # type: ignore[no-any-return]
        if form.is_valid():
            login = Login(user=form.get_user(), redirect_url=to)
            return perform_password_login(request, {"username": form.cleaned_data["username"]}, login)  # type: ignore[no-any-return]
    context = {"form": form, "next": to, "providers": providers(to), "may_reset": bool(settings.TOOLHUB_EMAIL_URL)}
    return render_page(request, "access/sign_in.html", context, status=422 if form.is_bound else 200)


def providers(to: str) -> list[dict[str, str]]:
    del to  # after signing in elsewhere, people begin at the overview
    apps = settings.SOCIALACCOUNT_PROVIDERS.get("openid_connect", {}).get("APPS", [])
    return [{"name": app["name"], "url": reverse("openid_connect_login", args=[app["provider_id"]])} for app in apps]


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
            raise NotFound(gettext("This hub cannot send mail. Ask an owner of the hub for another way in."))
        return view(request, *args, **kwargs)

    return checked


def own(address: str, view: Callable[..., Any], name: str) -> URLPattern:
    """In one transaction: what is changed here, and the fact that it was (access.sign_in_facts)."""

    @transaction.atomic
    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = view(request, *args, **kwargs)
        if hasattr(response, "render"):
            response.headers["Cache-Control"] = "no-store"
        return response

    return path(f"account/{address}", public(page), name=name)


urlpatterns = [
    path("sign-in", sign_in, name="sign_in"),
    path("account/sign-in", sign_in_elsewhere, name="account_login"),
    own("inactive", account.account_inactive, "account_inactive"),
    own("confirm", account.reauthenticate, "account_reauthenticate"),
    own("password", account.password_change, "account_change_password"),
    own("password/set", account.password_set, "account_set_password"),
    own("password/forgotten", with_mail(account.password_reset), "account_reset_password"),
    own("password/forgotten/sent", with_mail(account.password_reset_done), "account_reset_password_done"),
    own(
        "password/new/<base36:uidb36>-<str:key>",
        with_mail(account.password_reset_from_key),
        "account_reset_password_from_key",
    ),
    own(
        "password/new/done",
        with_mail(account.password_reset_from_key_done),
        "account_reset_password_from_key_done",
    ),
    own("security", SecurityView.as_view(), "mfa_index"),
    own("second-step", mfa.authenticate, "mfa_authenticate"),
    own("confirm/code", mfa.reauthenticate, "mfa_reauthenticate"),
    own("app/new", totp.activate_totp, "mfa_activate_totp"),
    own("app/remove", totp.deactivate_totp, "mfa_deactivate_totp"),
    own("recovery-codes", recovery_codes.view_recovery_codes, "mfa_view_recovery_codes"),
    own("recovery-codes/new", recovery_codes.generate_recovery_codes, "mfa_generate_recovery_codes"),
    own("recovery-codes/file", recovery_codes.download_recovery_codes, "mfa_download_recovery_codes"),
    own("passkeys", webauthn.list_webauthn, "mfa_list_webauthn"),
    own("passkeys/new", webauthn.add_webauthn, "mfa_add_webauthn"),
    own("passkeys/<int:pk>/remove", webauthn.remove_webauthn, "mfa_remove_webauthn"),
    own("passkeys/<int:pk>/name", webauthn.edit_webauthn, "mfa_edit_webauthn"),
    own("passkeys/sign-in", webauthn.login_webauthn, "mfa_login_webauthn"),
    own("confirm/passkey", webauthn.reauthenticate_webauthn, "mfa_reauthenticate_webauthn"),
    own("sessions", usersessions.list_usersessions, "usersessions_list"),
    own("sso/cancelled", social.login_cancelled, "socialaccount_login_cancelled"),
    own("sso/error", social.login_error, "socialaccount_login_error"),
    own("sso/<slug:provider_id>", oidc.login, "openid_connect_login"),
    own("sso/<slug:provider_id>/callback", oidc.callback, "openid_connect_callback"),
]
