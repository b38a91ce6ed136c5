"""Authorizations: does a person connect their own account and nobody else's, and does an answer count only where it belongs?"""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from access.models import AccountAuthorization, AccountServer, ServerAccount
from access.server_accounts import services
from access.server_accounts.authorizations import MAX_BEGUN
from access.server_accounts.discovery import discover_terms, find_challenge
from access.server_accounts.problems import AccountServerUnfit
from access.server_accounts.renewals import fetch_access_token
from access.server_accounts.token_seals import open_tokens
from evidence.kinds import Kind
from evidence.models import Fact
from kernel.database.connections import database_time
from tests.integration.access.server_accounts.conftest import (
    assert_refused,
    begin_of,
    give_back_due,
    let_run_out,
    name_another,
)
from tests.support.authorization_server import serving_authorization
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from tests.integration.access.server_accounts.conftest import Browser
    from tests.support.authorization_server import AuthorizationServer

pytestmark = pytest.mark.django_db


def said_of(account: ServerAccount) -> list[str]:
    return [each.kind for each in Fact.objects.filter(subject=account.wire_id).order_by("id")]


def test_a_person_connects_their_account_and_sees_it(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()

    assert account.is_connected
    assert account.scopes == ["notes:read"]
    assert server.find_user(open_tokens(account).access) == "alice"
    form = next(form for path, form in server.asked if path == "/token")
    assert form["resource"] == server.resource
    assert len(form["code_verifier"]) >= 43
    page = alice.client.get(reverse("server_account", args=[account.pk]))
    assert "Connected" in page.content.decode()
    assert said_of(account) == [Kind.SERVER_ACCOUNT_REQUESTED, Kind.SERVER_ACCOUNT_CONNECTED]
    kept = open_tokens(account)
    for fact in Fact.objects.all():
        assert not any(each.encode() in bytes(fact.leaf) for each in (kept.access, kept.refresh))


def test_nothing_of_a_token_stands_readable_in_the_database(alice: Browser) -> None:
    account = alice.connect()
    kept = open_tokens(account)

    row = ServerAccount.objects.filter(pk=account.pk).values().get()

    for value in row.values():
        raw = bytes(value) if isinstance(value, bytes | memoryview) else json.dumps(value, default=str).encode()
        assert kept.access.encode() not in raw
        assert kept.refresh.encode() not in raw


def test_nobody_else_sees_or_connects_it(alice: Browser, bob: Browser) -> None:
    account = alice.request()

    for name in ("server_account_connect", "server_account_agents", "server_account_end"):
        assert bob.client.post(reverse(name, args=[account.pk])).status_code == 404
    assert bob.client.get(reverse("server_account", args=[account.pk])).status_code == 404
    assert not alice.find_newest().is_connected


def test_an_answer_counts_once(alice: Browser) -> None:
    account = alice.request()
    back = alice.agree(alice.begin(account))
    alice.come_back(back)

    assert_refused(alice.come_back(back), "ACCOUNT.AUTHORIZATION_REFUSED")


def test_an_answer_counts_in_the_browser_that_began_and_for_its_person(alice: Browser, bob: Browser) -> None:
    back = alice.agree(alice.begin(alice.request()))

    assert_refused(bob.come_back(back), "ACCOUNT.AUTHORIZATION_REFUSED")
    other = Client()
    other.force_login(alice.person.user)
    alice.client, first = other, alice.client
    assert_refused(alice.come_back(back), "ACCOUNT.AUTHORIZATION_REFUSED")
    alice.client = first
    assert alice.come_back(back).status_code == 302


@pytest.mark.parametrize("state", ["", "made-up", None])
def test_an_answer_with_another_state_counts_nothing(state: str | None, alice: Browser) -> None:
    back = alice.agree(alice.begin(alice.request()))

    assert_refused(alice.come_back(back, state=state), "ACCOUNT.AUTHORIZATION_REFUSED")


@pytest.mark.parametrize("issuer", ["https://evil.example", None, ""])
def test_an_answer_of_another_server_is_refused_and_its_code_is_sent_nowhere(
    issuer: str | None, alice: Browser, server: AuthorizationServer
) -> None:
    back = alice.agree(alice.begin(alice.request()))

    assert_refused(alice.come_back(back, iss=issuer), "ACCOUNT.AUTHORIZATION_REFUSED")
    assert server.count("/token") == 0


def test_a_server_that_does_not_name_itself_is_taken_but_not_one_that_names_another(
    alice: Browser, server: AuthorizationServer
) -> None:
    server.says_issuer = False
    back = alice.agree(alice.begin(alice.request()))
    assert_refused(alice.come_back(back, iss="https://evil.example"), "ACCOUNT.AUTHORIZATION_REFUSED")

    assert alice.connect(alice.find_newest()).is_connected


def test_an_authorization_of_long_ago_counts_nothing(alice: Browser) -> None:
    back = alice.agree(alice.begin(alice.request()))
    AccountAuthorization.objects.update(begun_at=database_time() - timedelta(hours=1))

    assert_refused(alice.come_back(back), "ACCOUNT.AUTHORIZATION_REFUSED")


def test_a_code_without_its_verifier_gives_nothing(alice: Browser, server: AuthorizationServer) -> None:
    back = alice.agree(alice.begin(alice.request()))
    for each in server.codes.values():
        each["code_challenge"] = "of-another-verifier"

    assert_refused(alice.come_back(back), "ACCOUNT.AUTHORIZATION_REFUSED")
    assert not server.access


def test_who_says_no_there_is_told_so(alice: Browser) -> None:
    back = alice.agree(alice.begin(alice.request()))

    assert_refused(alice.come_back(back, code=None, error="access_denied"), "ACCOUNT.AUTHORIZATION_REFUSED")


def test_a_token_endpoint_that_redirects_is_not_followed(alice: Browser, server: AuthorizationServer) -> None:
    with serving_authorization() as other:
        server.wrong["/token"] = (307, {"Location": f"{other.url}/token"}, {})
        back = alice.agree(alice.begin(alice.request()))

        assert_refused(alice.come_back(back), "ACCOUNT.UNAVAILABLE", 503)
        assert other.asked == []
    assert not alice.find_newest().is_connected


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"issuer": "https://other.example"}, "issuer"),
        ({"token_endpoint": None}, "token_endpoint"),
        ({"token_endpoint": "file:///etc/passwd"}, "token_endpoint"),
        ({"authorization_endpoint": "http://8.8.8.8/authorize"}, "authorization_endpoint"),
    ],
)
def test_a_server_that_does_not_do_as_it_should_is_not_asked(
    metadata: dict[str, Any], said: str, alice: Browser, server: AuthorizationServer
) -> None:
    server.metadata = metadata

    page = alice.press_connect(alice.request())

    assert page.status_code == 502
    assert said in page.content.decode()
    assert server.count("/register") == 0


