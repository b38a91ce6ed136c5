"""Server accounts over REST: does a person connect and end their own by their session, and an operator see and end those there are?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from access.models import ServerAccount
from access.server_accounts import services
from access.server_accounts.renewals import fetch_access_token
from access.server_accounts.token_seals import open_tokens
from evidence.models import Fact
from registry.capsules.services import upload_capsule
from registry.models import Decision
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.integration.access.server_accounts.conftest import give_back_due
from unitools.brought_remotes import RemoteSource
from unitools.brought_tools import draft_tools
from unitools.capsules import pack_capsule
from unitools.mcp_http import MODERN
from unitools.mcp_listings import LISTING_FILE, Listing

if TYPE_CHECKING:
    from tests.conftest import Caller, Person
    from tests.integration.access.server_accounts.conftest import Browser
    from tests.support.authorization_server import AuthorizationServer

pytestmark = pytest.mark.django_db
NOTES = "https://notes.example.com/mcp"


def ask(browser: Browser, method: str, path: str, body: Any = None) -> Any:
    """As a script in the person's browser does."""
    send = getattr(browser.client, method)
    return send(f"/api/v1{path}", *([] if body is None else [body]), content_type="application/json")


def install_notes(by: Person, reviewer: Person) -> None:
    entry = {"name": "read-notes", "description": "Reads.", "inputSchema": {"type": "object", "properties": {}}}
    listing = Listing(MODERN, {"read-notes": entry})
    source = RemoteSource(NOTES, "mcp.notes", MODERN, account={"scopes": ["notes:read"]})
    (draft,) = draft_tools(listing, source, ["read-notes"])
    packed = pack_capsule([draft.document], {f"mcp_notes/{LISTING_FILE}": listing.to_bytes()})
    [version] = upload_capsule(content=packed.data, by=by.by).versions
    reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=reviewer.by)
    lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="x", by=reviewer.by)


@pytest.mark.req("BRING-3")
def test_a_person_connects_and_ends_their_account_by_their_session(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.request()

    begun = ask(alice, "post", f"/server-accounts/{account.wire_id}/connect", {})

    assert begun.status_code == 200, begun.content
    said = begun.json()["data"]
    assert (said["account"]["id"], said["host"]) == (account.wire_id, urlsplit(server.url).hostname)
    assert alice.come_back(alice.agree(said["url"])).status_code == 302
    [row] = ask(alice, "get", "/server-accounts").json()["data"]["accounts"]
    assert (row["id"], row["state"], row["scopes"]) == (account.wire_id, "connected", ["notes:read"])
    assert server.find_user(fetch_access_token(account.pk)) == "alice"
    ended = ask(alice, "post", f"/server-accounts/{account.wire_id}/end").json()["data"]
    assert (ended["state"], ended["end_reason"], ended["returned"]) == ("ended", "disconnected", "waiting")
    give_back_due()
    [row] = ask(alice, "get", "/server-accounts").json()["data"]["accounts"]
    assert row["returned"] == "returned"


@pytest.mark.req("BRING-3")
def test_an_account_is_asked_for_where_an_installed_tool_wants_it(
    alice: Browser, developer: Person, operator: Person
) -> None:
    refused = ask(alice, "post", "/server-accounts", {"server": NOTES})
    assert (refused.status_code, refused.json()["error"]["reason"]) == (409, "STATE.UNFIT")
    install_notes(developer, operator)

    made = ask(alice, "post", "/server-accounts", {"server": NOTES})

    assert made.status_code == 201, made.content
    assert (made.json()["data"]["server"], made.json()["data"]["state"]) == (NOTES, "requested")
    again = ask(alice, "post", "/server-accounts", {"server": NOTES})
    assert again.json()["data"]["id"] == made.json()["data"]["id"]


def test_only_agents_that_ask_are_let_use_an_account(alice: Browser, caller: Caller) -> None:
    account = alice.connect()
    path = f"/server-accounts/{account.wire_id}/agents"
    stranger = "agt_" + "0" * 26

    refused = ask(alice, "put", path, {"agents": [stranger]})
    assert (refused.status_code, refused.json()["error"]["reason"]) == (409, "STATE.UNFIT")
    services.request_account(
        resource=alice.server.resource,
        member_id=alice.person.user.pk,
        agent=caller.agent.wire_id,
        by=alice.person.by,
    )

    allowed = ask(alice, "put", path, {"agents": [caller.agent.wire_id]})

    assert allowed.json()["data"]["agents"] == [caller.agent.wire_id]
    assert ask(alice, "put", path, {"agents": []}).json()["data"]["agents"] == []


@pytest.mark.req("BRING-3", "TOOLS-22")
def test_nobody_else_finds_an_account_and_no_key_connects_one(alice: Browser, bob: Browser, caller: Caller) -> None:
    account = alice.connect()
    path = f"/server-accounts/{account.wire_id}"

    for method, rest, body in (("post", "/connect", {}), ("put", "/agents", {"agents": []}), ("post", "/end", None)):
        assert ask(bob, method, path + rest, body).status_code == 404
        assert getattr(caller, method)(path + rest, body or {}).status_code == 403
    assert ask(bob, "get", "/server-accounts").json()["data"]["accounts"] == []
    assert Client().get("/api/v1/server-accounts").status_code in (401, 403)
    assert alice.find_newest().is_connected


@pytest.mark.req("BRING-3")
def test_operators_see_whose_accounts_there_are_and_end_one(
    alice: Browser, server: AuthorizationServer, caller: Caller, operator: Person
) -> None:
    account = alice.connect()
    kept = open_tokens(account)

    [known] = caller.get("/account-servers").json()["data"]["servers"]
    listed = caller.get("/account-servers/accounts")
    ended = operator.client().post(f"/api/v1/account-servers/accounts/{account.wire_id}/revoke")

    assert (known["server"], known["issuer"], known["connected"]) == (server.resource, server.url, 1)
    [row] = listed.json()["data"]["accounts"]
    assert (row["person"], row["server"], row["state"]) == (alice.person.by.id, server.resource, "connected")
    for answer in (listed, ended):
        assert kept.access not in answer.content.decode()
        assert kept.refresh not in answer.content.decode()
    assert (ended.status_code, ended.json()["data"]["end_reason"]) == (200, "revoked")
    give_back_due()
    assert not server.refresh
    fact = Fact.objects.filter(subject=account.wire_id).latest("id")
    assert operator.by.id.encode() in bytes(fact.leaf)
    assert b"revoked" in bytes(fact.leaf)
    again = caller.post(f"/account-servers/accounts/{account.wire_id}/revoke", {})
    assert again.status_code == 409


def test_who_manages_no_secrets_sees_and_ends_nobody_elses(alice: Browser, bob: Browser) -> None:
    account = alice.connect()

    for method, path in (
        ("get", "/account-servers"),
        ("get", "/account-servers/accounts"),
        ("post", f"/account-servers/accounts/{account.wire_id}/revoke"),
    ):
        assert ask(bob, method, path).status_code == 403
    assert ServerAccount.objects.get(pk=account.pk).is_connected
