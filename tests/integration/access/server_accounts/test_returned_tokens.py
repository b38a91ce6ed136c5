"""Returned tokens: are those given back that nobody keeps, and does it stop nothing where that fails?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.urls import reverse

from access.models import AccountServer, ServerAccount
from access.server_accounts import services
from access.server_accounts.renewals import fetch_access_token
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_tokens_that_cannot_be_given_back_stop_nothing(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()
    kept = AccountServer.objects.get()
    kept.terms |= {"revocation_endpoint": "https://["}  # nothing that can be asked, and no answer that says so
    kept.save(update_fields=["terms"])

    answer = alice.client.post(reverse("server_account_end", args=[account.pk]))

    assert answer.status_code == 302
    account.refresh_from_db()
    assert account.end_reason == services.DISCONNECTED
