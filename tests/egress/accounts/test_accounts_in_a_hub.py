"""Accounts in a hub: is a server elsewhere asked as the person whom a call is for, by their own account and nobody else's, and does a
call wait for it?
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from access.consents import services as consents
from access.grants.services import give_grant
from access.members.services import end_membership
from access.models import Consent, Delivery, Notification, ServerAccount
from access.roles import Role
from access.server_accounts.token_seals import open_tokens
from evidence.kinds import Kind
from evidence.models import Fact
from invocations.agent_runs.models import AgentRun
from invocations.artifacts.services import find_artifacts
from invocations.chains.orchestration import advance_chain
from invocations.models import Invocation, State
from invocations.run import execution
from invocations.sandbox.base import Profile
from invocations.sandbox.boxes.payloads import pack_call, pack_load
from kernel.ids import new_id
from kernel.principal import Principal, UsedConnection
from registry.installations.services import remove_installation
from registry.models import Installation, ToolVersion
from tests.conftest import Caller, Person, make_caller
from tests.egress.accounts.conftest import TOOL, connect, program_of
from tests.egress.box_search import search_boxes
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.chains import ENVELOPE, chain_of
from tests.support.erasures import forget
from tests.support.evidence_logs import check_log, seal_everything, signing_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from invocations.sandbox.docker import DockerSandbox
    from tests.egress.recorded_boxes import RecordedBoxes
    from tests.egress.remote_servers import RemoteServer
    from tests.support.authorization_server import AuthorizationServer

ASKS: dict[str, Any] = {"purpose": "x", "on_consent": "ask"}
pytestmark = pytest.mark.django_db


def end_of(row: Invocation) -> dict[str, Any]:
    leaf = Fact.objects.get(invocation_id=row.pk, kind=Kind.INVOCATION_ENDED).leaf
    data: dict[str, Any] = json.loads(bytes(leaf))["data"]
    return data


@pytest.mark.req("BRING-3")
def test_a_call_waits_for_the_account_of_its_person_and_goes_on(
    bring: Callable[..., ToolVersion],
    remote: RemoteServer,
    accounts: AuthorizationServer,
    caller: Caller,
    alice: Person,
    boxes: RecordedBoxes,
) -> None:
    bring()

    held = caller.invoke(TOOL, {}, user_id=alice.by.id, purpose="x", on_consent="hold")

    assert held.status_code == 202, held.json()
    waits = held.json()["call"]["held"]
    account = ServerAccount.objects.get()
    assert waits["account"] == account.wire_id
    assert "consent" not in waits
    assert remote.asked() == []

    connect(alice, waits["url"], accounts, agents=(caller.agent.wire_id,))
    execution.run_queued_calls()

    row = row_of(held)
    row.refresh_from_db()
    assert row.state == State.SUCCEEDED
    answer = caller.get(f"/invocations/{row.wire_id}").json()
    assert answer["data"] == {"notes": ["note of alice"], "of": "alice"}
    assert kinds_of(row)[:4] == [PAIR[0], Kind.INVOCATION_HELD, Kind.INVOCATION_RESUMED, PAIR[1]]
    assert end_of(row)["account"] == account.wire_id
    assert end_of(row)["service"]["credentials"] == ["account"]
    account.refresh_from_db()
    token = open_tokens(ServerAccount.objects.select_related("subject_key__tenant_key").get()).access
    assert all(token.encode() not in bytes(each.leaf) for each in Fact.objects.all())
    (call,) = boxes.calls
    sent = pack_call(call, stream=True) + pack_load(Profile(), call, level="fresh", load_s=1)
    assert token.encode() not in sent
    with signing_with():
        seal_everything()
        assert check_log(row.tenant_id) > 0


def connect_as_told(person: Person, answer: Any, accounts: AuthorizationServer, **more: Any) -> None:
    connect(person, answer.json()["error"]["details"]["url"], accounts, **more)


@pytest.mark.req("BRING-3")
def test_no_byte_of_a_persons_token_is_in_a_box_while_it_is_used(
    bring: Callable[..., ToolVersion],
    remote: RemoteServer,
    accounts: AuthorizationServer,
    caller: Caller,
    alice: Person,
    engine_boxes: DockerSandbox,
) -> None:
    bring()
    program = program_of(alice, caller.agent)
    connect_as_told(alice, program(TOOL, **ASKS), accounts)
    kept = open_tokens(ServerAccount.objects.select_related("subject_key__tenant_key").get())
    searched: list[tuple[int, list[str]]] = []
    remote.while_called = lambda: searched.append(
        search_boxes(engine_boxes, [kept.access.encode(), kept.refresh.encode()])
    )

    assert program(TOOL).json()["data"]["of"] == "alice"

    ((looked, found),) = searched
    assert looked > 0
    assert found == []
    # What the box surely holds is found, so the search finds what is there.
    remote.while_called = lambda: searched.append(search_boxes(engine_boxes, [b"read-notes"]))
    program(TOOL)
    assert searched[-1][1]


@pytest.mark.req("BRING-3")
def test_each_person_gets_their_own_and_nobody_elses(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person, bob: Person
) -> None:
    """Both programs act as one agent."""
    bring()
    of_alice, of_bob = program_of(alice, caller.agent), program_of(bob, caller.agent)
    for program, person in ((of_alice, alice), (of_bob, bob)):
        asked = program(TOOL, **ASKS)
        assert assert_problem(asked, 403, "ACCOUNT.REQUIRED")["error"]["details"]["person"] == person.by.id
        connect_as_told(person, asked, accounts)

    first, second = of_alice(TOOL), of_bob(TOOL)

    assert first.json()["data"]["of"] == "alice"
    assert second.json()["data"]["of"] == "bob"
    assert_problem(of_bob(TOOL, user_id=alice.by.id), 403, "ACCOUNT.OF_ANOTHER")
    # What one was given is not read by way of the other's program either.
    path = f"/api/v1/invocations/{row_of(first).wire_id}"
    assert Client().get(path, headers=of_bob.headers).status_code == 404
    assert Client().get(path, headers=of_alice.headers).status_code == 200


def test_a_chain_with_calls_by_one_persons_account_is_shown_to_nobody_elses_program(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person, bob: Person
) -> None:
    bring()
    of_alice, of_bob = program_of(alice, caller.agent), program_of(bob, caller.agent)
    connect_as_told(alice, of_alice(TOOL, **ASKS), accounts)
    plan = ENVELOPE | {"plan": {"steps": [{"id": "a", "tool": TOOL, "arguments": {}}]}}
    made = Client().post("/api/v1/chains", plan, content_type="application/json", headers=of_alice.headers)
    assert made.status_code in (200, 202), made.json()
    chain = chain_of(made)
    advance_chain(chain.pk)

    assert Invocation.objects.get(chain_step__chain=chain).account_id is not None
    bobs = replace(caller.by, connection=UsedConnection(new_id(), "x", bob.by.id))
    assert not AgentRun.objects.visible_to(bobs).exists()
    assert not find_artifacts(bobs).exists()
    path = f"/api/v1/chains/{chain.wire_id}"
    assert Client().get(path, headers=of_bob.headers).status_code == 404
    assert Client().get(path, headers=of_alice.headers).status_code in (200, 202)


def test_the_key_of_one_persons_call_gives_nobody_else_its_answer(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person, bob: Person
) -> None:
    bring()
    of_alice, of_bob = program_of(alice, caller.agent), program_of(bob, caller.agent)
    connect_as_told(alice, of_alice(TOOL, **ASKS), accounts)
    connect_as_told(bob, of_bob(TOOL, **ASKS), accounts)

    first, second = of_alice(TOOL, idempotency_key="k1"), of_bob(TOOL, idempotency_key="k1")

    assert first.json()["data"]["of"] == "alice"
    assert "alice" not in second.content.decode()


def test_an_agent_that_names_a_person_needs_that_persons_leave(
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    remote: RemoteServer,
    caller: Caller,
    operator: Person,
    alice: Person,
) -> None:
    bring()
    connect_as_told(alice, caller.invoke(TOOL, {}, user_id=alice.by.id, **ASKS), accounts)  # without letting the agent

    refused = assert_problem(caller.invoke(TOOL, {}, user_id=alice.by.id), 403, "ACCOUNT.REQUIRED")
    assert "and let this agent use it" in json.dumps(refused["error"])
    assert "tools/call" not in remote.asked()

    account = ServerAccount.objects.get()
    alice.client().post(reverse("server_account_agents", args=[account.pk]), {"agents": [caller.agent.wire_id]})
    assert caller.invoke(TOOL, {}, user_id=alice.by.id).json()["data"]["of"] == "alice"
    other = make_caller(operator.by, "other")
    give_grant(agent_id=other.agent.pk, tools="mcp.*", by=operator.by, reason="x")
    assert_problem(other.invoke(TOOL, {}, user_id=alice.by.id), 403, "ACCOUNT.REQUIRED")


@pytest.mark.parametrize("user_id", ["", "usr_999999", "somebody of another system"])
def test_a_call_for_nobody_is_refused(
    user_id: str, bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring()

    answer = caller.invoke(TOOL, {}, user_id=user_id, purpose="x", on_consent="hold")

    assert_problem(answer, 403, "ACCOUNT.PERSON_MISSING")
    assert remote.asked() == []
    assert not ServerAccount.objects.exists()


@pytest.mark.parametrize("consent_first", [True, False])
def test_a_call_that_needs_a_consent_too_waits_for_both(
    consent_first: bool,
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    caller: Caller,
    alice: Person,
    second_operator: Person,
) -> None:
    bring(side_effect="Write", safety_class="Medium")
    held = caller.invoke(TOOL, {}, user_id=alice.by.id, purpose="x", on_consent="hold")
    row, waits = row_of(held), held.json()["call"]["held"]
    consent_id = row.consent_id
    assert consent_id is not None
    assert {"consent", "account", "consent_url", "url"} <= waits.keys()

    def agree() -> None:
        consents.approve_consent(consent_id=consent_id, reason="x", mode="once", by=second_operator.by)

    def link() -> None:
        connect(alice, waits["url"], accounts, agents=(caller.agent.wire_id,))

    first, second = (agree, link) if consent_first else (link, agree)
    first()
    row.refresh_from_db()
    assert row.state == State.HELD
    second()
    execution.run_queued_calls()

    row.refresh_from_db()
    assert row.state == State.SUCCEEDED, row.reason
    assert Consent.objects.get(pk=consent_id).state == "used"


def test_a_person_who_says_no_ends_the_calls_that_wait(
    bring: Callable[..., ToolVersion], caller: Caller, alice: Person
) -> None:
    bring()
    row = row_of(caller.invoke(TOOL, {}, user_id=alice.by.id, purpose="x", on_consent="hold"))

    alice.client().post(reverse("server_account_end", args=[ServerAccount.objects.get().pk]))

    row.refresh_from_db()
    assert (row.state, row.reason) == (State.DENIED, "ACCOUNT.DECLINED")


def test_what_goes_with_a_person_who_leaves(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person, tenant: Tenant
) -> None:
    bring()
    asked = caller.invoke(TOOL, {}, user_id=alice.by.id, **ASKS)
    connect_as_told(alice, asked, accounts, agents=(caller.agent.wire_id,))
    assert caller.invoke(TOOL, {}, user_id=alice.by.id).status_code == 200

    alice.user.is_active = False
    alice.user.save()
    assert_problem(caller.invoke(TOOL, {}, user_id=alice.by.id), 403, "ACCOUNT.PERSON_MISSING")
    alice.user.is_active = True
    alice.user.save()
    system = Principal.system("test", tenant_id=tenant.pk)
    end_membership(user_id=alice.user.pk, role=Role.OPERATOR, by=system)

    account = ServerAccount.objects.get()
    assert (account.end_reason, bytes(account.ciphertext)) == ("left", b"")
    assert_problem(caller.invoke(TOOL, {}, user_id=alice.by.id), 403, "ACCOUNT.PERSON_MISSING")


def test_what_goes_with_a_person_who_is_erased(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person, operator: Person
) -> None:
    bring()
    asked = caller.invoke(TOOL, {}, user_id=alice.by.id, **ASKS)
    connect_as_told(alice, asked, accounts, agents=(caller.agent.wire_id,))
    key = ServerAccount.objects.get().subject_key

    forget(alice.by.id, by=operator.by)

    account = ServerAccount.objects.get()
    assert key is not None
    key.refresh_from_db()
    assert key.destroyed_at is not None
    assert (account.end_reason, account.subject_key, bytes(account.ciphertext)) == ("erased", None, b"")


def test_a_call_fetches_newer_tokens_where_they_have_run_out(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person
) -> None:
    bring()
    accounts.lasts_s = 30  # less than what a call is given ahead
    program = program_of(alice, caller.agent)
    connect_as_told(alice, program(TOOL, **ASKS), accounts)

    assert program(TOOL).json()["data"]["of"] == "alice"
    assert program(TOOL).json()["data"]["of"] == "alice"

    account = ServerAccount.objects.get()
    assert account.number == 3
    assert accounts.count("/token", grant_type="refresh_token") == 2
    said = Fact.objects.filter(kind=Kind.SERVER_ACCOUNT_REFRESHED, subject=account.wire_id)
    assert [json.loads(bytes(each.leaf))["data"]["number"] for each in said.order_by("id")] == [2, 3]


def test_an_account_that_gets_no_newer_tokens_ends_and_its_person_is_told(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person, operator: Person
) -> None:
    Notification.objects.create(
        tenant_id=operator.by.tenant_id,
        channel="email",
        target="a@example.org",
        events=["account.ended"],
        created_by=operator.by.id,
    )
    bring()
    accounts.lasts_s = 30
    program = program_of(alice, caller.agent)
    connect_as_told(alice, program(TOOL, **ASKS), accounts)
    accounts.forget("alice")

    refused = assert_problem(program(TOOL), 403, "ACCOUNT.REQUIRED")

    account = ServerAccount.objects.get()
    assert (account.state, account.end_reason) == ("ended", "refused")
    assert refused["error"]["details"]["url"].endswith(account.wire_id)
    page = alice.client().get(reverse("server_account", args=[account.pk])).content.decode()
    assert "The server gives no more tokens for it." in page
    assert Delivery.objects.get(event="account.ended").body["member"] == "alice"
    waits = program(TOOL, on_consent="hold", purpose="x")
    assert waits.status_code == 202
    assert waits.json()["call"]["held"]["account"] != account.wire_id


def test_a_token_that_the_server_does_not_take_is_not_used_again(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person
) -> None:
    bring()
    program = program_of(alice, caller.agent)
    connect_as_told(alice, program(TOOL, **ASKS), accounts)
    accounts.let_run_out()

    assert_problem(program(TOOL), 502, "SERVICE.ACCESS_DENIED")
    assert program(TOOL).json()["data"]["of"] == "alice"

    assert accounts.count("/token", grant_type="refresh_token") == 1


def test_the_list_is_held_for_each_account(
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    remote: RemoteServer,
    caller: Caller,
    alice: Person,
    bob: Person,
) -> None:
    bring()
    of_alice, of_bob = program_of(alice, caller.agent), program_of(bob, caller.agent)
    connect_as_told(alice, of_alice(TOOL, **ASKS), accounts)
    connect_as_told(bob, of_bob(TOOL, **ASKS), accounts)
    remote.heard.clear()

    for program in (of_alice, of_bob, of_alice, of_bob):
        program(TOOL)

    assert remote.asked() == ["tools/list", "tools/call"] * 2 + ["tools/call"] * 2
    assert Installation.objects.get(name=TOOL).listing_held_at is None


def test_what_is_asked_for_is_what_the_installed_tools_want_now(
    bring: Callable[..., ToolVersion], remote: RemoteServer, alice: Person, operator: Person
) -> None:
    bring(scopes=("notes:read", "notes:write"))
    browser = alice.client()
    browser.post(reverse("server_account_begin"), {"resource": remote.resource})
    account = ServerAccount.objects.get()

    def find_asked() -> str:
        gone = browser.post(reverse("server_account_connect", args=[account.pk]))
        return str(dict(parse_qsl(urlsplit(gone.context["address"]).query))["scope"])

    assert find_asked() == "notes:read notes:write"
    remove_installation(name=TOOL, reason="x", by=operator.by)
    assert find_asked() == "notes:read"  # which the server itself asks for
