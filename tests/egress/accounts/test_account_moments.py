"""Account moments: what becomes of a call whose account changes, or whose tokens are fetched, at that moment?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from access.models import ServerAccount
from access.roles import Role
from invocations import services
from invocations.models import Invocation, State
from invocations.run import lease_heartbeat
from kernel.database.connections import database_time
from tests.conftest import make_person
from tests.egress.accounts.conftest import TOOL, connect, program_of
from tests.support.calls import assert_problem, row_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from access.models import Tenant
    from invocations.run.lease_heartbeat import RunWatch
    from registry.models import ToolVersion
    from tests.conftest import Caller, Person
    from tests.egress.accounts.conftest import ProgramOfPerson
    from tests.egress.remote_servers import RemoteServer
    from tests.support.authorization_server import AuthorizationServer

ASKS: dict[str, Any] = {"purpose": "x", "on_consent": "ask"}


def connect_program(person: Person, caller: Caller, accounts: AuthorizationServer) -> ProgramOfPerson:
    program = program_of(person, caller.agent)
    connect(person, program(TOOL, **ASKS).json()["error"]["details"]["url"], accounts)
    return program


@pytest.mark.req("BRING-3")
@pytest.mark.django_db(transaction=True)
def test_the_lease_is_kept_while_newer_tokens_are_fetched(
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    caller: Caller,
    alice: Person,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bring()
    program = connect_program(alice, caller, accounts)
    ServerAccount.objects.update(expires_at=database_time())
    settings.TOOLHUB_LEASE_S = 3
    renewed, keep_leases = threading.Event(), lease_heartbeat._keep_leases

    def keep_and_tell(watches: list[RunWatch]) -> dict[UUID, bool]:
        kept = keep_leases(watches)
        if any(kept.values()):
            renewed.set()
        return kept

    monkeypatch.setattr(lease_heartbeat, "_keep_leases", keep_and_tell)
    accounts.before_token = lambda: renewed.wait(30)

    assert program(TOOL).json()["data"]["of"] == "alice"

    assert renewed.is_set()


@pytest.mark.django_db
def test_a_call_that_is_cancelled_while_its_tokens_are_fetched_sends_nothing(
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    remote: RemoteServer,
    caller: Caller,
    alice: Person,
) -> None:
    bring()
    program = connect_program(alice, caller, accounts)
    ServerAccount.objects.update(expires_at=database_time())
    unwanted = threading.Event()

    def cancel() -> None:
        (running,) = lease_heartbeat._watches
        lease_heartbeat.end_run(running)
        unwanted.set()

    accounts.before_token = cancel

    answer = program(TOOL)

    assert unwanted.is_set()
    assert row_of(answer).state == State.CANCELLED
    assert "tools/call" not in remote.asked()


@pytest.mark.django_db
def test_no_call_is_held_on_an_account_that_was_connected_at_that_moment(
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    caller: Caller,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The person comes back between the decision and the hold."""
    bring()
    program = program_of(alice, caller.agent)
    url = program(TOOL, **ASKS).json()["error"]["details"]["url"]
    came_back: list[str] = []

    def come_back(moment: str) -> None:
        if moment == "call.decided" and not came_back:
            came_back.append(moment)
            connect(alice, url, accounts)

    monkeypatch.setattr(services, "inject_fault", come_back)

    answer = program(TOOL, purpose="x", on_consent="hold")

    refused = assert_problem(answer, 403, "ACCOUNT.REQUIRED")["error"]
    assert "at this moment" in refused["message"]
    assert not Invocation.objects.filter(state=State.HELD).exists()
    assert program(TOOL, purpose="x", on_consent="hold").json()["data"]["of"] == "alice"


@pytest.mark.django_db
def test_an_agent_does_not_learn_who_has_connected_what(
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    caller: Caller,
    alice: Person,
    bob: Person,
    tenant: Tenant,
) -> None:
    """Alice has connected, Bob was asked, and of the third nobody knows more than the name."""
    bring()
    connect_program(alice, caller, accounts)
    program_of(bob, caller.agent)(TOOL, **ASKS)
    carol = make_person(tenant, "carol", Role.OPERATOR)

    refused = [
        assert_problem(caller.invoke(TOOL, {}, user_id=each.by.id), 403, "ACCOUNT.REQUIRED")["error"]
        for each in (alice, bob, carol)
    ]

    told = {str(said).replace(each.by.id, "usr") for said, each in zip(refused, (alice, bob, carol), strict=True)}
    assert len(told) == 1, told
