"""Client documents: whose are fetched, for whom, and what makes a program known?"""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

import pytest
from django.conf import settings as configured
from django.core.cache import cache
from django.test import Client
from oauth2_provider.models import Application

from access.budgets.rate_limits import RateLimit
from access.models import Connection
from kernel.database.connections import database_time
from kernel.http.outbound import AddressRefused, OutboundFailed
from tests.support.client_documents import DOCUMENT, claude_document, serve_document
from tests.support.connections import REDIRECT, Program

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
HUB = configured.TOOLHUB_PUBLIC_URL
REST = {"resource": HUB}


@pytest.mark.req("CONN-1")
def test_a_document_makes_its_host_known_and_any_port_of_this_computer_good(
    monkeypatch: pytest.MonkeyPatch, operator: Person, caller: Caller
) -> None:
    serve_document(monkeypatch, claude_document())
    program = Program(DOCUMENT, "http://localhost:53219/callback")

    page = program.open_page(operator.client()).content.decode()
    tokens = program.connect(operator, caller.agent)

    assert "<bdi>claude.ai</bdi> asks to act as an agent" in page
    assert "a program on this computer" in page
    assert tokens["access_token"]
    assert Connection.objects.get().client_host == "claude.ai"


@pytest.mark.req("CONN-1")
def test_the_page_warns_where_another_host_than_the_programs_gets_the_answer(
    monkeypatch: pytest.MonkeyPatch, operator: Person, caller: Caller
) -> None:
    there = ["https://claude.ai/callback", "https://files.test/callback"]
    serve_document(monkeypatch, claude_document(redirect_uris=there))

    own, other = (Program(DOCUMENT, each).open_page(operator.client()).content.decode() for each in there)

    assert "which is not claude.ai" not in own
    assert "<bdi>files.test</bdi></strong>, which is not claude.ai." in other
    for page in (own, other):  # the whole id, before what it says of itself
        assert 0 < page.index(f"<bdi>{DOCUMENT}</bdi>") < page.index("Claude Code")


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "wrong",
    [
        {"client_id": "https://claude.ai/other"},
        {"client_secret": "x"},
        {"redirect_uris": ["http://evil.test/cb"]},
        {"redirect_uris": []},
        {"grant_types": ["client_credentials"]},
        {"token_endpoint_auth_method": "client_secret_post"},
    ],
)
def test_a_document_that_is_not_as_it_must_be_makes_nobody_known(
    wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    serve_document(monkeypatch, claude_document(**wrong))

    answer = Program(f"{DOCUMENT}", "http://localhost/callback").open_page(operator.client())

    assert answer.status_code == 400
    assert not Application.objects.exists()


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("problem", [AddressRefused("private"), OutboundFailed("3 MB"), OutboundFailed("answered 302")])
def test_a_document_that_cannot_be_had_makes_nobody_known(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    serve_document(monkeypatch, {}, raises=problem)

    answer = Program("https://elsewhere.example/client", "http://localhost/callback").open_page(operator.client())

    assert answer.status_code == 400


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    ("client_id", "redirect_uri"),
    [
        ("https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.ai/api/mcp/auth_callback"),
        ("https://claude.ai/oauth/claude-code-client-metadata", "http://localhost:53219/callback"),
        ("https://chatgpt.com/oauth/client.json", "https://chatgpt.com/connector_platform_oauth_redirect"),
        ("https://vscode.dev/oauth/client-metadata.json", "http://127.0.0.1:33419/"),
        ("https://vscode.dev/oauth/client-metadata.json", "https://vscode.dev/redirect"),
    ],
)
def test_a_widely_used_program_gets_in_where_its_document_cannot_be_had(
    client_id: str, redirect_uri: str, monkeypatch: pytest.MonkeyPatch, operator: Person, caller: Caller
) -> None:
    asked = serve_document(monkeypatch, {}, raises=OutboundFailed("answered 403"))  # as claude.ai answers servers

    tokens = Program(client_id, redirect_uri).connect(operator, caller.agent)

    assert tokens["access_token"]
    assert asked == [client_id]
    assert Connection.objects.get().client_host == urlsplit(client_id).hostname


@pytest.mark.req("CONN-1")
def test_what_a_document_has_said_before_counts_when_it_cannot_be_had_any_more(
    monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    serve_document(monkeypatch, claude_document(redirect_uris=["https://claude.ai/newer"]))
    assert Program(DOCUMENT, "https://claude.ai/newer").open_page(operator.client()).status_code == 200
    Application.objects.update(cimd_expires_at=database_time() - timedelta(seconds=1))
    serve_document(monkeypatch, {}, raises=OutboundFailed("answered 403"))

    newer = Program(DOCUMENT, "https://claude.ai/newer").open_page(operator.client())
    shipped = Program(DOCUMENT, "http://localhost/callback").open_page(operator.client())

    assert (newer.status_code, shipped.status_code) == (200, 400)


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    ("methods", "status"),
    [
        ({"token_endpoint_auth_methods_supported": ["none", "private_key_jwt"]}, 200),  # as ChatGPT's
        ({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}, 400),
        ({"token_endpoint_auth_methods_supported": "none"}, 400),
        ({}, 400),
    ],
)
def test_a_program_that_prefers_to_sign_and_can_do_without_is_known(
    methods: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    serve_document(monkeypatch, claude_document(token_endpoint_auth_method="private_key_jwt", **methods))

    assert Program(DOCUMENT, "http://localhost/callback").open_page(operator.client()).status_code == status


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "address", ["169.254.169.254", "127.0.0.1", "10.0.0.1", "::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]
)
@pytest.mark.parametrize("networks", [[], ["0.0.0.0/0", "::/0"]])
def test_a_document_is_not_fetched_from_a_private_address(
    networks: list[str], address: str, monkeypatch: pytest.MonkeyPatch, operator: Person, settings: Any
) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = networks  # that the operator allows for identity providers and webhooks
    cache.clear()
    connected: list[Any] = []
    monkeypatch.setattr("kernel.http.outbound.socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (address, 443))])
    monkeypatch.setattr("kernel.http.outbound.socket.create_connection", lambda *a, **k: connected.append(a))

    answer = Program(f"https://h{abs(hash(address))}.example/client", REDIRECT).open_page(operator.client())

    assert answer.status_code == 400
    assert connected == []


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(("address", "is_asked"), [("10.20.0.7", True), ("10.21.0.7", False), ("127.0.0.1", False)])
def test_a_private_network_that_the_operator_names_for_documents_is_asked_and_no_other(
    address: str, is_asked: bool, monkeypatch: pytest.MonkeyPatch, operator: Person, settings: Any
) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["10.0.0.0/8", "127.0.0.0/8"]
    settings.TOOLHUB_CLIENT_DOCUMENT_NETWORKS = ["10.20.0.0/16"]
    cache.clear()
    connected: list[Any] = []

    def refuse(*asked: Any, **_: Any) -> None:
        connected.append(asked[0])
        raise ConnectionRefusedError

    monkeypatch.setattr("kernel.http.outbound.socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (address, 443))])
    monkeypatch.setattr("kernel.http.outbound.socket.create_connection", refuse)

    for client_id in (f"https://desk-{address}.example/client", f"http://desk-{address}.example/client"):
        assert Program(client_id, REDIRECT).open_page(operator.client()).status_code == 400

    assert connected == [(address, 443)] * is_asked  # over https, and never without


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "client_id",
    [
        *("http://claude.ai/x", "https://claude.ai", "https://claude.ai/a/../b", "https://u@claude.ai/x"),
        "https://cl\u0430ude.ai/x",  # a Cyrillic letter
        "https://claude.ai\u202e/x",  # turns the line around
        "https://claude.ai/\u200bx",
        "https://claude.ai\uff0fx/y",
    ],
)
def test_an_id_that_can_be_read_in_two_ways_is_not_fetched(
    client_id: str, monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    asked = serve_document(monkeypatch, claude_document(client_id=client_id))

    assert Program(client_id, "http://localhost/callback").open_page(operator.client()).status_code == 400
    assert asked == []


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/oauth/token", {"grant_type": "authorization_code", "code": "x", "code_verifier": "v" * 64}),
        ("/oauth/token", {"grant_type": "refresh_token", "refresh_token": "x"}),
        ("/oauth/revoke", {"token": "x"}),
    ],
)
@pytest.mark.parametrize("basic", [False, True])
def test_nobody_who_is_not_signed_in_makes_the_hub_fetch_anything(
    basic: bool, path: str, form: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve_document(monkeypatch, claude_document())
    headers: Any = {}
    if basic:
        named = base64.b64encode(f"{quote_plus(DOCUMENT)}:".encode()).decode()
        headers["HTTP_AUTHORIZATION"] = f"Basic {named}"
    else:
        form = form | {"client_id": DOCUMENT}

    Program(DOCUMENT, "http://localhost/callback").open_page(Client())
    answer = Client().post(path, form, **headers)

    assert answer.status_code in (400, 401)
    assert asked == []
    assert not Application.objects.exists()


@pytest.mark.req("CONN-1")
def test_a_document_that_is_old_is_read_anew_for_a_person_and_for_no_program(
    monkeypatch: pytest.MonkeyPatch, operator: Person, caller: Caller
) -> None:
    asked = serve_document(monkeypatch, claude_document())
    program = Program(DOCUMENT, "http://localhost/callback")
    tokens = program.connect(operator, caller.agent)
    Application.objects.update(cimd_expires_at=database_time() - timedelta(seconds=1))

    assert program.refresh(tokens["refresh_token"]).status_code == 200
    assert len(asked) == 1
    program.open_page(operator.client())
    assert len(asked) == 2


@pytest.mark.req("CONN-1")
def test_a_person_makes_the_hub_fetch_so_many_documents_and_no_more(
    monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    monkeypatch.setattr("access.budgets.rate_limits.DOCUMENT_FETCHES", RateLimit(1, 3600, 1))
    asked = serve_document(monkeypatch, {})
    browser = operator.client()

    found = [Program(f"https://elsewhere.example/{n}", REDIRECT).open_page(browser).status_code for n in range(3)]

    assert found == [400, 429, 429]
    assert len(asked) == 1


@pytest.mark.req("CONN-1")
def test_no_connection_of_the_database_is_held_while_a_document_is_fetched(
    monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    asked = serve_document(monkeypatch, claude_document())
    asked_when_released: list[int] = []
    monkeypatch.setattr(
        "access.oauth.client_documents.release_connection", lambda: asked_when_released.append(len(asked))
    )

    Program(DOCUMENT, "http://localhost/callback").open_page(operator.client())

    assert asked_when_released == [0]
    assert len(asked) == 1


@pytest.mark.req("CONN-1")
def test_documents_of_programs_that_nobody_lets_in_go_after_a_day(
    monkeypatch: pytest.MonkeyPatch, operator: Person, stranger: Person, foreign_caller: Caller
) -> None:
    used, unused, fresh = (f"https://{each}.example/client" for each in ("used", "unused", "fresh"))
    for each in (used, unused):
        serve_document(monkeypatch, claude_document(client_id=each))
        Program(each, "http://localhost/callback").open_page(operator.client())
    serve_document(monkeypatch, claude_document(client_id=used))
    Program(used, "http://localhost/callback").connect(stranger, foreign_caller.agent)  # in another tenant
    Application.objects.update(updated=database_time() - timedelta(hours=25))

    serve_document(monkeypatch, claude_document(client_id=fresh))
    Program(fresh, "http://localhost/callback").open_page(operator.client())

    assert set(Application.objects.values_list("client_id", flat=True)) == {used, fresh}
