"""Returned tokens: are those given back that nobody keeps, and does it stop nothing where that fails?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from django.db import connection, transaction
from django.urls import reverse

from access.models import ReturnedTokens, ReturnState, ServerAccount
from access.server_accounts import services
from access.server_accounts.problems import AccountRequired
from access.server_accounts.renewals import fetch_access_token
from access.server_accounts.token_returns import PAUSES_S, QUEUE, return_due
from access.server_accounts.token_seals import open_tokens
from evidence.deliveries.queue import Sender
from evidence.keys import subject_keys
from evidence.keys.subject_keys import destroy_key
from evidence.problems import KeyUnavailable
from kernel.database.connections import database_time
from kernel.ids import new_id
from tests.integration.access.server_accounts.conftest import give_back_due
from tests.support.authorization_server import serving_authorization

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Person
    from tests.integration.access.server_accounts.conftest import Browser
    from tests.support.authorization_server import AuthorizationServer

pytestmark = pytest.mark.django_db(transaction=True)


def while_asked(server: AuthorizationServer, act: Callable[[], object]) -> None:
    """Somebody does this while the server is asked for tokens: in a thread of the server."""

    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    server.before_token = run


def test_tokens_of_an_account_that_ended_while_it_was_connected_are_given_back(
    alice: Browser, server: AuthorizationServer
) -> None:
    account = alice.request()
    back = alice.agree(alice.begin(account))
    while_asked(server, lambda: services.disconnect_account(account_id=account.pk, by=alice.person.by))

    assert alice.come_back(back).status_code == 409
    give_back_due()

    assert server.count("/token") == 1
    assert not server.access
    assert not server.refresh


def test_newer_tokens_that_cannot_be_written_are_given_back(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()
    ServerAccount.objects.filter(pk=account.pk).update(expires_at=database_time())
    old = set(server.access)
    while_asked(server, lambda: ServerAccount.objects.filter(pk=account.pk).delete())

    with pytest.raises(ServerAccount.DoesNotExist):
        fetch_access_token(account.pk)

    assert server.count("/token", grant_type="refresh_token") == 1
    assert set(server.access) == old
    assert not server.refresh


def take_keys_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can unwrap the key of a tenant now, and no process remembers one."""

    def fail() -> None:
        raise KeyUnavailable

    monkeypatch.setattr(subject_keys, "get_keystore", fail)
    monkeypatch.setattr(subject_keys, "_kept", {})


def end(browser: Browser, account: ServerAccount) -> ReturnedTokens:
    assert browser.client.post(reverse("server_account_end", args=[account.pk])).status_code == 302
    return ReturnedTokens.objects.get(account=account)


def test_the_page_that_disconnects_asks_nobody(alice: Browser, server: AuthorizationServer) -> None:
    """A server that is slow or down holds up no request: the tokens go back afterwards."""
    row = end(alice, alice.connect())

    assert server.count("/revoke") == 0
    assert row.state == ReturnState.WAITING
    assert give_back_due() == 1
    row.refresh_from_db()
    assert (row.state, row.subject_key, bytes(row.ciphertext)) == (ReturnState.RETURNED, None, b"")
    assert not server.access
    assert not server.refresh


def test_the_loop_gives_back_what_is_due(alice: Browser, server: AuthorizationServer) -> None:
    row = end(alice, alice.connect())

    assert return_due() == 1

    row.refresh_from_db()
    assert row.state == ReturnState.RETURNED
    assert not server.refresh


def test_nothing_of_returned_tokens_stands_readable_in_the_database(alice: Browser) -> None:
    account = alice.connect()
    kept = open_tokens(account)
    end(alice, account)

    row = ReturnedTokens.objects.values().get()

    for value in row.values():
        raw = bytes(value) if isinstance(value, bytes | memoryview) else json.dumps(value, default=str).encode()
        assert kept.access.encode() not in raw
        assert kept.refresh.encode() not in raw


def test_a_server_that_is_down_is_asked_again_and_then_said_to_have_taken_nothing(
    alice: Browser, server: AuthorizationServer, operator: Person
) -> None:
    account = alice.connect()
    row = end(alice, account)
    server.wrong["/revoke"] = (503, {}, {})
    for attempt in range(1, len(PAUSES_S) + 2):
        assert give_back_due() == 0
        assert give_back_due() == 0  # not before its time
        assert server.count("/revoke") == attempt
        row.refresh_from_db()
        ReturnedTokens.objects.filter(pk=row.pk, state=ReturnState.WAITING).update(next_attempt_at=database_time())

    assert (row.state, row.subject_key, bytes(row.ciphertext)) == (ReturnState.LAPSED, None, b"")
    page = alice.client.get(reverse("server_account", args=[account.pk])).content.decode()
    assert "not given back" in page
    assert "127.0.0.1 did not take them" in page
    [known] = operator.client().get(reverse("account_servers")).context["rows"]
    assert known["lapsed"] == 1


def test_a_server_that_is_up_again_takes_them(alice: Browser, server: AuthorizationServer) -> None:
    row = end(alice, alice.connect())
    server.wrong["/revoke"] = (503, {}, {})
    give_back_due()
    del server.wrong["/revoke"]
    ReturnedTokens.objects.update(next_attempt_at=database_time())

    assert give_back_due() == 1
    row.refresh_from_db()
    assert (row.state, row.attempts) == (ReturnState.RETURNED, 2)
    assert not server.refresh


