"""Outcome resolution: what happens with a call whose outcome nobody could know?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from evidence.models import Fact
from invocations.models import Invocation, Resolution, State
from invocations.outcome_resolutions.services import resolve_outcome
from invocations.queue import sweeper
from invocations.queue.claims import claim_call
from kernel.problems import Conflict, SchemaInvalid
from tests.support.calls import assert_problem, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
KEY = {"Idempotency-Key": "order-1"}
REASON = "The shop's list of orders shows it."


@pytest.fixture
def lost(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Invocation:
    """A call whose worker was killed in the middle."""
    enable()
    grant()
    row = row_of(caller.invoke(ECHO, {"text": "x"}, headers=KEY | {"Prefer": "respond-async"}))
    bell.rung.clear()
    assert claim_call() is not None
    Invocation.objects.update(lease_until=datetime.now(UTC) - timedelta(seconds=1))
    assert sweeper.close_overdue_call(row.pk)
    row.refresh_from_db()
    assert row.state == State.OUTCOME_UNKNOWN
    return row


@pytest.mark.req("TOOLS-20")
def test_an_operator_says_that_the_effect_took_place(lost: Invocation, operator: Person, caller: Caller) -> None:
    client = operator.client()
    assert b"Resolve outcome" in client.get(reverse("invocation", args=[lost.pk])).content

    answer = client.post(reverse("invocation_resolve", args=[lost.pk]), {"resolution": "took_effect", "reason": REASON})

    assert answer.status_code == 302
    lost.refresh_from_db()
    assert (lost.state, lost.resolution, lost.resolved_by) == (State.OUTCOME_UNKNOWN, "took_effect", operator.by.id)
    fact = Fact.objects.get(kind="invocation.resolved")
    assert (fact.invocation_id, fact.actor_id, fact.outcome) == (lost.pk, operator.by.id, "took_effect")
    assert caller.get(f"/invocations/{lost.wire_id}").json()["call"]["resolution"] == "took_effect"
    assert kinds_of(lost).count("invocation.ended") == 1
    again = caller.invoke(ECHO, {"text": "x"}, headers=KEY)  # the key is kept: the call is not made again
    assert_problem(again, 503, "SANDBOX.WORKER_LOST")


@pytest.mark.req("TOOLS-20")
def test_a_call_that_had_no_effect_can_be_made_again_with_its_key(
    lost: Invocation, operator: Person, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    resolve_outcome(invocation_id=lost.pk, resolution=Resolution.NO_EFFECT, reason=REASON, by=operator.by)

    assert caller.invoke(ECHO, {"text": "x"}, headers=KEY).status_code == 200
    assert len(sandbox.calls) == 1


def test_what_was_said_stays(lost: Invocation, operator: Person) -> None:
    resolve_outcome(invocation_id=lost.pk, resolution=Resolution.TOOK_EFFECT, reason=REASON, by=operator.by)

    with pytest.raises(Conflict):
        resolve_outcome(invocation_id=lost.pk, resolution=Resolution.NO_EFFECT, reason=REASON, by=operator.by)

    assert Fact.objects.filter(kind="invocation.resolved").count() == 1


@pytest.mark.parametrize(
    ("resolution", "reason", "pointer"), [("perhaps", REASON, "/resolution"), ("took_effect", "I know", "/reason")]
)
def test_half_an_answer_is_none(resolution: str, reason: str, pointer: str, lost: Invocation, operator: Person) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        resolve_outcome(invocation_id=lost.pk, resolution=resolution, reason=reason, by=operator.by)

    assert refused.value.details["findings"][0]["pointer"] == pointer
    lost.refresh_from_db()
    assert lost.resolution == ""


def test_a_call_whose_outcome_is_known_is_not_resolved(lost: Invocation, caller: Caller, operator: Person) -> None:
    known = row_of(caller.invoke(ECHO, {"text": "y"}))

    answer = operator.client().get(reverse("invocation_resolve", args=[known.pk]))

    assert answer.status_code == 409