def test_a_resource_that_speaks_for_another_is_not_believed(server: AuthorizationServer) -> None:
    said = server.describe_resource("https://victim.example/mcp")
    server.wrong["/.well-known/oauth-protected-resource/mcp"] = (200, {}, said)

    with pytest.raises(AccountServerUnfit, match="does not say who gives tokens"):
        discover_terms(server.resource)


def test_servers_on_private_addresses_are_not_asked(server: AuthorizationServer, settings: Any) -> None:
    settings.TOOLHUB_SERVER_ACCOUNT_NETWORKS = []
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]  # for addresses that no stranger names

    with pytest.raises(AccountServerUnfit) as found:
        discover_terms(server.resource)
    assert server.asked == []
    assert found.value.detail == "127.0.0.1 could not be asked."


@pytest.mark.parametrize("closed", ["http://127.0.0.1:1/mcp", "http://10.255.255.1/mcp", "http://nowhere.invalid/mcp"])
def test_a_refusal_does_not_say_what_answers_in_the_networks_of_the_hub(
    closed: str, server: AuthorizationServer
) -> None:
    with pytest.raises(AccountServerUnfit) as found:
        discover_terms(closed)

    assert found.value.detail == f"{urlsplit(closed).hostname} could not be asked."


def test_challenges_are_read() -> None:
    said = find_challenge('Bearer realm="x", resource_metadata="https://a.example/.well-known/x", scope="a b"')

    assert said == {"realm": "x", "resource_metadata": "https://a.example/.well-known/x", "scope": "a b"}
    assert find_challenge("Basic realm=x") == {}