def test_a_server_that_refuses_them_is_not_asked_again(alice: Browser, server: AuthorizationServer) -> None:
    row = end(alice, alice.connect())
    server.wrong["/revoke"] = (400, {}, {"error": "invalid_client"})

    assert give_back_due() == 0

    row.refresh_from_db()
    assert (row.state, row.last_error) == (
        ReturnState.LAPSED,
        "The authorization server refused: invalid_client.",
    )


def test_a_server_that_ends_access_tokens_with_the_others_has_taken_them(
    alice: Browser, server: AuthorizationServer
) -> None:
    row = end(alice, alice.connect())
    server.wrong["/revoke"] = (400, {}, {"error": "unsupported_token_type"})

    assert give_back_due() == 1
    row.refresh_from_db()
    assert row.state == ReturnState.RETURNED


def test_tokens_of_somebody_who_was_erased_meanwhile_are_given_to_nobody(
    alice: Browser, server: AuthorizationServer
) -> None:
    row = end(alice, alice.connect())
    key = row.subject_key
    assert key is not None
    with transaction.atomic():
        destroy_key(subject=key.subject, tenant_id=row.tenant_id)

    assert give_back_due() == 0

    row.refresh_from_db()
    assert (row.state, bytes(row.ciphertext), server.count("/revoke")) == (ReturnState.LAPSED, b"", 0)


def test_tokens_that_cannot_be_given_back_stop_nothing(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()
    account.terms |= {"revocation_endpoint": "https://["}  # nothing that can be asked, and no answer that says so
    account.save(update_fields=["terms"])

    row = end(alice, account)
    assert give_back_due() == 0

    account.refresh_from_db()
    assert account.end_reason == services.DISCONNECTED
    row.refresh_from_db()
    assert row.last_error


@pytest.mark.req("BRING-3")
def test_tokens_that_wait_are_not_given_back_once_the_account_is_connected_anew(
    alice: Browser, server: AuthorizationServer, operator: Person
) -> None:
    """Some servers end with one token all that the person has given the client, what has just come as well."""
    row = end(alice, alice.connect())
    server.wrong["/revoke"] = (503, {}, {})
    give_back_due()
    del server.wrong["/revoke"]
    anew = alice.connect()
    ReturnedTokens.objects.update(next_attempt_at=database_time())
    before = server.count("/revoke")

    assert give_back_due() == 0

    assert server.count("/revoke") == before
    row.refresh_from_db()
    assert (row.state, bytes(row.ciphertext)) == (ReturnState.LAPSED, b"")
    assert server.find_user(fetch_access_token(anew.pk)) == "alice"
    page = alice.client.get(reverse("server_account", args=[row.account_id])).content.decode()
    assert "You have connected it anew." in page
    assert "did not take them" not in page
    [known] = operator.client().get(reverse("account_servers")).context["rows"]
    assert known["lapsed"] == 0


@pytest.mark.req("BRING-3")
def test_newer_tokens_of_an_account_that_is_connected_again_meanwhile_are_not_given_back(
    alice: Browser, server: AuthorizationServer
) -> None:
    account = alice.connect()
    ServerAccount.objects.filter(pk=account.pk).update(expires_at=database_time())

    def connect_again() -> None:
        server.before_token = lambda: None
        alice.connect(account)

    while_asked(server, connect_again)
    with pytest.raises(AccountRequired):
        fetch_access_token(account.pk)
    give_back_due()

    assert server.count("/token", grant_type="refresh_token") == 1
    assert server.count("/revoke") == 0
    assert server.find_user(fetch_access_token(alice.find_newest().pk)) == "alice"


def test_tokens_of_another_person_are_given_back_all_the_same(
    alice: Browser, bob: Browser, server: AuthorizationServer
) -> None:
    server.user = "bob"
    bob.connect()
    server.user = "alice"
    end(alice, alice.connect())

    assert give_back_due() == 1
    assert {each.user for each in server.access.values()} == {"bob"}


@pytest.mark.req("BRING-3")
def test_tokens_whose_key_is_away_for_a_moment_are_given_back_later(
    alice: Browser, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = end(alice, alice.connect())
    with monkeypatch.context() as away:
        take_keys_away(away)
        assert give_back_due() == 0
    row.refresh_from_db()
    assert (row.state, row.attempts, "erased" in row.last_error) == (ReturnState.WAITING, 1, False)
    ReturnedTokens.objects.update(next_attempt_at=database_time())

    assert give_back_due() == 1
    assert not server.access
    assert not server.refresh


@pytest.mark.req("BRING-3")
def test_tokens_of_an_account_that_ends_while_its_key_is_away_are_given_back(
    alice: Browser, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = alice.connect()
    with monkeypatch.context() as away:
        take_keys_away(away)
        services.disconnect_account(account_id=account.pk, by=alice.person.by)

    assert give_back_due() == 1
    assert not server.access
    assert not server.refresh


def test_a_silent_server_holds_up_no_other_one_by_many_clients(alice: Browser, server: AuthorizationServer) -> None:
    first = end(alice, alice.connect())
    with serving_authorization() as other:
        alice.server = other
        last = end(alice, alice.connect())
        ReturnedTokens.objects.filter(pk=last.pk).update(
            terms=last.terms | {"revocation_endpoint": f"http://localhost:{urlsplit(other.url).port}/revoke"}
        )
        for client in ("second", "third", "fourth"):  # of the first server, and due before the last
            row = ReturnedTokens.objects.get(pk=first.pk)
            row.pk, row.client_id = new_id(), client
            row.save(force_insert=True)
        sender = Sender(QUEUE)
        try:
            assert sender.start_due() == 3
            begun = {each.host for each in sender._running.values()}
            sender.finish()
        finally:
            sender.close()

    assert begun == {"127.0.0.1", "localhost"}
