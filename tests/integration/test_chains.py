"""Is a plan carried out step by step, each call governed and witnessed, and what becomes of it when a step does not succeed?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact, Snapshot
from evidence.services import open_values
from invocations.chains import driving
from invocations.chains.models import Chain
from invocations.models import Invocation
from invocations.sandbox.base import Outcome, Status
from tests.calls import assert_problem, kinds_of, writer
from tests.chains import TEXT, calls, chain_of, facts, of, states, step, submit, undo

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.calls import Bell, ScriptedSandbox
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scripted(sandbox: ScriptedSandbox) -> dict[str, Any]:
    """What each text makes of the tool that gets it: a value, or an outcome that is no success. Otherwise it comes back longer."""
    said: dict[str, Any] = {}

    def answer() -> None:
        text = json.loads(sandbox.calls[-1][1].arguments)["text"]
        found = said.get(text, {"text": f"{text}+"})
        found = found.pop(0) if isinstance(found, list) else found
        sandbox.outcome = found if isinstance(found, Outcome) else Outcome(Status.OK, value=found, report={})

    sandbox.during = answer
    return said


@pytest.fixture
def ready(enable: Callable[..., Any], grant: Callable[..., Any]) -> None:
    enable("echo", output_schema=TEXT)
    grant()


FAILS = Outcome(Status.RAISED, error_type="ValueError", error_message="no")


@pytest.mark.req("TOOLS-32")
def test_each_step_gets_what_those_before_it_have_delivered(
    caller: Caller, ready: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    answer = submit(caller, step("first", text="a"), step("second", text=of("first")), step("third", text=of("second")))

    assert answer.status_code == 202, answer.json()
    chain = chain_of(answer)
    assert answer.headers["Location"] == f"/api/v1/chains/{chain.wire_id}"
    assert answer.headers["Retry-After"] == "1"
    assert [call.state for call in calls(chain)] == ["queued"]  # one after the other

    bell.deliver()

    chain.refresh_from_db()
    made = calls(chain)
    assert chain.state == "succeeded"
    assert [call.state for call in made] == ["succeeded"] * 3
    assert all(kinds_of(call) == ["invocation.began", "invocation.ended"] for call in made)
    assert facts(chain) == ["chain.began", "chain.ended"]
    begun = [json.loads(bytes(Fact.objects.get(invocation_id=call.pk, kind="invocation.began").leaf)) for call in made]
    assert [leaf["data"]["chain"]["step"] for leaf in begun] == ["first", "second", "third"]
    assert {leaf["data"]["chain"]["id"] for leaf in begun} == {chain.wire_id}
    body = caller.get(f"/chains/{chain.wire_id}")
    assert body.status_code == 200
    last = body.json()["data"]["steps"][2]["call"]["url"].removeprefix("/api/v1")
    assert caller.get(last).json()["data"] == {"text": "a+++"}
