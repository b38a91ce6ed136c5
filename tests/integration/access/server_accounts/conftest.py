"""A person's browser, and an authorization server on this machine."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.urls import reverse

from access.models import AccountServer, ServerAccount
from access.roles import Role
from access.server_accounts import services
from access.server_accounts.clients import callback_url
from access.server_accounts.token_returns import QUEUE
from kernel.database.connections import database_time
from tests.conftest import Person, make_person
from tests.support.authorization_server import AuthorizationServer, serving_authorization

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client

    from access.models import Tenant


@dataclass
class Browser:
    """One browser of a person, signed in at the hub."""

    person: Person
    client: Client
    server: AuthorizationServer

    def request(self, resource: str = "") -> ServerAccount:
        return services.request_account(
            resource=resource or self.server.resource,
            member_id=self.person.user.pk,
            by=self.person.by,
        )

    def press_connect(self, account: ServerAccount, **form: Any) -> Any:
        return self.client.post(reverse("server_account_connect", args=[account.pk]), form)

    def begin(self, account: ServerAccount, **form: Any) -> str:
        """The address that the page leads to."""
        page = self.press_connect(account, **form)
        assert page.status_code == 200, page.content.decode()[-3000:]
        return str(page.context["address"])

    def agree(self, address: str) -> str:
        """What the authorization server sends the browser back with, below the hub's own address."""
        back = urlsplit(self.server.authorize(dict(parse_qsl(urlsplit(address).query))))
        return f"{back.path}?{back.query}"

    def come_back(self, address: str, **changes: str | None) -> Any:
        parts = urlsplit(address)
        said = dict(parse_qsl(parts.query)) | changes
        kept = {name: value for name, value in said.items() if value is not None}
        return self.client.get(f"{parts.path}?{urlencode(kept)}")

    def connect(self, account: ServerAccount | None = None, **form: Any) -> ServerAccount:
        account = account or self.request()
        answer = self.come_back(self.agree(self.begin(account, **form)))
        assert answer.status_code == 302, answer.content.decode()[-3000:]
        return self.find_newest()

    def find_newest(self) -> ServerAccount:
        rows = ServerAccount.objects.filter(member=self.person.user).select_related("server", "subject_key__tenant_key")
        found = rows.order_by("-pk").first()
        assert found is not None
        return found


def let_run_out(account: ServerAccount, server: AuthorizationServer) -> None:
    server.let_run_out()
    ServerAccount.objects.filter(pk=account.pk).update(expires_at=database_time() - timedelta(seconds=1))


def give_back_due() -> int:
    """What the loop does in one pass; how many of the tokens were taken."""
    return sum(QUEUE.serve_row(row) for row in QUEUE.list_due() if QUEUE.claim_due(row))


@pytest.fixture
def server(settings: Any) -> Iterator[AuthorizationServer]:
    settings.TOOLHUB_SERVER_ACCOUNT_NETWORKS = ["127.0.0.0/8"]
    with serving_authorization() as found:
        yield found


@pytest.fixture
def alice(tenant: Tenant, server: AuthorizationServer) -> Browser:
    person = make_person(tenant, "alice", Role.DEVELOPER)
    return Browser(person, person.client(), server)


@pytest.fixture
def bob(tenant: Tenant, server: AuthorizationServer) -> Browser:
    person = make_person(tenant, "bob", Role.DEVELOPER)
    return Browser(person, person.client(), server)


def own_callback(server: AuthorizationServer) -> str:
    return callback_url(AccountServer.objects.get(resource=server.resource).callback_key)


def assert_refused(answer: Any, reason: str, status: int = 409) -> None:
    assert answer.status_code == status, answer.content.decode()[-2000:]
    assert answer.context["problem"].reason == reason


def name_another(server: AuthorizationServer, issuer: str) -> None:
    """The server names another authorization server from now on."""
    said = {"resource": server.resource, "authorization_servers": [issuer]}
    server.wrong["/.well-known/oauth-protected-resource/mcp"] = (200, {}, said)


def begin_of(browser: Browser, account: ServerAccount) -> str:
    """Read from the page: what a test's client knows of a context may be another thread's."""
    found = re.search(r'href="(http[^"]+/authorize[^"]+)"', browser.press_connect(account).content.decode())
    assert found is not None
    return html.unescape(found[1])
