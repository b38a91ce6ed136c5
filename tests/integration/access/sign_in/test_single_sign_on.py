"""Single sign-on: who comes in by an identity provider, and as whom?"""

from __future__ import annotations

import json
import re
import time
from datetime import timedelta
from html import unescape
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client
from joserfc import jwt
from joserfc.jwk import OctKey

from access.sign_in.adapters import has_signed_in_within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_attempts_yet() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


DISCOVERY = {
    "issuer": "{url}",
    "authorization_endpoint": "{url}/authorize",
    "token_endpoint": "{url}/token",
    "userinfo_endpoint": "{url}/userinfo",
    "jwks_uri": "{url}/jwks",
}


class FakeSession:
    """What the provider answers to the hub, without a network."""

    def __init__(self, userinfo: dict[str, Any], **more: str) -> None:
        self.userinfo, self.more = userinfo, more

    def __enter__(self) -> FakeSession:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def request(self, method: str, url: str, **_: Any) -> Any:
        return self._answer({"access_token": "at", "token_type": "Bearer"} | self.more)

    def get(self, url: str, **_: Any) -> Any:
        if url.endswith("/userinfo"):
            return self._answer(self.userinfo)
        return self._answer(
            {name: text.replace("{url}", "https://idp.example.org") for name, text in DISCOVERY.items()}
        )

    def _answer(self, document: dict[str, Any]) -> Any:
        class Answer:
            status_code = 200
            headers = {"content-type": "application/json"}
            text = json.dumps(document)

            def json(self) -> Any:
                return document

            def raise_for_status(self) -> None:
                pass

        return Answer()


def single_sign_on(
    userinfo: dict[str, Any], settings: Any, monkeypatch: pytest.MonkeyPatch, *, to: str = "", **more: str
) -> tuple[Client, Any]:
    app = {
        "provider_id": "oidc", "name": "Example", "client_id": "hub", "secret": "s",
        "settings": {"server_url": "https://idp.example.org"},
    }  # fmt: skip
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
    monkeypatch.setattr(
        "access.sign_in.adapters.SocialAdapter.get_requests_session", lambda self: FakeSession(userinfo, **more)
    )
    client = Client()
    page = client.get("/sign-in", {"next": to} if to else {}).content.decode()
    assert "Example" in page
    (address,) = re.findall(r'action="(/account/sso/oidc[^"]*)"', page)
    sent = urlsplit(client.post(unescape(address)).headers["Location"])
    assert (sent.netloc, sent.path) == ("idp.example.org", "/authorize")
    query = parse_qs(sent.query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["redirect_uri"] == ["http://testserver/account/sso/oidc/callback"]
    return client, client.get("/account/sso/oidc/callback", {"code": "c", "state": query["state"][0]}, follow=True)


@pytest.mark.parametrize("proved", [True, False])
def test_an_account_with_a_password_is_its_address_only_if_that_was_proved(
    proved: bool, operator: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.user.email = "olivia@example.org"
    operator.user.save()
    EmailAddress.objects.create(user=operator.user, email="olivia@example.org", verified=proved)

    userinfo = {"sub": "o-1", "email": "olivia@example.org", "email_verified": True}
    client, _ = single_sign_on(userinfo, settings, monkeypatch)

    assert ("_auth_user_id" in client.session) is proved


def test_somebody_who_was_invited_signs_in_at_their_provider(
    operator: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.user.set_unusable_password()
    operator.user.email = "olivia@example.org"
    operator.user.save()

    userinfo = {"sub": "o-1", "email": "olivia@example.org", "email_verified": True}
    client, _ = single_sign_on(userinfo, settings, monkeypatch)

    assert client.get("/grants").status_code == 200
    assert client.session["_auth_user_id"] == str(operator.user.pk)


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("minutes_ago", [1, 30])
def test_a_sign_in_is_as_old_as_the_provider_says_that_it_asked_the_person(
    minutes_ago: int, operator: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.user.set_unusable_password()
    operator.user.email = "olivia@example.org"
    operator.user.save()
    now = int(time.time())
    claims = {"iss": "https://idp.example.org", "aud": "hub", "sub": "o-1", "iat": now, "exp": now + 300}
    claims["auth_time"] = now - minutes_ago * 60
    key = OctKey.import_key("a key that nobody checks, since the token came over TLS")
    token = jwt.encode({"alg": "HS256"}, claims, key)

    userinfo = {"sub": "o-1", "email": "olivia@example.org", "email_verified": True}
    client, _ = single_sign_on(userinfo, settings, monkeypatch, id_token=token)

    request: Any = SimpleNamespace(user=operator.user, session=client.session)
    assert has_signed_in_within(request, timedelta(minutes=5)) is (minutes_ago == 1)


@pytest.mark.parametrize(
    "userinfo",
    [
        {"sub": "o-1", "email": "olivia@example.org", "email_verified": False},
        {"sub": "o-1", "email": "olivia@example.org"},
        {"sub": "o-1", "email": "stranger@example.org", "email_verified": True},
        {"sub": "o-1"},
    ],
)
def test_a_provider_lets_in_nobody_else(
    userinfo: dict[str, Any], operator: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.user.email = "olivia@example.org"
    operator.user.save()

    client, answer = single_sign_on(userinfo, settings, monkeypatch)

    assert "_auth_user_id" not in client.session
    assert answer.status_code == 200
    assert get_user_model().objects.count() == 1
    assert not EmailAddress.objects.filter(verified=True).exists()


@pytest.mark.req("CONN-3")
def test_who_was_sent_by_a_program_comes_back_to_what_it_asks(
    operator: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.user.email = "olivia@example.org"
    operator.user.save()
    EmailAddress.objects.create(user=operator.user, email="olivia@example.org", verified=True)
    userinfo = {"sub": "o-1", "email": "olivia@example.org", "email_verified": True}

    _, answer = single_sign_on(userinfo, settings, monkeypatch, to="/connections/mine?a=1&b=2")
    _, elsewhere = single_sign_on(userinfo, settings, monkeypatch, to="https://evil.example/")

    assert answer.redirect_chain[-1][0] == "/connections/mine?a=1&b=2"
    assert elsewhere.redirect_chain[-1][0] == "/"
