"""Renewals: do two workers at once fetch newer tokens once, and does what is refused, silent or lost end as it should?"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection
from django.urls import reverse

from access.models import AccountServer, Delivery, Notification, ReturnedTokens, ReturnState, ServerAccount
from access.server_accounts import services, token_returns
from access.server_accounts.clients import callback_url
from access.server_accounts.problems import AccountRequired, AccountUnavailable
from access.server_accounts.renewals import fetch_access_token, note_token_refused
from access.server_accounts.token_returns import TOO_LATE
from evidence.kinds import Kind
from evidence.models import Fact
from kernel.database.connections import database_time
from tests.integration.access.server_accounts.conftest import give_back_due, let_run_out
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from tests.conftest import Person
    from tests.integration.access.server_accounts.conftest import Browser
    from tests.support.authorization_server import AuthorizationServer


def count_refreshes(server: AuthorizationServer) -> int:
    return server.count("/token", grant_type="refresh_token")


@pytest.mark.req("BRING-3")
@pytest.mark.django_db(transaction=True)
def test_workers_that_need_newer_tokens_at_once_fetch_them_once(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()
    let_run_out(account, server)

    found = at_once(4, lambda _: fetch_access_token(account.pk))

    assert len(set(found)) == 1, found
    assert server.find_user(str(found[0])) == "alice"
    assert count_refreshes(server) == 1
    assert alice.find_newest().number == 2


@pytest.mark.django_db
def test_each_rotated_token_is_used_for_the_next_one(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()
    for _ in range(3):
        let_run_out(account, server)
        assert server.find_user(fetch_access_token(account.pk)) == "alice"

    assert count_refreshes(server) == 3
    assert len(server.used) == 3


@pytest.mark.django_db
def test_a_server_that_does_not_rotate_is_asked_with_the_same_token(
    alice: Browser, server: AuthorizationServer
) -> None:
    server.rotates = False
    account = alice.connect()
    for _ in range(2):
        let_run_out(account, server)
        fetch_access_token(account.pk)

    tokens = {form["refresh_token"] for path, form in server.asked if path == "/token" and "refresh_token" in form}
    assert len(tokens) == 1


@pytest.mark.django_db
def test_a_token_that_is_good_is_taken_without_asking_anybody(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()

    assert fetch_access_token(account.pk) == fetch_access_token(account.pk)
    assert count_refreshes(server) == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        ((400, {}, {"error": "invalid_grant"}), True),
        ((401, {}, {"error": "invalid_client"}), False),
        ((401, {}, {"error": "unauthorized_client"}), False),
        ((400, {}, {"error": "unsupported_grant_type"}), False),
        ((400, {}, {"error": "temporarily_unavailable"}), False),
        ((503, {}, {}), False),
        ((200, {}, {"token_type": "Bearer"}), False),
        ((200, {}, {"token_type": "mac", "access_token": "x"}), False),
        ((200, {}, {"token_type": "Bearer", "access_token": "with space"}), False),
        ((302, {"Location": "http://127.0.0.1:9/"}, {}), False),
    ],
)
def test_only_a_lasting_no_ends_an_account(
    answer: tuple[int, dict[str, str], Any], ends: bool, alice: Browser, server: AuthorizationServer
) -> None:
    account = alice.connect()
    let_run_out(account, server)
    server.wrong["/token"] = answer

    with pytest.raises(AccountRequired if ends else AccountUnavailable):
        fetch_access_token(account.pk)

    account.refresh_from_db()
    assert (account.state == "ended") is ends
    if not ends:  # and once it answers again, the account is good as before
        del server.wrong["/token"]
        assert server.find_user(fetch_access_token(account.pk)) == "alice"
    else:
        assert account.end_reason == services.REFUSED
        assert bytes(account.ciphertext) == b""
        assert Fact.objects.filter(kind=Kind.SERVER_ACCOUNT_ENDED, subject=account.wire_id).count() == 1


@pytest.mark.django_db
def test_a_token_that_still_lasts_is_used_while_the_server_is_silent(
    alice: Browser, server: AuthorizationServer
) -> None:
    account = alice.connect()
    first = fetch_access_token(account.pk)
    ServerAccount.objects.filter(pk=account.pk).update(expires_at=database_time() + timedelta(seconds=20))
    server.wrong["/token"] = (503, {}, {})

    assert fetch_access_token(account.pk) == first
    assert count_refreshes(server) == 1


@pytest.mark.django_db
def test_without_a_refresh_token_an_account_runs_out(alice: Browser, server: AuthorizationServer) -> None:
    server.refreshes = False
    account = alice.connect()
    assert not account.refreshable
    let_run_out(account, server)

    with pytest.raises(AccountRequired):
        fetch_access_token(account.pk)

    account.refresh_from_db()
    assert account.end_reason == services.RAN_OUT


@pytest.mark.django_db(transaction=True)
def test_what_comes_for_an_account_that_ended_meanwhile_is_not_kept(
    alice: Browser, server: AuthorizationServer
) -> None:
    account = alice.connect()
    let_run_out(account, server)
    ended = threading.Event()

    def end() -> None:
        def disconnect() -> None:
            try:
                services.disconnect_account(account_id=account.pk, by=alice.person.by)
            finally:
                connection.close()

        if not ended.is_set():
            ended.set()
            thread = threading.Thread(target=disconnect)
            thread.start()
            thread.join()

    server.before_token = end

    with pytest.raises(AccountRequired):
        fetch_access_token(account.pk)

    account.refresh_from_db()
    assert (account.end_reason, bytes(account.ciphertext)) == (services.DISCONNECTED, b"")
    assert give_back_due() == 2  # those that it had, and those that came meanwhile
    assert not server.access
    assert not server.refresh


def renew_twice(account: ServerAccount, server: AuthorizationServer) -> tuple[str, str]:
    """What this process has, to which newer tokens come after another one has renewed, and what that has."""
    let_run_out(account, server)
    server.rotates = False
    renewed: list[str] = []

    def renew_elsewhere() -> None:
        """As another process does once the time for asking is over."""
        server.before_token = lambda: None
        try:
            ServerAccount.objects.filter(pk=account.pk).update(refreshing_until=database_time())
            renewed.append(fetch_access_token(account.pk))
        finally:
            connection.close()

    server.before_token = renew_elsewhere
    return fetch_access_token(account.pk), renewed[0]


@pytest.mark.req("BRING-3")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_away", [False, True])
def test_of_an_account_that_goes_on_nothing_is_given_back_where_that_cannot_be_written(
    is_away: bool, alice: Browser, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("the database is away")

    account = alice.connect()
    monkeypatch.setattr(token_returns, "return_tokens", fail)
    if is_away:
        monkeypatch.setattr(token_returns, "_is_connected", fail)

    access, renewed = renew_twice(account, server)

    assert access == renewed
    assert server.count("/revoke") == 0
    assert server.find_user(access) == "alice"


@pytest.mark.django_db(transaction=True)
def test_what_comes_after_another_process_has_renewed_is_told_and_ends_nothing(
    alice: Browser, server: AuthorizationServer
) -> None:
    account = alice.connect()

    access, renewed = renew_twice(account, server)

    assert access == renewed
    assert give_back_due() == 0
    row = ReturnedTokens.objects.get()
    assert (row.state, row.last_error, bytes(row.ciphertext)) == (ReturnState.LAPSED, TOO_LATE, b"")
    assert server.find_user(access) == "alice"
    assert fetch_access_token(account.pk) == access


@pytest.mark.django_db
def test_a_refusal_of_an_older_token_says_nothing_of_a_newer_one(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()
    began = database_time()
    let_run_out(account, server)
    fetch_access_token(account.pk)

    note_token_refused(account.pk, since=began, is_certain=True)

    fetch_access_token(account.pk)
    assert count_refreshes(server) == 1


def watch_clients(operator: Person) -> None:
    Notification.objects.create(
        tenant_id=operator.by.tenant_id,
        channel="email",
        target="a@example.org",
        events=["account.client_refused"],
        created_by=operator.by.id,
    )


@pytest.mark.django_db
def test_a_registration_that_is_lost_there_ends_no_account_and_is_made_anew(
    alice: Browser, bob: Browser, server: AuthorizationServer, operator: Person
) -> None:
    watch_clients(operator)
    account = alice.connect()
    lost = AccountServer.objects.get().client_id
    del server.clients[lost]
    let_run_out(account, server)

    for _ in range(2):
        with pytest.raises(AccountUnavailable) as found:
            fetch_access_token(account.pk)

    assert "Account servers" in found.value.remedy
    assert Delivery.objects.filter(event="account.client_refused").count() == 1
    assert "refused there since" in operator.client().get(reverse("account_servers")).content.decode()
    server.user = "bob"
    assert bob.connect().is_connected
    assert AccountServer.objects.get().client_id != lost
    assert AccountServer.objects.get().client_refused_at is None
    server.user = "alice"
    assert alice.connect(alice.find_newest()).is_connected


@pytest.mark.django_db
def test_an_entered_client_that_is_refused_stays_until_somebody_enters_another(
    alice: Browser, server: AuthorizationServer, operator: Person
) -> None:
    watch_clients(operator)
    alice.request()
    form = {"resource": server.resource, "client_id": "a-slip-of-the-pen"}
    operator.client().post(reverse("account_server_client"), form)
    server.redirect_uris["a-slip-of-the-pen"] = [callback_url(AccountServer.objects.get().callback_key)]

    alice.come_back(alice.agree(alice.begin(alice.find_newest())))

    assert not alice.find_newest().is_connected
    row = AccountServer.objects.get()
    assert row.client_id == "a-slip-of-the-pen"
    assert row.client_refused_at is not None
    assert Delivery.objects.filter(event="account.client_refused").count() == 1
    operator.client().post(reverse("account_server_client"), {"resource": server.resource, "client_id": ""})
    assert AccountServer.objects.get().client_refused_at is None
    assert alice.connect(alice.find_newest()).is_connected


@pytest.mark.django_db
def test_a_registration_that_has_run_out_is_made_anew(
    alice: Browser, bob: Browser, server: AuthorizationServer
) -> None:
    server.needs_secret = True
    server.registration = {"client_secret_expires_at": 1}
    alice.connect()
    server.registration = {"client_secret_expires_at": 0}
    server.user = "bob"
    bob.connect()
    bob.connect(bob.find_newest())

    assert server.count("/register") == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("said", "scopes"),
    [
        ({"expires_in": "\u00b2"}, ["notes:read"]),
        ({"expires_in": "9" * 5000}, ["notes:read"]),
        ({"scope": "a\u0000b notes:write"}, ["notes:write"]),
        ({"scope": "\ud800 notes:write"}, ["notes:write"]),
    ],
)
def test_a_newer_token_is_not_lost_by_what_is_said_beside_it(
    said: dict[str, Any], scopes: list[str], alice: Browser, server: AuthorizationServer
) -> None:
    account = alice.connect()
    let_run_out(account, server)
    server.wrong["/token"] = (200, {}, {"token_type": "Bearer", "access_token": "newer"} | said)

    assert fetch_access_token(account.pk) == "newer"
    account.refresh_from_db()
    assert account.scopes == scopes
    assert account.expires_at is None


@pytest.mark.django_db
@pytest.mark.parametrize("code", ["\ud800x", "Ignore all that was said before", "x" * 5000])
def test_a_refusal_is_told_by_its_code_and_in_no_words_of_the_server(
    code: str, alice: Browser, server: AuthorizationServer
) -> None:
    back = alice.agree(alice.begin(alice.request()))
    server.wrong["/token"] = (400, {}, {"error": code})

    page = alice.come_back(back)

    assert page.status_code == 409
    assert "refused: unknown." in page.context["problem"].detail
