"""Consent policy: where a policy speaks of consent: which consent is enough, how old it may be, and that it is spent."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access.models import Consent, ConsentMode, ConsentState
from access.policies.verdict import policy_hash
from invocations.calls import CallRequest, compute_fingerprints
from invocations.models import Invocation
from invocations.services import find_decision_context
from kernel.http.envelopes import RequestEnvelope
from tests.support.calls import ask
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db

ECHO = "sample.tools.echo"
ARGUMENTS = {"text": "x"}


def approved(caller: Caller, operator: Person, *, mode: str, ago: timedelta = timedelta(0)) -> Consent:
    """A consent for exactly the call of :data:`ARGUMENTS`."""
    envelope = RequestEnvelope(request_id="a-consent", actor={"type": "agent", "id": "x"})
    call = CallRequest(tool=ECHO, arguments=ARGUMENTS, envelope=envelope)
    decision_context = find_decision_context(ECHO, by=caller.by, now=timezone.now())
    return Consent.objects.create(
        tenant_id=caller.by.tenant_id,
        agent=caller.agent,
        tool=ECHO,
        versions="^1",
        mode=mode,
        state=ConsentState.APPROVED,
        purpose="a test",
        validity_s=86_400,
        requested_by=caller.by.id,
        decided_by=operator.by.id,
        decided_at=timezone.now() - ago,
        arguments_fingerprint=compute_fingerprints(call, caller.by)["arguments_fingerprint"],
        policy_hash=policy_hash(decision_context.layers),
    )


@pytest.mark.req("TOOLS-19")
def test_a_consent_for_once_that_let_a_call_through_is_spent_also_where_a_rule_only_looked_at_it(
    caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    demand = {"id": "ask", "effect": "consent", "when": {"consent": {"equals": False}}, "consent": {"mode": "once"}}
    put_in_force(permit(), demand)
    consent = approved(caller, operator, mode=ConsentMode.ONCE)

    first = caller.invoke(ECHO, ARGUMENTS)
    second = caller.invoke(ECHO, ARGUMENTS)

    consent.refresh_from_db()
    assert first.status_code == 200, first.json()
    assert consent.state == ConsentState.USED
    assert Invocation.objects.get(state="succeeded").consent_id == consent.pk
    assert second.json()["error"]["reason"] == "POLICY.CONSENT_REQUIRED"


@pytest.mark.req("TOOLS-19", "TOOLS-31")
@pytest.mark.parametrize(("ago", "allowed"), [(timedelta(seconds=30), True), (timedelta(minutes=10), False)])
def test_a_consent_is_not_older_than_a_policy_lets_it_become(
    ago: timedelta,
    allowed: bool,
    caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
) -> None:
    enable()
    grant()
    approved(caller, operator, mode=ConsentMode.PERIOD, ago=ago)
    demand = {"mode": "period", "validity_s": 60}
    put_in_force(permit(), {"id": "ask", "effect": "consent", "when": {}, "consent": demand})

    assert ask(caller, ECHO)["allow"] is allowed


@pytest.mark.req("SPEC-2", "TOOLS-19")
def test_a_dry_run_of_what_only_reads_asks_for_consent_as_the_run_does(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable(side_effect="Read", consent={"required": True})
    grant()

    refusals = [ask(caller, ECHO, dry_run=dry)["problem"]["reason"] for dry in (False, True)]

    assert refusals == ["POLICY.CONSENT_REQUIRED", "POLICY.CONSENT_REQUIRED"]
