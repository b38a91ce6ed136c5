"""Authorization clients: as which client does the hub come to an authorization server, and who gets to see its secret?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from access.models import AccountServer
from access.server_accounts.clients import callback_url, document_url
from access.server_accounts.renewals import fetch_access_token
from evidence.kinds import Kind
from evidence.models import Fact
from tests.integration.access.server_accounts.conftest import (
    assert_refused,
    begin_of,
    let_run_out,
    name_another,
    own_callback,
)
from tests.support.authorization_server import serving_authorization
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from tests.conftest import Person
    from tests.integration.access.server_accounts.conftest import Browser
    from tests.support.authorization_server import AuthorizationServer

pytestmark = pytest.mark.django_db


def test_the_hub_registers_once_and_may_be_given_a_secret(
    alice: Browser, bob: Browser, server: AuthorizationServer
) -> None:
    server.needs_secret = True
    alice.connect()
    server.user = "bob"
    bob.connect()

    assert server.count("/register") == 1
    row = AccountServer.objects.get()
    assert row.client_kind == AccountServer.HubClientKind.REGISTERED
    assert server.clients[row.client_id].encode() not in bytes(row.ciphertext)


def test_a_hub_behind_https_is_its_own_document(alice: Browser, server: AuthorizationServer, settings: Any) -> None:
    settings.TOOLHUB_PUBLIC_URL = "https://hub.example"
    server.takes_documents = True
    alice.connect()

    assert AccountServer.objects.get().client_id == document_url()
    assert server.count("/register") == 0
    said = Client().get(reverse("oauth_hub_client")).json()
    assert (said["client_id"], said["redirect_uris"]) == (document_url(), [callback_url()])


def test_an_entered_client_is_used_and_its_secret_is_kept_sealed(
    alice: Browser, server: AuthorizationServer, operator: Person
) -> None:
    server.registers, server.needs_secret = False, True
    page = alice.press_connect(alice.request())
    assert page.context["problem"].reason == "ACCOUNT.CLIENT_MISSING"
    client = server.add_client(own_callback(server), secret="s3cret-of-the-hub")

    answer = operator.client().post(
        reverse("account_server_client"),
        {"resource": server.resource, "client_id": client, "client_secret": "s3cret-of-the-hub"},
    )

    assert answer.status_code == 302, answer.content.decode()
    assert alice.connect(alice.find_newest()).is_connected
    assert b"s3cret-of-the-hub" not in bytes(AccountServer.objects.get().ciphertext)
    leaf = bytes(Fact.objects.get(kind=Kind.ACCOUNT_SERVER_ENTERED).leaf)
    assert b"s3cret-of-the-hub" not in leaf
    assert client.encode() in leaf


def enter(operator: Person, server: AuthorizationServer, client: str, secret: str = "") -> None:
    form = {"resource": server.resource, "client_id": client, "client_secret": secret}
    assert operator.client().post(reverse("account_server_client"), form).status_code == 302


def test_an_entered_client_is_shown_to_no_other_authorization_server(
    alice: Browser, bob: Browser, server: AuthorizationServer, operator: Person
) -> None:
    server.registers, server.needs_secret = False, True
    alice.request()
    client = server.add_client(own_callback(server), secret="s3cret-of-the-hub")
    enter(operator, server, client, "s3cret-of-the-hub")
    account = alice.connect(alice.find_newest())
    with serving_authorization() as evil:
        name_another(server, evil.url)

        page = bob.press_connect(bob.request())

        assert_refused(page, "ACCOUNT.SERVER_UNFIT", 502)
        assert AccountServer.objects.get().issuer == server.url
        let_run_out(account, server)
        assert server.find_user(fetch_access_token(account.pk)) == "alice"
        assert not {path for path, _ in evil.asked} & {"/token", "/revoke", "/register", "/authorize"}


def test_a_newer_secret_of_the_same_client_counts_for_accounts_that_are_connected(
    alice: Browser, server: AuthorizationServer, operator: Person
) -> None:
    server.registers, server.needs_secret = False, True
    alice.request()
    client = server.add_client(own_callback(server), secret="first")
    enter(operator, server, client, "first")
    account = alice.connect(alice.find_newest())
    server.clients[client] = "second"
    enter(operator, server, client, "second")
    let_run_out(account, server)

    assert server.find_user(fetch_access_token(account.pk)) == "alice"


def test_accounts_go_on_by_the_client_that_their_tokens_were_given_to(
    alice: Browser, server: AuthorizationServer, operator: Person
) -> None:
    server.needs_secret = True
    account = alice.connect()
    enter(operator, server, "a-slip-of-the-pen")
    for _ in range(2):
        let_run_out(account, server)
        assert server.find_user(fetch_access_token(account.pk)) == "alice"


def test_the_hub_is_its_document_only_where_answers_say_whose_they_are(
    alice: Browser, server: AuthorizationServer, settings: Any
) -> None:
    settings.TOOLHUB_PUBLIC_URL = "https://hub.example"
    server.takes_documents, server.says_issuer = True, False
    alice.connect()

    assert AccountServer.objects.get().client_kind == AccountServer.HubClientKind.REGISTERED


def test_operators_see_the_redirect_uri_of_each_server(
    alice: Browser, server: AuthorizationServer, operator: Person
) -> None:
    alice.request()

    page = operator.client().get(reverse("account_servers")).content.decode()

    assert own_callback(server) in page


@pytest.mark.django_db(transaction=True)
def test_of_two_first_registrations_at_once_one_counts_for_both(
    alice: Browser, bob: Browser, server: AuthorizationServer
) -> None:
    browsers = [(alice, alice.request()), (bob, bob.request())]
    both = threading.Barrier(2, timeout=20)
    server.before_registration = both.wait  # none is answered before the other asks

    begun = at_once(2, lambda number: begin_of(*browsers[number]))

    assert server.count("/register") == 2
    clients = {dict(parse_qsl(urlsplit(str(each)).query))["client_id"] for each in begun}
    assert clients == {AccountServer.objects.get().client_id}
    for (browser, _), address in zip(browsers, begun, strict=True):
        answer = browser.come_back(browser.agree(str(address)))
        assert answer.status_code == 302, answer.context["problem"].detail
        let_run_out(browser.find_newest(), server)
        assert fetch_access_token(browser.find_newest().pk)
