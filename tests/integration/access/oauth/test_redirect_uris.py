"""Redirect URIs: is an answer sent only where it may go, whoever has registered what?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as configured
from oauth2_provider.models import Application

from access.oauth.redirect_uris import APP_SCHEMES, RedirectRefused, check_redirect_uri
from tests.support.client_documents import DOCUMENT, claude_document, serve_document
from tests.support.connections import REDIRECT, Program, register

if TYPE_CHECKING:
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "uri",
    [
        "http://evil.test/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "blob:https://x/1",
        "https://x.example/cb#fragment",
        "https://x.example/cb#",
        "https://user@x.example/cb",
        "https://*.example/cb",
        "https:/x.example/cb",
        "ftp://x.example/cb",
        "about:blank",
        "http://localhost.evil.test/cb",
        "http://127.0.0.1.evil.test/cb",
        "https://x.example/a b",
        "vbscript:x",
        "intent://x#Intent;end",
        "https://ｘ.example/cb",
        "https://" + "x" * 254 + "/cb",
        *("https://a;frame-ancestors/cb", "https://a;sandbox/cb", "https://a'/cb", "https://a,b/cb", "https://%2e/cb"),
        *("https://$/cb", "http://[::1]evil/cb", "https://a..b/cb", "com.example.app:/cb", f"com.{'a' * 300}:/cb"),
    ],
)
def test_an_answer_is_sent_nowhere_else(uri: str) -> None:
    answer = register(redirect_uris=[REDIRECT, uri])

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
    with pytest.raises(RedirectRefused):
        check_redirect_uri(uri)


@pytest.mark.req("CONN-1")
def test_what_was_registered_past_the_rule_is_not_answered_either(operator: Person) -> None:
    program = Program.registered()
    Application.objects.update(redirect_uris="http://evil.test/cb")

    answer = program.open_page(operator.client(), redirect_uri="http://evil.test/cb")

    assert answer.status_code == 400
    assert "Location" not in answer.headers


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "uri",
    [
        *("https://x.example/cb", "https://x.example:8443/cb?a=b", "https://[2606:2800:220:1::1]/cb"),
        *("http://127.0.0.1/cb", "http://[::1]:1/cb", "http://localhost/cb", "cursor://a.b/cb", "vscode://c"),
    ],
)
def test_what_registers_is_good_in_a_document_too(uri: str, monkeypatch: pytest.MonkeyPatch, operator: Person) -> None:
    serve_document(monkeypatch, claude_document(redirect_uris=[uri]))

    assert register(redirect_uris=[uri]).status_code == 201
    assert Program(DOCUMENT, uri).open_page(operator.client()).status_code == 200


@pytest.mark.req("CONN-1")
def test_the_librarys_schemes_are_ours() -> None:
    named: Any = configured.OAUTH2_PROVIDER["ALLOWED_REDIRECT_URI_SCHEMES"]

    assert set(named) == {"https", "http", *APP_SCHEMES}


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "uri", ["https://client.example/other", "https://client.example/callback/../x", REDIRECT + "?x=1"]
)
def test_an_address_that_was_not_registered_is_not_answered(uri: str, operator: Person) -> None:
    answer = Program.registered().open_page(operator.client(), redirect_uri=uri)

    assert answer.status_code == 400
    assert "Location" not in answer.headers


@pytest.mark.req("CONN-1")
def test_an_unknown_client_sends_nobody_anywhere(operator: Person) -> None:
    answer = Program("nobody").open_page(operator.client())

    assert answer.status_code == 400
    assert "Location" not in answer.headers


@pytest.mark.req("CONN-1")
def test_more_than_ten_addresses_are_too_many() -> None:
    assert register(redirect_uris=[f"https://x.example/{n}" for n in range(11)]).status_code == 400
