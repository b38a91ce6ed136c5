"""Account readers: what a person's own program has fetched as them is given to whom?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.urls import reverse

from access.models import ServerAccount
from evidence.models import Snapshot
from invocations.agent_runs.models import AgentRun
from invocations.artifacts.services import find_artifacts
from invocations.chains.orchestration import advance_chain
from invocations.models import Invocation
from invocations.run import execution
from kernel.ids import new_id
from tests.egress.accounts.conftest import TOOL, connect, program_of
from tests.support.calls import assert_problem, row_of
from tests.support.chains import ENVELOPE, chain_of
from tests.support.erasures import forget

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person
    from tests.egress.accounts.conftest import ProgramOfPerson
    from tests.support.authorization_server import AuthorizationServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def of_alice(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person
) -> ProgramOfPerson:
    """Her program, with her account connected for it, and for no agent by itself."""
    bring()
    program = program_of(alice, caller.agent)
    asked = program(TOOL, purpose="x", on_consent="ask")
    connect(alice, asked.json()["error"]["details"]["url"], accounts)
    return program


def let_agent(person: Person, *agents: str) -> None:
    account = ServerAccount.objects.get(member=person.user)
    done = person.client().post(reverse("server_account_agents", args=[account.pk]), {"agents": list(agents)})
    assert done.status_code == 302


@pytest.mark.req("BRING-3")
def test_the_key_of_an_agent_reads_what_a_persons_program_fetched_only_with_their_leave(
    of_alice: ProgramOfPerson, caller: Caller, alice: Person
) -> None:
    first = of_alice(TOOL)
    assert first.json()["data"]["of"] == "alice"
    path = f"/invocations/{row_of(first).wire_id}"

    assert caller.get(path).status_code == 404

    assert_problem(caller.invoke(TOOL, {}, user_id=alice.by.id, purpose="x", on_consent="ask"), 403, "ACCOUNT.REQUIRED")
    let_agent(alice, caller.agent.wire_id)
    assert caller.get(path).json()["data"]["of"] == "alice"
    let_agent(alice)
    assert caller.get(path).status_code == 404


def test_a_key_reads_its_own_calls_when_the_leave_is_taken_back(
    of_alice: ProgramOfPerson, caller: Caller, alice: Person
) -> None:
    caller.invoke(TOOL, {}, user_id=alice.by.id, purpose="x", on_consent="ask")
    let_agent(alice, caller.agent.wire_id)
    first = caller.invoke(TOOL, {}, user_id=alice.by.id)

    let_agent(alice)

    assert caller.get(f"/invocations/{row_of(first).wire_id}").json()["data"]["of"] == "alice"


def test_the_key_of_an_agent_is_shown_no_chain_of_a_persons_program(of_alice: ProgramOfPerson, caller: Caller) -> None:
    plan = ENVELOPE | {"plan": {"steps": [{"id": "a", "tool": TOOL, "arguments": {}}]}, "idempotency_key": "k1"}
    made = Client().post("/api/v1/chains", plan, content_type="application/json", headers=of_alice.headers)
    chain = chain_of(made)
    advance_chain(chain.pk)
    assert Invocation.objects.get(chain_step__chain=chain).account_id is not None

    by = replace(caller.by, key_id=new_id())
    assert caller.get(f"/chains/{chain.wire_id}").status_code == 404
    assert not AgentRun.objects.visible_to(by).exists()
    assert not find_artifacts(by).exists()
    again = Client().post("/api/v1/chains", plan, content_type="application/json", headers=caller.headers())
    assert again.status_code == 403, again.json()


def test_a_stored_answer_is_given_on_an_agents_word_only_with_the_leave_of_its_person(
    of_alice: ProgramOfPerson, caller: Caller, alice: Person
) -> None:
    caller.invoke(TOOL, {}, user_id=alice.by.id, purpose="x", on_consent="ask")
    let_agent(alice, caller.agent.wire_id)
    named: dict[str, Any] = {"user_id": alice.by.id, "idempotency_key": "k1"}
    first = caller.invoke(TOOL, {}, **named)
    assert first.json()["data"]["of"] == "alice"
    assert caller.invoke(TOOL, {}, **named).json()["data"] == first.json()["data"]
    assert_problem(of_alice(TOOL, **(named | {"user_id": "usr_999"})), 403, "ACCOUNT.OF_ANOTHER")

    let_agent(alice)

    assert_problem(caller.invoke(TOOL, {}, **named), 403, "ACCOUNT.REQUIRED")
    # The hub knows for whom her program asks.
    assert of_alice(TOOL, **named).json()["data"] == first.json()["data"]
    alice.client().post(reverse("server_account_end", args=[ServerAccount.objects.get(member=alice.user).pk]))
    assert_problem(of_alice(TOOL, **named), 403, "ACCOUNT.REQUIRED")


def test_a_key_is_not_answered_with_a_call_of_a_persons_program(
    of_alice: ProgramOfPerson, caller: Caller, alice: Person
) -> None:
    named: dict[str, Any] = {"user_id": alice.by.id, "idempotency_key": "k1"}
    assert of_alice(TOOL, **named).json()["data"]["of"] == "alice"

    assert_problem(caller.invoke(TOOL, {}, **named), 403, "ACCOUNT.REQUIRED")


def test_what_a_persons_program_fetched_goes_with_the_person(
    of_alice: ProgramOfPerson, caller: Caller, alice: Person, operator: Person
) -> None:
    """Her program names nobody: the hub knows whose it is."""
    row = row_of(of_alice(TOOL))
    chain = chain_of(
        Client().post(
            "/api/v1/chains",
            {name: value for name, value in ENVELOPE.items() if name != "user_id"}
            | {"plan": {"steps": [{"id": "a", "tool": TOOL, "arguments": {}}]}},
            content_type="application/json",
            headers=of_alice.headers,
        )
    )
    advance_chain(chain.pk)
    execution.run_queued_calls()
    advance_chain(chain.pk)
    chain.refresh_from_db()
    assert chain.is_final
    of = [row.pk, chain.pk, Invocation.objects.get(chain_step__chain=chain).pk]
    assert Snapshot.objects.filter(invocation_id__in=of).count() >= len(of)

    forget(alice.by.id, by=operator.by)

    assert not Snapshot.objects.filter(invocation_id__in=of).exists()
    for each in (row, chain):
        each.refresh_from_db()
        assert each.values_key is not None
        assert each.values_key.destroyed_at is not None
    # Nothing leads from a row to whose it was.
    assert not Invocation.objects.exclude(account_id=None).filter(pk__in=of).exists()


def test_a_program_that_names_somebody_whom_the_hub_does_not_know_is_refused(of_alice: ProgramOfPerson) -> None:
    assert_problem(of_alice(TOOL, user_id="customer-17"), 403, "ACCOUNT.OF_ANOTHER")
