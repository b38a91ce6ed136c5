"""Sign-in adapters: how a person proves who they are, and when they last did.

Passwords, codes, passkeys and OpenID Connect are django-allauth's; this module is what it asks us, and :func:`is_fresh` what we
ask it. Nobody signs up by themselves: people are invited (:mod:`access.members.invitations`), and an identity provider lets in whom we
know by an address that it has verified.
"""

from __future__ import annotations

import base64
import os
import time
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec
from urllib.parse import urlencode, urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import (
    AUTHENTICATION_METHODS_SESSION_KEY,
    get_authentication_records,
    record_authentication,
)
from allauth.account.internal.flows.reauthentication import did_recently_reauthenticate, get_reauthentication_flows
from allauth.account.models import EmailAddress
from allauth.core.internal import ratelimit
from allauth.core.internal.ratelimit import RateLimitUsage
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in
from django.db.models import Q
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect
from guardian.shortcuts import get_user_perms

from access.models import Membership
from access.object_permissions.rules import user_object_permissions
from access.sign_in.known_devices import device_of, known_device, remember_device
from evidence.keys.keystore import NONCE_BYTES, get_keystore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from django.http import HttpRequest

    from access.models import Tenant
    from kernel.http.console import ConsoleRequest

P = ParamSpec("P")
PURPOSE = b"second-factors"
ASKED_AT = "toolhub_asked_at"  # on a request: when an identity provider has asked the person who they are
SECOND_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def add_message(
        self, request: HttpRequest, level: int, message_template: str | None = None, *args: Any, **more: Any
    ) -> None:
        """Not for signing in and out, which people see anyhow."""
        if message_template not in ("account/messages/logged_in.txt", "account/messages/logged_out.txt"):
            super().add_message(request, level, message_template, *args, **more)

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count an attempt before it is made; :meth:`authenticate` takes it back when it was the right password."""
        person = _person_of(credentials)
        used = RateLimitUsage([])
        self._login_failed_rl_usage = used
        for rates, key in _attempts(request, person):
            usage = ratelimit.consume(
                request, app="allauth.account", action="login_failed", config={"login_failed": rates}, key=key
            )
            if usage is None:
                used.rollback()
                raise self.validation_error("too_many_login_attempts")
            used.usage += usage.usage

    def post_login(self, request: HttpRequest, user: Any, **more: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **more)
        remember_device(request, response, str(user.pk))
        return response


def _person_of(credentials: Mapping[str, Any]) -> str:
    """Whose name or address it is, so that both count as one; of nobody, what was typed."""
    typed = str(credentials.get("email") or credentials.get("username") or "").lower()
    if "\0" in typed:  # nobody has such a name, and PostgreSQL takes none
        return f"nobody {typed}"
    found = get_user_model().objects.filter(Q(username__iexact=typed) | Q(email__iexact=typed))
    return str(found.values_list("pk", flat=True).first() or f"nobody {typed}")


def is_from_known_device(request: HttpRequest, typed: str) -> bool:
    """Then it has attempts of its own, whatever else comes from its address.

    Counts the attempt. Beyond its own rate a device is one of its address, and nobody is looked up for it, nor for a cookie
    that the hub did not sign.
    """
    device = device_of(request)
    if not device or not ratelimit.consume(request, app="allauth.account", action="login_device", key=device):
        return False
    return bool(known_device(request, _person_of({"username": typed})))


def _attempts(request: HttpRequest, person: str) -> list[tuple[str, str]]:
    """What an attempt counts for: rates, and the key that they are of."""
    if device := known_device(request, person):
        return [(settings.ACCOUNT_RATE_LIMITS.get("login_failed_device", ""), f"{person} {device}")]
    return [
        (settings.ACCOUNT_RATE_LIMITS.get("login_failed", ""), f"{person} {ratelimit.get_ip(request)}"),
        (settings.ACCOUNT_RATE_LIMITS.get("login_failed_person", ""), person),
    ]


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def authenticate_by_email(self, sociallogin: Any) -> tuple[Any, str] | None:
        """Not into an account with a password whose address was never proved: whoever invited may have chosen both."""
        found: tuple[Any, str] | None = super().authenticate_by_email(sociallogin)
        if found is None or not found[0].has_usable_password():
            return found
        proved = EmailAddress.objects.filter(user=found[0], email__iexact=found[1], verified=True).exists()
        return found if proved else None

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """When the provider has asked the person who they are: one that lets them in by a session of its own asked earlier."""
        said = (sociallogin.account.extra_data or {}).get("id_token") or {}
        asked_at = said.get("auth_time")
        if isinstance(asked_at, int | float) and not isinstance(asked_at, bool):
            setattr(request, ASKED_AT, float(asked_at))


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of second factors are encrypted with a key made from the first master key, which no rotation takes away."""

    def encrypt(self, text: str) -> str:
        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(self._key()).encrypt(nonce, text.encode(), PURPOSE)
        return base64.b64encode(nonce + sealed).decode()

    def decrypt(self, encrypted_text: str) -> str:
        raw = base64.b64decode(encrypted_text)
        return AESGCM(self._key()).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], PURPOSE).decode()

    def _key(self) -> bytes:
        store = get_keystore()
        return store.derive(PURPOSE, store.first())[1]


