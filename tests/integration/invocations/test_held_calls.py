"""Held calls: does a call that waits for a person run exactly when, and as, that person has agreed?"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import F
from django.utils import timezone

from access import services as access
from access.budgets.rate_limits import check_rates
from access.consents import services as consents
from access.models import Agent, BudgetWindow, Consent
from evidence.models import Fact, Pending
from invocations import services
from invocations.approvals import held_calls
from invocations.models import Invocation
from invocations.queue import sweeper
from kernel.database.change_watch import LOOK_AGAIN_S
from kernel.problems import Conflict
from registry.versions import services as registry
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of, writer
from tests.support.concurrency import at_once
from toolhub import embedded_mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
WRITE = "sample.tools.write"
HOLD: dict[str, Any] = {"on_consent": "hold", "purpose": "to place an order"}
ASK: dict[str, Any] = {"on_consent": "ask", "purpose": "to place an order"}
KEY: dict[str, str] = {"Idempotency-Key": "order-1"}
MANIFEST: dict[str, Any] = {"data_classes": ["payment"], "consent": {"validity_seconds": 600}}


@pytest.fixture
def ready(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    writer(enable, **MANIFEST)
    grant()


@pytest.fixture
def decide(operator: Person, bell: Bell, django_capture_on_commit_callbacks: Any) -> Callable[..., Consent]:
    """``decide("approve", consent, mode="once")``; then whoever is to run it runs."""

    def make(how: str, consent: Consent | None = None, **more: Any) -> Consent:
        do = {"approve": consents.approve_consent, "deny": consents.deny_consent}[how]
        with django_capture_on_commit_callbacks(execute=True):
            done = do(consent_id=(consent or Consent.objects.get()).pk, reason="I know it.", by=operator.by, **more)
        bell.deliver()
        return done

    return make


def test_a_held_call_says_too_that_its_request_id_was_used_before(ready: None, caller: Caller) -> None:
    first = caller.invoke(WRITE, {"text": "x"}, request_id="order-2026-11", **HOLD).json()
    second = caller.invoke(WRITE, {"text": "y"}, request_id="order-2026-11", **HOLD).json()

    assert first["warnings"] == []
    assert any(first["call"]["call_id"] in told for told in second["warnings"])


def test_a_call_that_waits_for_a_person_lets_an_idle_hub_rest_until_its_time_is_over(
    ready: None, caller: Caller
) -> None:
    held = hold(caller)
    Pending.objects.all().delete()
    assert embedded_mode.is_under_way() is False

    Invocation.objects.filter(pk=held.pk).update(held_until=timezone.now() + timedelta(seconds=LOOK_AGAIN_S / 2))
    assert embedded_mode.is_under_way() is True


def hold(caller: Caller, arguments: Any = None, **more: Any) -> Invocation:
    answer = caller.invoke(WRITE, {"text": "x"} if arguments is None else arguments, **(HOLD | more))
    assert answer.status_code == 202, answer.json()
    return row_of(answer)


def assert_whole(invocation: Invocation, *, state: str) -> None:
    """One Begin, one End, and nothing left of it to be done."""
    invocation.refresh_from_db()
    assert invocation.state == state
    kinds = kinds_of(invocation)
    assert [kind for kind in kinds if kind in PAIR] == PAIR
    assert Pending.objects.count() == Fact.objects.count()


def test_one_that_lost_its_key_as_it_was_to_be_held_names_no_consent_that_nobody_was_asked_for(
    ready: None, caller: Caller, operator: Person, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = hold(caller, headers=KEY)
    consents.approve_consent(consent_id=Consent.objects.get().pk, reason="I know it.", mode="once", by=operator.by)
    find, looked = services.find_earlier, iter([True])
    monkeypatch.setattr(
        services, "find_earlier", lambda *args, **more: None if next(looked, False) else find(*args, **more)
    )

    second = caller.invoke(WRITE, {"text": "x"}, headers=KEY, **HOLD)

    assert_problem(second, 409, "IDEMPOTENCY.IN_PROGRESS")
    assert row_of(second) != first
    assert row_of(second).consent_id is None
    assert Consent.objects.count() == 1


@pytest.mark.req("SPEC-6", "TOOLS-18", "TOOLS-19")
def test_a_held_call_is_answered_with_its_address_and_resumes_when_somebody_agrees(
    ready: None, caller: Caller, sandbox: ScriptedSandbox, decide: Callable[..., Consent]
) -> None:
    answer = caller.invoke(WRITE, {"text": "x"}, **HOLD)

    held, consent = row_of(answer), Consent.objects.get()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/api/v1/invocations/{held.wire_id}"
    call = answer.json()["call"]
    assert (call["state"], call["status"]) == ("held", "pending")
    assert call["held"]["consent"] == consent.wire_id
    assert call["held"]["url"].endswith(f"/consents/{consent.wire_id}")
    assert (consent.mode, consent.data_classes, consent.purpose) == ("period", ["payment"], "to place an order")
    assert (consent.invocation_id, consent.arguments_fingerprint) == (held.pk, held.arguments_fingerprint)
    assert (consent.policy_hash, consent.expires_at) == (held.policy_hash, held.held_until)
    assert sandbox.calls == []
    assert kinds_of(held) == ["consent.requested", "invocation.began", "invocation.held"]
    begin = json.loads(bytes(Fact.objects.get(kind="invocation.began").leaf))
    assert (begin["outcome"], begin["data"]["consent"]) == ("held", consent.wire_id)
    assert "refused_at" not in begin["data"]

    decide("approve", mode="once")

    assert_whole(held, state="succeeded")
    assert kinds_of(held)[3:] == ["consent.approved", "invocation.resumed", "consent.used", "invocation.ended"]
    consent.refresh_from_db()
    assert (consent.state, len(sandbox.calls)) == ("used", 1)
    read = caller.get(f"/invocations/{held.wire_id}")
    assert (read.status_code, read.json()["data"]) == (200, {"text": "scripted"})
    held.refresh_from_db()
    assert "consent.wait" in [step["name"] for step in held.steps]


def test_a_consent_for_a_time_lets_the_held_call_and_the_next_ones_through(
    ready: None, caller: Caller, sandbox: ScriptedSandbox, decide: Callable[..., Consent]
) -> None:
    held = hold(caller)
    decide("approve", validity_s=60)

    assert_whole(held, state="succeeded")
    assert caller.invoke(WRITE, {"text": "other"}).status_code == 200
    assert Consent.objects.get().state == "approved"


@pytest.mark.req("TOOLS-18")
def test_a_held_call_that_is_denied_ends_with_the_reason_and_runs_nothing(
    ready: None, caller: Caller, sandbox: ScriptedSandbox, decide: Callable[..., Consent]
) -> None:
    held = hold(caller, headers=KEY)
    decide("deny")

    assert_whole(held, state="denied")
    assert sandbox.calls == []
    body = caller.get(f"/invocations/{held.wire_id}").json()
    assert body["error"]["reason"] == "POLICY.CONSENT_DENIED"
    assert "I know it." in body["error"]["message"]
    assert hold(caller, headers=KEY).pk != held.pk  # nothing ran, so the key is free


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("what", ["the request", "the call"])
def test_a_held_call_that_nobody_decides_on_expires(
    what: str, ready: None, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    held, gone = hold(caller), timezone.now() - timedelta(seconds=1)
    if what == "the request":
        Consent.objects.update(expires_at=gone)
    else:
        Invocation.objects.update(held_until=gone)

    sweeper.sweep_once()
    sweeper.sweep_once()

    assert_whole(held, state="expired")
    assert caller.get(f"/invocations/{held.wire_id}").json()["error"]["reason"] == "POLICY.CONSENT_EXPIRED"
    assert sandbox.calls == []


@pytest.mark.django_db(transaction=True)
def test_a_decision_and_the_end_of_the_time_at_once_make_one_end(
    enable: Callable[..., Tool], grant: Callable[..., Any], sandbox: ScriptedSandbox, caller: Caller, operator: Person,
    bell: Bell,
) -> None:  # fmt: skip
    writer(enable)
    grant()
    held, consent = hold(caller), Consent.objects.get()
    Invocation.objects.update(held_until=timezone.now())

    def do(number: int) -> Any:
        deny: dict[str, Any] = {"consent_id": consent.pk, "reason": "no", "by": operator.by}
        return sweeper.close_overdue_calls() if number % 2 else consents.deny_consent(**deny)

    at_once(4, do)

    held.refresh_from_db()
    assert held.state in ("expired", "denied")
    assert Fact.objects.filter(invocation_id=held.pk, kind="invocation.ended").count() == 1


@pytest.mark.req("SPEC-9")
def test_the_same_key_while_the_call_is_held_is_told_where_it_waits(
    ready: None, caller: Caller, decide: Callable[..., Consent]
) -> None:
    held = hold(caller, headers=KEY)

    again = caller.invoke(WRITE, {"text": "x"}, headers=KEY, **HOLD)
    assert_problem(again, 409, "IDEMPOTENCY.IN_PROGRESS")
    assert again.headers["Location"] == f"/api/v1/invocations/{held.wire_id}"
    assert_problem(caller.invoke(WRITE, {"text": "y"}, headers=KEY, **HOLD), 422, "IDEMPOTENCY.KEY_REUSED")

    decide("approve", mode="once")
    replayed = caller.invoke(WRITE, {"text": "x"}, headers=KEY)
    assert (replayed.status_code, replayed.headers["Idempotency-Replayed"]) == (200, "true")


def test_two_calls_that_wait_with_the_same_arguments_share_the_request_and_one_runs(
    ready: None, caller: Caller, sandbox: ScriptedSandbox, decide: Callable[..., Consent]
) -> None:
    first, second = hold(caller), hold(caller)
    assert Consent.objects.count() == 1

    decide("approve", mode="once")

    assert_whole(first, state="succeeded")
    assert_whole(second, state="denied")
    assert (second.reason, len(sandbox.calls)) == ("POLICY.CONSENT_VOID", 1)


# What changed while it waited.


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("grant revoked", "AUTH.NO_GRANT"),
        ("tool paused", "TOOL.PAUSED"),
        ("agent disabled", "AUTH.FORBIDDEN"),
        ("new version", "POLICY.CONSENT_VOID"),
        ("policy changed", "POLICY.CONSENT_VOID"),
    ],
)
def test_what_was_taken_back_or_changed_while_the_call_waited_ends_it(
    change: str,
    reason: str,
    ready: None,
    caller: Caller,
    sandbox: ScriptedSandbox,
    operator: Person,
    enable: Callable[..., Tool],
    decide: Callable[..., Consent],
) -> None:
    held = hold(caller)
    match change:
        case "grant revoked":
            assert held.grant_id is not None
            access.revoke_grant(grant_id=held.grant_id, reason="no longer", by=operator.by)
        case "tool paused":
            registry.pause_tool(name=WRITE, reason="wait", by=operator.by)
        case "agent disabled":
            Agent.objects.update(disabled_at=timezone.now())
        case "new version":
            writer(enable, version="1.0.1", **MANIFEST)
        case "policy changed":
            Invocation.objects.update(policy_hash="sha256:" + "0" * 64)

    decide("approve", mode="once")

    assert_whole(held, state="denied")
    assert (held.reason, sandbox.calls) == (reason, [])
    assert Consent.objects.get().state == "approved"  # the decision stands, and nothing was used up


def test_a_consent_for_a_time_goes_ahead_under_the_policy_that_is_in_force(
    ready: None, caller: Caller, decide: Callable[..., Consent]
) -> None:
    held = hold(caller)
    in_force = held.policy_hash
    Invocation.objects.update(policy_hash="sha256:" + "0" * 64)

    decide("approve", mode="period")

    assert_whole(held, state="succeeded")
    assert held.policy_hash == in_force
    resumed = json.loads(bytes(Fact.objects.get(kind="invocation.resumed").leaf))
    assert resumed["data"]["policy"]["hash"] == in_force


def test_a_held_call_takes_its_budget_when_it_resumes(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
    decide: Callable[..., Consent],
) -> None:
    writer(enable)
    grant(calls_limit=1)
    first, second = hold(caller, {"text": "a"}), hold(caller, {"text": "b"})
    one, two = Consent.objects.order_by("pk")

    decide("approve", one, mode="once")
    decide("approve", two, mode="once")

    assert_whole(first, state="succeeded")
    assert_whole(second, state="denied")
    assert second.reason == "QUOTA.BUDGET_EXCEEDED"
    two.refresh_from_db()
    assert two.state == "approved"


def test_a_call_whose_room_another_takes_as_it_resumes_is_denied_and_the_decision_and_the_others_stand(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
    decide: Callable[..., Consent],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer(enable)
    grant(calls_limit=2)
    first, second = hold(caller), hold(caller)
    resumed = iter([first, second])

    def be_overtaken(*args: Any, **more: Any) -> None:
        check_rates(*args, **more)  # what the preflight saw holds no more when the amounts are taken
        if next(resumed) == second:
            BudgetWindow.objects.update(used=F("used") + 1)

    monkeypatch.setattr(held_calls, "check_rates", be_overtaken)

    decide("approve", mode="period")

    assert_whole(first, state="succeeded")
    assert_whole(second, state="denied")
    assert second.reason == "QUOTA.BUDGET_EXCEEDED"
    assert Consent.objects.get().state == "approved"


# Cancelling.


def test_the_agent_takes_back_a_call_that_waits(
    ready: None, caller: Caller, foreign_caller: Caller, operator: Person, sandbox: ScriptedSandbox
) -> None:
    held, consent = hold(caller), Consent.objects.get()
    path = f"/invocations/{held.wire_id}"

    assert foreign_caller.delete(path).status_code == 404
    cancelled = caller.delete(path)

    assert (cancelled.status_code, cancelled.json()["call"]["state"]) == (200, "cancelled")
    assert_whole(held, state="cancelled")
    assert Consent.objects.get().state == "expired"
    assert_problem(caller.delete(path), 409, "STATE.CONFLICT")
    with pytest.raises(Conflict):
        consents.approve_consent(consent_id=consent.pk, reason="late", by=operator.by)
    assert sandbox.calls == []


def test_a_request_that_another_call_waits_for_stays(ready: None, caller: Caller) -> None:
    first, second = hold(caller), hold(caller)

    caller.delete(f"/invocations/{first.wire_id}")

    assert Consent.objects.get().state == "requested"
    second.refresh_from_db()
    assert second.state == "held"


# Asking.


@pytest.mark.req("SPEC-6")
def test_a_refused_call_that_asks_is_told_where_somebody_decides(
    ready: None, caller: Caller, sandbox: ScriptedSandbox, decide: Callable[..., Consent]
) -> None:
    first = caller.invoke(WRITE, {"text": "x"}, **ASK)
    again = caller.invoke(WRITE, {"text": "x"}, **ASK)

    body = assert_problem(first, 403, "POLICY.CONSENT_REQUIRED")
    assert body["error"]["code"] == "NEEDS_USER_CONFIRMATION"
    consent = Consent.objects.get()
    details = body["error"]["details"]
    assert (details["consent"], details["state"]) == (consent.wire_id, "requested")
    assert details["url"].endswith(f"/consents/{consent.wire_id}")
    assert again.json()["error"]["details"]["consent"] == consent.wire_id
    assert consent.invocation_id == row_of(first).pk
    assert kinds_of(row_of(first)) == ["consent.requested", *PAIR]

    decide("approve", mode="once")
    assert_problem(caller.invoke(WRITE, {"text": "changed"}), 403, "POLICY.CONSENT_REQUIRED")
    assert caller.invoke(WRITE, {"text": "x"}).status_code == 200
    assert_problem(caller.invoke(WRITE, {"text": "x"}), 403, "POLICY.CONSENT_REQUIRED")
    assert len(sandbox.calls) == 1


@pytest.mark.parametrize("how", ["ask", "hold"])
def test_nobody_is_asked_about_a_call_that_something_else_forbids(
    how: str,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
) -> None:
    reads = {"fs": [{"path": "/data", "actions": ["read"]}]}
    writer(enable, capabilities=reads)  # the sandbox of the tests provides no files
    grant()

    answer = caller.invoke(WRITE, {"text": "x"}, on_consent=how, purpose="why")

    assert_problem(answer, 403, "SANDBOX.CAPABILITY_BLOCKED")
    assert not Consent.objects.exists()


@pytest.mark.parametrize("how", ["ask", "hold"])
def test_requests_do_not_pile_up_without_end(
    how: str, ready: None, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consents, "MAX_WAITING", 1)
    hold(caller, {"text": "first"})

    refused = caller.invoke(WRITE, {"text": "second"}, on_consent=how, purpose="why")

    assert_problem(refused, 409, "STATE.CONFLICT")
    assert kinds_of(row_of(refused)) == PAIR
    assert Consent.objects.count() == 1
    assert hold(caller, {"text": "first"}).state == "held"  # shares the request that waits


def test_without_a_word_about_it_nobody_is_asked(ready: None, caller: Caller) -> None:
    assert_problem(caller.invoke(WRITE, {"text": "x"}), 403, "POLICY.CONSENT_REQUIRED")
    assert_problem(caller.invoke(WRITE, {"text": "x"}, on_consent="hold"), 422, "SCHEMA.VALIDATION_FAILED")
    assert_problem(
        caller.invoke(WRITE, {"text": "x"}, on_consent="maybe", purpose="x"), 422, "SCHEMA.VALIDATION_FAILED"
    )
    assert not Consent.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.req("TOOLS-19")
def test_of_twenty_calls_at_once_with_a_consent_for_one_exactly_one_runs(
    enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox, caller: Caller,
    operator: Person,
) -> None:  # fmt: skip
    writer(enable)
    grant()
    caller.invoke(WRITE, {"text": "x"}, **ASK)
    consents.approve_consent(consent_id=Consent.objects.get().pk, reason="once", mode="once", by=operator.by)

    done = at_once(20, lambda number: caller.invoke(WRITE, {"text": "x"}).status_code)

    assert sorted(map(str, done)) == ["200"] + ["403"] * 19, done
    assert len(sandbox.calls) == 1
    assert Fact.objects.filter(kind="consent.used").count() == 1
