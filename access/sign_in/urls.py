"""Addresses of signing in, and of what a person has to sign in with: pages of django-allauth.

All are for people about themselves, so none needs a permission: those of somebody who is signed in send others to the sign-in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect import views as oidc
from allauth.usersessions import views as usersessions
from django.db import transaction
from django.urls import path

from access.sign_in import pages
from kernel.http.console import public

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern


def atomic_path(address: str, view: Callable[..., Any], name: str) -> URLPattern:
    """In one transaction: what is changed here, and the fact that it was (access.sign_in.facts)."""

    @transaction.atomic
    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = view(request, *args, **kwargs)
        if hasattr(response, "render"):
            response.headers["Cache-Control"] = "no-store"
        return response

    return path(f"account/{address}", public(page), name=name)


PAGES = [
    path("sign-in", pages.sign_in, name="sign_in"),
    path("account/sign-in", pages.sign_in_elsewhere, name="account_login"),
    atomic_path("inactive", account.account_inactive, "account_inactive"),
    atomic_path("confirm", account.reauthenticate, "account_reauthenticate"),
    atomic_path("password", account.password_change, "account_change_password"),
    atomic_path("password/set", account.password_set, "account_set_password"),
    atomic_path("password/forgotten", pages.with_mail(account.password_reset), "account_reset_password"),
    atomic_path("password/forgotten/sent", pages.with_mail(account.password_reset_done), "account_reset_password_done"),
    atomic_path(
        "password/new/<base36:uidb36>-<str:key>",
        pages.with_mail(account.password_reset_from_key),
        "account_reset_password_from_key",
    ),
    atomic_path(
        "password/new/done",
        pages.with_mail(account.password_reset_from_key_done),
        "account_reset_password_from_key_done",
    ),
    atomic_path("security", pages.SecurityView.as_view(), "mfa_index"),
    atomic_path("second-step", mfa.authenticate, "mfa_authenticate"),
    atomic_path("confirm/code", mfa.reauthenticate, "mfa_reauthenticate"),
    atomic_path("app/new", totp.activate_totp, "mfa_activate_totp"),
    atomic_path("app/remove", totp.deactivate_totp, "mfa_deactivate_totp"),
    atomic_path("recovery-codes", recovery_codes.view_recovery_codes, "mfa_view_recovery_codes"),
    atomic_path("recovery-codes/new", recovery_codes.generate_recovery_codes, "mfa_generate_recovery_codes"),
    atomic_path("recovery-codes/file", recovery_codes.download_recovery_codes, "mfa_download_recovery_codes"),
    atomic_path("passkeys", webauthn.list_webauthn, "mfa_list_webauthn"),
    atomic_path("passkeys/new", webauthn.add_webauthn, "mfa_add_webauthn"),
    atomic_path("passkeys/<int:pk>/remove", webauthn.remove_webauthn, "mfa_remove_webauthn"),
    atomic_path("passkeys/<int:pk>/name", webauthn.edit_webauthn, "mfa_edit_webauthn"),
    atomic_path("passkeys/sign-in", webauthn.login_webauthn, "mfa_login_webauthn"),
    atomic_path("confirm/passkey", webauthn.reauthenticate_webauthn, "mfa_reauthenticate_webauthn"),
    atomic_path("sessions", usersessions.list_usersessions, "usersessions_list"),
    atomic_path("sso/cancelled", social.login_cancelled, "socialaccount_login_cancelled"),
    atomic_path("sso/error", social.login_error, "socialaccount_login_error"),
    atomic_path("sso/<slug:provider_id>", oidc.login, "openid_connect_login"),
    atomic_path("sso/<slug:provider_id>/callback", oidc.callback, "openid_connect_callback"),
]
