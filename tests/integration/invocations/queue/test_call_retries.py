"""Call retries: how often does a call run again that was cut off, and what does its tool know it by?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from invocations.models import Invocation, State
from invocations.queue import sweeper
from invocations.queue.claims import claim_call
from invocations.queue.retries import MAX_ATTEMPTS
from invocations.run.cancellation import cancel_call
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.integration.invocations.queue.test_sweeper import past
from tests.support.calls import PAIR, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
LATER = {"Prefer": "respond-async"}
RETRIED = "invocation.retried"


@pytest.fixture
def begin(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Callable[..., Invocation]:
    """``begin(idempotency, key)``: a call that waits for a worker."""

    def make(idempotency: str = "keyed", key: str = "order-1") -> Invocation:
        enable(idempotency=idempotency)
        grant()
        return row_of(caller.invoke(ECHO, {"text": "x"}, headers=LATER | ({"Idempotency-Key": key} if key else {})))

    return make


def keys_of(sandbox: ScriptedSandbox) -> list[str | None]:
    return [call.context["idempotency_key"] for _, call in sandbox.calls]


@pytest.mark.req("TOOLS-18", "TOOLS-20")
@pytest.mark.parametrize("key", ["order-1", ""], ids=["with its caller's key", "without one"])
def test_a_keyed_call_that_is_cut_off_runs_again_with_the_same_key_and_in_the_end_is_unknown(
    key: str, begin: Callable[..., Invocation], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    row = begin(key=key)
    sandbox.outcome = RunOutcome(RunStatus.LOST)

    bell.deliver()

    row.refresh_from_db()
    assert (row.state, row.attempt) == (State.OUTCOME_UNKNOWN, MAX_ATTEMPTS)
    assert kinds_of(row) == [PAIR[0], *[RETRIED] * (MAX_ATTEMPTS - 1), PAIR[1]]
    assert len(keys_of(sandbox)) == MAX_ATTEMPTS
    assert len(set(keys_of(sandbox))) == 1
    assert keys_of(sandbox)[0] not in (None, "", key), "callers' own keys are theirs"


@pytest.mark.req("TOOLS-20")
def test_a_keyed_call_that_gets_through_the_second_time_has_succeeded(
    begin: Callable[..., Invocation], bell: Bell, sandbox: ScriptedSandbox, caller: Caller
) -> None:
    row = begin()
    ends = [RunOutcome(RunStatus.LOST), RunOutcome(RunStatus.OK, value={"text": "through"}, report={})]

    def next_end() -> None:
        sandbox.outcome = ends.pop(0)

    sandbox.during = next_end

    bell.deliver()

    assert caller.get(f"/invocations/{row.wire_id}").json()["data"] == {"text": "through"}
    assert kinds_of(row)[:3] == [PAIR[0], RETRIED, PAIR[1]]


@pytest.mark.req("TOOLS-20")
def test_a_call_without_a_key_is_never_run_again(
    begin: Callable[..., Invocation], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    row = begin(idempotency="none")
    sandbox.outcome = RunOutcome(RunStatus.LOST)

    bell.deliver()

    row.refresh_from_db()
    assert (row.state, row.attempt) == (State.OUTCOME_UNKNOWN, 1)
    assert kinds_of(row) == PAIR
    assert keys_of(sandbox) == [None]


@pytest.mark.req("TOOLS-20")
def test_a_keyed_call_whose_end_was_asked_for_is_not_run_again_by_the_sweeper(
    begin: Callable[..., Invocation], caller: Caller
) -> None:
    row = begin()
    assert claim_call() is not None
    cancel_call(invocation_id=row.pk, by=caller.by)
    Invocation.objects.update(lease_until=past())

    sweeper.sweep_once()

    row.refresh_from_db()
    assert row.is_final
    assert row.attempt == 1
    assert Fact.objects.filter(invocation_id=row.pk, kind=RETRIED).count() == 0
