"""Accounts of services: is an operation asked as the person whom a call is for, and is the token given to the gate alone?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from access.models import AccountServer, ServerAccount
from access.server_accounts.authorizations import begin_authorization, finish_authorization
from access.server_accounts.clients import callback_url
from access.server_accounts.services import enter_client
from access.server_accounts.token_seals import open_tokens
from invocations.models import Invocation, State
from invocations.sandbox.base import Profile
from invocations.sandbox.boxes.payloads import pack_call, pack_load
from registry.models import Decision, ToolVersion
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.egress.services import answer_with
from tests.egress.shop import ITEM, TOOL, document_of, end_of
from tests.support.calls import assert_problem, row_of
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.egress.recorded_boxes import RecordedBoxes
    from tests.egress.services import Service
    from tests.support.authorization_server import AuthorizationServer

pytestmark = [pytest.mark.django_db]
STATED = {"authorization_url": "https://auth.example.org/authorize", "token_url": "https://auth.example.org/token"}
BROWSER = "a-session-of-a-browser"


@pytest.fixture
def bring_service(
    caller: Caller, operator: Person, grant: Callable[..., Any], service: Service
) -> Callable[..., ToolVersion]:
    """An operation that asks its service as the person whom a call is for, ready to be called."""

    def make() -> ToolVersion:
        put_in_force(permit())
        document = document_of(service.port, account=STATED | {"scopes": ["items:read"]})
        del document["secrets"], document["implementation"]["operation"]["credentials"]
        answer = caller.post("/tools", document)
        assert answer.status_code in (200, 201), answer.content.decode()
        version = ToolVersion.objects.get(tool__name=TOOL)
        reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)
        lifecycle.enable_tool(name=TOOL, version_id=version.pk, reason="x", by=operator.by)
        grant(tools="service.*")
        return version

    return make


def connect_at(resource: str, person: Person, operator: Person, accounts: AuthorizationServer) -> ServerAccount:
    """As in a browser, at an authorization server of this machine in the place of the one that the document names."""
    accounts.needs_resource, accounts.registers, accounts.user = False, False, person.user.username
    server = AccountServer.objects.get(resource=resource)
    client = accounts.add_client(callback_url(server.callback_key))
    enter_client(resource=resource, client_id=client, client_secret="", by=operator.by)
    account = ServerAccount.objects.get(member=person.user, server=server)
    stated = [{"authorization_url": f"{accounts.url}/authorize", "token_url": f"{accounts.url}/token"}]
    address = begin_authorization(
        account_id=account.pk, browser=BROWSER, agents=[], scopes=["items:read"], stated=stated, by=person.by
    )
    back = urlsplit(accounts.authorize(dict(parse_qsl(urlsplit(address).query))))
    answer = dict(parse_qsl(back.query))
    return finish_authorization(answer=answer, browser=BROWSER, callback=server.callback_key, by=person.by)


@pytest.mark.req("BRING-1", "BRING-3", "SVC-6")
def test_a_call_waits_for_the_account_and_asks_the_service_by_it(
    bring_service: Callable[..., ToolVersion],
    caller: Caller,
    alice: Person,
    operator: Person,
    accounts: AuthorizationServer,
    service: Service,
    boxes: RecordedBoxes,
) -> None:
    version = bring_service()
    resource = version.view.account_resource

    held = caller.invoke(TOOL, ITEM, user_id=alice.by.id, purpose="x", on_consent="hold")

    assert held.status_code == 202, held.json()
    account = ServerAccount.objects.get()
    assert held.json()["call"]["held"]["account"] == account.wire_id
    assert service.heard == []
    account = connect_at(resource, alice, operator, accounts)
    row = Invocation.objects.get(pk=row_of(held).pk)
    assert row.state == State.HELD  # only the agent's word says that it is for her
    ServerAccount.objects.filter(pk=account.pk).update(agents=[caller.agent.wire_id])

    answer = caller.invoke(TOOL, ITEM, user_id=alice.by.id, purpose="x")

    assert answer.status_code == 200, answer.json()
    token = open_tokens(ServerAccount.objects.select_related("subject_key__tenant_key").get(pk=account.pk)).access
    (heard,) = service.requests()
    assert f"Authorization: Bearer {token}".encode() in heard
    end = end_of(row_of(answer))
    assert end["service"]["credentials"] == ["account"]
    assert token not in json.dumps(end)
    assert row_of(answer).account_id == account.pk
    (call,) = boxes.calls
    sent = pack_call(call, stream=True) + pack_load(Profile(), call, level="fresh", load_s=1)
    assert token.encode() not in sent
    assert b"Bearer" not in sent


@pytest.mark.req("BRING-1", "BRING-3")
def test_a_call_for_nobody_or_for_somebody_without_an_account_asks_nothing(
    bring_service: Callable[..., ToolVersion], caller: Caller, alice: Person, service: Service
) -> None:
    bring_service()

    assert_problem(caller.invoke(TOOL, ITEM, purpose="x"), 403, "ACCOUNT.PERSON_MISSING")
    assert_problem(caller.invoke(TOOL, ITEM, purpose="x", user_id=alice.by.id), 403, "ACCOUNT.REQUIRED")

    assert service.heard == []


@pytest.mark.req("BRING-1", "BRING-3")
def test_a_token_that_the_service_does_not_take_is_not_used_again(
    bring_service: Callable[..., ToolVersion],
    caller: Caller,
    alice: Person,
    operator: Person,
    accounts: AuthorizationServer,
    service: Service,
) -> None:
    version = bring_service()
    caller.invoke(TOOL, ITEM, user_id=alice.by.id, purpose="x", on_consent="hold")
    account = connect_at(version.view.account_resource, alice, operator, accounts)
    ServerAccount.objects.filter(pk=account.pk).update(agents=[caller.agent.wire_id])
    service.answers = [answer_with(b"{}", status="401 Unauthorized")]

    refused = caller.invoke(TOOL, ITEM, user_id=alice.by.id, purpose="x")
    assert refused.status_code >= 400
    before = len([path for path, _ in accounts.asked if path == "/token"])
    caller.invoke(TOOL, ITEM, user_id=alice.by.id, purpose="x")

    assert len([path for path, _ in accounts.asked if path == "/token"]) == before + 1


@pytest.mark.req("BRING-1", "BRING-3")
@pytest.mark.parametrize(
    ("challenge", "ends"),
    [
        ("", False),
        ('Bearer realm="items"', False),
        ('Bearer error="insufficient_scope"', False),
        ('Basic realm="x", Bearer realm="items", error="invalid_token"', True),
    ],
)
def test_only_a_service_that_says_so_ends_an_account_that_gets_no_newer_tokens(
    challenge: str,
    ends: bool,
    bring_service: Callable[..., ToolVersion],
    caller: Caller,
    alice: Person,
    operator: Person,
    accounts: AuthorizationServer,
    service: Service,
) -> None:
    """Services answer 401 to much that a good token does not allow."""
    version = bring_service()
    accounts.refreshes = False
    caller.invoke(TOOL, ITEM, user_id=alice.by.id, purpose="x", on_consent="hold")
    account = connect_at(version.view.account_resource, alice, operator, accounts)
    ServerAccount.objects.filter(pk=account.pk).update(agents=[caller.agent.wire_id])
    said = {"www_authenticate": challenge} if challenge else {}
    service.answers = [answer_with(b"{}", status="401 Unauthorized", **said)]

    assert_problem(caller.invoke(TOOL, ITEM, user_id=alice.by.id, purpose="x"), 502, "SERVICE.ACCESS_DENIED")

    account.refresh_from_db()
    assert (account.state, account.end_reason) == (("ended", "refused") if ends else ("connected", ""))
