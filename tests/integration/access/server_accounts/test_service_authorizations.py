"""Service authorizations: is an account of a service connected where its document says, and nowhere else?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.urls import reverse

from access.models import AccountServer, ServerAccount
from access.server_accounts.authorizations import begin_authorization
from access.server_accounts.clients import callback_url
from access.server_accounts.problems import AccountClientMissing, AccountServerUnfit
from access.server_accounts.renewals import fetch_access_token
from tests.integration.access.server_accounts.conftest import let_run_out

if TYPE_CHECKING:
    from tests.conftest import Person
    from tests.integration.access.server_accounts.conftest import Browser
    from tests.support.authorization_server import AuthorizationServer

pytestmark = pytest.mark.django_db


def begin_stated(alice: Browser, account: ServerAccount, *stated: dict[str, str]) -> str:
    key = alice.client.session.session_key
    assert key is not None
    return begin_authorization(
        account_id=account.pk, browser=key, agents=[], scopes=["items:read"], stated=stated, by=alice.person.by
    )


@pytest.mark.req("BRING-1", "BRING-3")
def test_an_account_of_a_service_is_connected_where_its_document_says(
    alice: Browser, server: AuthorizationServer, operator: Person
) -> None:
    service = "https://api.example.org/v1"
    stated = {"authorization_url": f"{server.url}/authorize", "token_url": f"{server.url}/token"}
    server.needs_resource = False  # and says nothing of itself
    account = alice.request(service)
    with pytest.raises(AccountClientMissing):
        begin_stated(alice, account, stated)
    server.needs_secret = True
    callback = callback_url(AccountServer.objects.get(resource=service).callback_key)
    client = server.add_client(callback, secret="of-the-hub")
    form = {"resource": service, "client_id": client, "client_secret": "of-the-hub"}
    assert operator.client().post(reverse("account_server_client"), form).status_code == 302

    address = begin_stated(alice, account, stated)
    back = alice.come_back(alice.agree(address))

    assert back.status_code == 302, back.context["problem"].detail
    assert dict(parse_qsl(urlsplit(address).query))["code_challenge_method"] == "S256"
    found = alice.find_newest()
    assert (found.is_connected, found.issuer, found.scopes) == (True, stated["token_url"], ["items:read"])
    let_run_out(found, server)
    assert server.find_user(fetch_access_token(found.pk)) == "alice"
    assert not any("resource" in form for path, form in server.asked if path == "/token")


@pytest.mark.req("BRING-1", "BRING-3")
def test_an_account_at_a_provider_of_openid_connect_is_connected(alice: Browser, server: AuthorizationServer) -> None:
    server.needs_resource = False
    account = alice.request("https://api.example.org/v1")

    address = begin_stated(alice, account, {"openid_url": f"{server.url}/.well-known/openid-configuration"})
    back = alice.come_back(alice.agree(address))

    assert back.status_code == 302, back.context["problem"].detail
    assert alice.find_newest().issuer == server.url


@pytest.mark.req("BRING-1", "BRING-3")
@pytest.mark.parametrize(
    "metadata", [{"issuer": "https://other.example"}, {"code_challenge_methods_supported": ["plain"]}]
)
def test_a_provider_that_is_another_or_takes_no_pkce_is_not_asked(
    metadata: dict[str, Any], alice: Browser, server: AuthorizationServer
) -> None:
    server.metadata = metadata
    account = alice.request("https://api.example.org/v1")

    with pytest.raises(AccountServerUnfit):
        begin_stated(alice, account, {"openid_url": f"{server.url}/.well-known/openid-configuration"})


@pytest.mark.req("BRING-1", "BRING-3")
def test_tools_that_name_different_authorization_servers_for_one_service_connect_nobody(
    alice: Browser, server: AuthorizationServer
) -> None:
    stated = {"authorization_url": f"{server.url}/authorize", "token_url": f"{server.url}/token"}
    account = alice.request("https://api.example.org/v1")

    with pytest.raises(AccountServerUnfit, match="different authorization servers"):
        begin_stated(alice, account, stated, stated | {"token_url": "https://evil.example.org/token"})

    assert server.asked == []
