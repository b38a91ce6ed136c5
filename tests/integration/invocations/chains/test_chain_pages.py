"""Chain pages: what do people see of chains in the console, and what can they do with one?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import RunOutcome, RunStatus
from tests.support.chains import calls, chain_of, of, states, step, submit, undo

if TYPE_CHECKING:
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def undone(caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any]) -> Any:
    scripted["bad"] = RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message="no")
    steps = step("first", text="a", compensate=undo(text=of("first"))), step("second", text="bad"), step("third")
    answer = submit(caller, *steps)
    bell.deliver()
    return chain_of(answer)


@pytest.mark.req("TOOLS-32")
def test_the_page_of_a_chain_leads_to_its_calls_and_they_lead_back(operator: Person, undone: Any) -> None:
    client = operator.client()
    page = client.get(f"/chains/{undone.wire_id}").content.decode()

    for call in calls(undone):
        assert f'href="/invocations/{call.wire_id}"' in page
        assert f'href="/chains/{undone.wire_id}"' in client.get(f"/invocations/{call.wire_id}").content.decode()
    for word in ("first", "second", "third", "undoes it", "TOOL.EXECUTION_FAILED", "Not reached"):
        assert word in page
    assert "step of a chain" in client.get("/invocations").content.decode()


@pytest.mark.req("TOOLS-32")
def test_chains_are_listed_by_state(operator: Person, undone: Any) -> None:
    client = operator.client()

    assert undone.wire_id in client.get("/chains?state=failed").content.decode()
    assert undone.wire_id not in client.get("/chains?state=succeeded").content.decode()
    assert client.get("/chains?state=nothing").status_code == 422


@pytest.mark.req("TOOLS-32")
def test_an_operator_ends_a_chain_and_others_may_not(
    operator: Person, auditor: Person, caller: Caller, chainable: None, bell: Bell
) -> None:
    chain = chain_of(submit(caller, step("first"), step("second")))
    page = f"/chains/{chain.wire_id}"

    assert "End this chain" not in auditor.client().get(page).content.decode()
    assert auditor.client().post(f"{page}/cancel").status_code == 403
    assert "End this chain" in operator.client().get(page).content.decode()
    assert operator.client().post(f"{page}/cancel").status_code == 302
    chain.refresh_from_db()
    assert (chain.state, states(chain)) == ("cancelled", ["failed", "skipped"])
    assert "End this chain" not in operator.client().get(page).content.decode()