def note_sign_in(*, request: HttpRequest | None = None, user: Any = None, **_: Any) -> None:
    """Signing in counts as having just proved who one is, in whichever way it was done; with an identity provider that says when it
    asked the person (`auth_time`), as having proved it then.
    """
    if request is not None and hasattr(request, "session"):
        record_authentication(request, user, method="sign_in", reauthenticated=True)
        asked_at = getattr(request, ASKED_AT, None)
        if asked_at is not None:
            records = get_authentication_records(request, user)
            records[-1]["at"] = min(records[-1]["at"], asked_at)
            request.session[AUTHENTICATION_METHODS_SESSION_KEY] = records


user_logged_in.connect(note_sign_in, dispatch_uid="note_sign_in")


def is_fresh(request: HttpRequest) -> bool:
    """Whether this person proved who they are within ACCOUNT_REAUTHENTICATION_TIMEOUT.

    Always, for people who have neither a password nor a second factor here: their identity provider answers for them.
    """
    return bool(did_recently_reauthenticate(request))


def find_last_proof(request: HttpRequest) -> float | None:
    """When this person last proved who they are, in seconds since 1970: here, or to their identity provider where it says so."""
    proofs = [each["at"] for each in get_authentication_records(request, request.user) if each.get("reauthenticated")]
    return proofs[-1] if proofs else None


def has_signed_in_within(request: HttpRequest, lasts: timedelta) -> bool:
    """Whether that is no longer ago. Also of people whose identity provider answers for them."""
    at = find_last_proof(request)
    return at is not None and time.time() - at < lasts.total_seconds()


def redirect_to_prove(request: HttpRequest, *, to: str, lasts: timedelta) -> HttpResponse:
    """Sends a person to prove again who they are, and then ``to`` a page. Who has neither a password nor a second factor here is sent
    to their identity provider, which is told how recent it has to be (OpenID Connect, `max_age`).
    """
    if get_reauthentication_flows(request.user):
        return HttpResponseRedirect(f"{reverse('account_reauthenticate')}?{urlencode({'next': to})}")
    return HttpResponseRedirect(
        f"{reverse('sign_in')}?{urlencode({'next': to, 'max_age': int(lasts.total_seconds())})}"
    )


def recently_authenticated(
    view: Callable[Concatenate[ConsoleRequest, P], HttpResponse],
) -> Callable[Concatenate[ConsoleRequest, P], HttpResponse]:
    """Below ``@needs(…)``: sends people whose sign-in is older to prove again who they are, and then back to the page."""

    @wraps(view)
    def checked(request: ConsoleRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        return view(request, *args, **kwargs) if is_fresh(request) else redirect_to_reauthenticate(request)

    return checked


def redirect_to_reauthenticate(request: HttpRequest) -> HttpResponse:
    """Sends a person to prove again who they are, and then back to the page."""
    to = f"{reverse('account_reauthenticate')}?{urlencode({'next': _page_of(request)})}"
    return HttpResponseClientRedirect(to) if getattr(request, "htmx", False) else HttpResponseRedirect(to)


def _page_of(request: HttpRequest) -> str:
    """The page that a person was on: the address itself, or for a form that was sent the page that holds it."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    referer = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referer, {request.get_host()}, require_https=request.is_secure()):
        return "/"
    parts = urlsplit(referer)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def must_set_up_second_factor(user: Any, tenant: Tenant) -> bool:
    """Whether what the person holds here asks for a second factor (TOOLHUB_REQUIRE_MFA) that they do not have.

    Where a role asks for one, so does every permission beside the roles. Not for people whose account is at an identity provider
    only: it asks for what it finds right.
    """
    if not settings.TOOLHUB_REQUIRE_MFA:
        return False
    if Authenticator.objects.filter(user=user, type__in=SECOND_FACTORS).exists():
        return False
    roles = Membership.objects.filter(tenant=tenant, user=user, role__in=settings.TOOLHUB_REQUIRE_MFA)
    if not (roles.exists() or get_user_perms(user, tenant) or user_object_permissions(user, tenant_id=tenant.pk)):
        return False
    return bool(user.has_usable_password() or not SocialAccount.objects.filter(user=user).exists())