def test_connecting_again_does_not_end_what_has_just_come(alice: Browser, server: AuthorizationServer) -> None:
    """Some servers end with one token all that the person has given the client: the old ones are let lapse."""
    first = alice.connect()
    server.user = "alice.other"

    second = alice.connect(alice.find_newest())
    give_back_due()

    first.refresh_from_db()
    assert (first.state, first.end_reason, first.subject_key) == ("ended", "replaced", None)
    assert server.find_user(open_tokens(second).access) == "alice.other"
    assert server.count("/revoke") == 0


def test_disconnecting_ends_it_there_too(alice: Browser, server: AuthorizationServer) -> None:
    account = alice.connect()

    alice.client.post(reverse("server_account_end", args=[account.pk]))
    give_back_due()

    account.refresh_from_db()
    assert (account.end_reason, bytes(account.ciphertext)) == (services.DISCONNECTED, b"")
    assert not server.access
    assert not server.refresh
    assert said_of(account)[-1] == Kind.SERVER_ACCOUNT_ENDED


def test_tokens_go_back_to_who_gave_them_and_to_nobody_whom_the_server_names_later(
    alice: Browser, bob: Browser, server: AuthorizationServer
) -> None:
    server.needs_secret = True
    account = alice.connect()
    given = open_tokens(account)
    with serving_authorization() as evil:
        name_another(server, evil.url)
        assert bob.press_connect(bob.request()).status_code == 200

        let_run_out(account, server)
        assert server.find_user(fetch_access_token(account.pk)) == "alice"
        services.disconnect_account(account_id=account.pk, by=alice.person.by)
        give_back_due()

        sent = json.dumps(evil.asked)
    assert "/token" not in sent
    assert "/revoke" not in sent
    assert given.refresh not in sent
    assert not server.refresh


def test_a_server_gives_the_hub_no_answer_of_another_that_names_nobody(
    alice: Browser, bob: Browser, server: AuthorizationServer, settings: Any
) -> None:
    """Mix-up (RFC 9700, 4.4): its metadata send the person to an honest server, whose answers do not say whose they are."""
    settings.TOOLHUB_PUBLIC_URL = "https://hub.example"
    server.takes_documents, server.says_issuer = True, False
    with serving_authorization(says_issuer=False) as honest:
        bob.server = honest
        bob.connect(bob.request(honest.resource))
        hub_there = AccountServer.objects.get(resource=honest.resource).client_id
        server.metadata = {"authorization_endpoint": f"{honest.url}/authorize"}
        server.registers, server.wrong["/register"] = True, (201, {}, {"client_id": hub_there})
        evil_one = alice.begin(alice.request())
        asked = dict(parse_qsl(urlsplit(evil_one).query))

        # The honest one does not send the browser there.
        assert asked["client_id"] == hub_there
        assert asked["redirect_uri"] not in honest.redirect_uris[hub_there]
        # Nor is an answer taken that somebody has sent to its address all the same.
        back = urlsplit(honest.authorize(asked | {"redirect_uri": honest.redirect_uris[hub_there][0]}))
        assert_refused(alice.come_back(f"{back.path}?{back.query}"), "ACCOUNT.AUTHORIZATION_REFUSED")
        assert server.count("/token") == 0


@pytest.mark.django_db(transaction=True)
def test_two_tabs_that_begin_at_once_can_both_be_finished(alice: Browser, server: AuthorizationServer) -> None:
    """Each has read the same session of the browser before the other has written."""
    account = alice.request()
    both = threading.Barrier(2, timeout=20)
    server.before_registration = both.wait

    begun = at_once(2, lambda _: begin_of(alice, account))
    answers = [alice.come_back(alice.agree(str(address))) for address in begun]

    assert [each.status_code for each in answers] == [302, 302], [each.content.decode()[-1500:] for each in answers]
    assert server.find_user(open_tokens(alice.find_newest()).access) == "alice"
    assert not AccountAuthorization.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_answers_with_one_state_at_once_one_counts(alice: Browser, server: AuthorizationServer) -> None:
    back = alice.agree(alice.begin(alice.request()))

    answers = at_once(2, lambda _: alice.come_back(back).status_code)

    assert sorted(map(str, answers)) == ["302", "409"]
    assert server.count("/token") == 1


def test_of_what_is_begun_and_never_finished_the_newest_is_kept(alice: Browser) -> None:
    account = alice.request()
    first, *_, last = [alice.begin(account) for _ in range(MAX_BEGUN + 1)]

    assert AccountAuthorization.objects.filter(account=account).count() == MAX_BEGUN
    assert_refused(alice.come_back(alice.agree(first)), "ACCOUNT.AUTHORIZATION_REFUSED")
    assert alice.come_back(alice.agree(last)).status_code == 302


def test_a_document_that_was_guessed_speaks_for_no_address_below_its_own(server: AuthorizationServer) -> None:
    said = server.describe_resource(server.url)
    server.wrong["/.well-known/oauth-protected-resource/mcp"] = (404, {}, {})
    server.wrong["/.well-known/oauth-protected-resource"] = (200, {}, said)
    server.wrong["/mcp"] = (401, {"WWW-Authenticate": "Bearer"}, {})

    with pytest.raises(AccountServerUnfit, match="does not say who gives tokens"):
        discover_terms(server.resource)

    # The address itself may point to it, in which case it speaks for the whole host; for a part of it it never does.
    named = f'Bearer resource_metadata="{server.url}/.well-known/oauth-protected-resource"'
    server.wrong["/mcp"] = (401, {"WWW-Authenticate": named}, {})
    assert discover_terms(server.resource).resource == server.url


def test_a_document_of_a_folder_speaks_for_nothing_in_it(server: AuthorizationServer) -> None:
    path = "/.well-known/oauth-protected-resource/a/mcp"
    known = f'Bearer resource_metadata="{server.url}{path}"'
    server.wrong["/a/mcp"] = (401, {"WWW-Authenticate": known}, {})
    server.wrong[path] = (200, {}, server.describe_resource(f"{server.url}/a"))

    with pytest.raises(AccountServerUnfit, match="does not say who gives tokens"):
        discover_terms(f"{server.url}/a/mcp")


@pytest.mark.parametrize(
    "said",
    [
        {"resource": "https://["},
        {"authorization_servers": ["https://[x"]},
        {"authorization_servers": ["https://\ud800/"]},
        {"authorization_servers": [7, None, ""]},
    ],
)
def test_what_is_no_address_is_refused(said: dict[str, Any], server: AuthorizationServer) -> None:
    path = "/.well-known/oauth-protected-resource/mcp"
    server.wrong[path] = (200, {}, server.describe_resource(server.resource) | said)

    with pytest.raises(AccountServerUnfit):
        discover_terms(server.resource)


@pytest.mark.parametrize("address", ["https://[", "https://a.example/\ud800", "https://a.example/\u0000"])
def test_an_endpoint_that_is_no_address_is_refused(address: str, server: AuthorizationServer) -> None:
    server.metadata = {"authorization_endpoint": address}

    with pytest.raises(AccountServerUnfit, match="authorization_endpoint"):
        discover_terms(server.resource)
