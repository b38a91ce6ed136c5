"""Idempotency: is a call with a key made once, however often it is sent?"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError, connection, transaction

from access import services as access
from access.consents import services as consents
from evidence.models import Fact, Snapshot
from invocations import calls, services
from invocations.accept import earlier_requests
from invocations.answer.wake_ups import InProcessWaker
from invocations.models import Attempt, Invocation
from invocations.queue import outbox, sweeper
from invocations.sandbox.base import RunOutcome, RunStatus
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import new_id
from kernel.observability.log_context import bind_log_context, read_log_field
from registry.tools.lifecycle import deprecate_tool
from tests.conftest import make_caller
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
ECHO = "sample.tools.echo"
KEY = {"Idempotency-Key": "order-1"}


@pytest.fixture
def ready(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    enable(idempotency="keyed")
    grant()
    sandbox.outcome = RunOutcome(
        RunStatus.OK, value={"b": 1.5, "a": ["é", 10**20, {"z": None}]}, report={"ttl_seconds": 30}
    )


@pytest.mark.req("SPEC-9", "TOOLS-20")
def test_the_same_call_again_is_answered_byte_for_byte_without_a_run(
    ready: None, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    first = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    second = caller.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert first.status_code == second.status_code == 200
    assert second.content == first.content
    assert second.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert len(sandbox.calls) == 1
    assert kinds_of(row_of(first)) == PAIR
    replayed = Fact.objects.get(kind="invocation.replayed")
    assert replayed.subject == row_of(first).wire_id


def plan_of(query: str, parameters: tuple[Any, ...]) -> str:
    """As it is planned for any value; the rows are one agent's, and none is another."""
    made = Invocation.objects.get()
    rows = [
        Invocation(**{field.attname: getattr(made, field.attname) for field in Invocation._meta.concrete_fields})
        for _ in range(300)
    ]
    for number, row in enumerate(rows):
        row.id, row.request_id = new_id(), f"request-{number}"
    with transaction.atomic(), connection.cursor() as cursor:
        Invocation.objects.bulk_create(rows)
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":
            places = [f"${number + 1}" for number in range(len(parameters))]
            cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
            cursor.execute(f"PREPARE asked AS {query % tuple(places)}")
            cursor.execute("EXPLAIN EXECUTE asked (" + ", ".join(["%s"] * len(parameters)) + ")", parameters)
        else:
            cursor.execute(f"EXPLAIN QUERY PLAN {query}", parameters)
        found = " ".join(str(row) for row in cursor.fetchall())
        if connection.vendor == "postgresql":
            cursor.execute("DEALLOCATE asked")  # which would outlive the transaction
        transaction.set_rollback(True)  # they have no Begin
    return found


@pytest.mark.req("SPEC-9")
def test_an_earlier_call_with_a_request_id_is_found_by_an_index_whatever_the_agent_has_called(
    ready: None, caller: Caller
) -> None:
    first = caller.invoke(ECHO, {"text": "a"}, request_id="order-2026-11")
    query = earlier_requests.OF_REQUEST.make(agent=row_of(first).agent_id, request="order-2026-11", before=new_id())

    assert "invocation_of_request" in plan_of(*query.query.sql_with_params())


@pytest.mark.req("SPEC-9")
def test_a_call_goes_on_when_nobody_can_say_whether_its_request_id_was_used_before(
    ready: None, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier_requests.log, "warning", logged := Mock())
    gone = Mock(side_effect=OperationalError("the server is gone"))
    monkeypatch.setattr(earlier_requests, "OF_REQUEST", Mock(all=gone, read=gone))

    answer = caller.invoke(ECHO, {"text": "a"})

    assert answer.status_code == 200
    assert answer.json()["warnings"] == []
    logged.assert_called_once()


def test_a_failure_is_answered_again_as_it_was(ready: None, caller: Caller, sandbox: ScriptedSandbox) -> None:
    sandbox.outcome = RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message="x")

    first = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    second = caller.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert first.status_code == second.status_code == 502
    assert second.content == first.content
    assert len(sandbox.calls) == 1


@pytest.mark.req("SPEC-9")
def test_a_key_in_the_envelope_is_the_same_key(ready: None, caller: Caller, sandbox: ScriptedSandbox) -> None:
    caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    caller.invoke(ECHO, {"text": "x"}, idempotency_key=KEY["Idempotency-Key"])

    assert len(sandbox.calls) == 1
    key = sandbox.calls[0][1].context["idempotency_key"]
    assert key.startswith("idk_")  # not the caller's own, which another caller may use too


@pytest.mark.req("SPEC-9")
@pytest.mark.parametrize("changes", [{"arguments": {"text": "y"}}, {"dry_run": True}])
def test_a_key_that_was_used_for_something_else_is_refused(
    changes: dict[str, Any], ready: None, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    first = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    changed: dict[str, Any] = {"arguments": {"text": "x"}} | changes
    second = caller.invoke(ECHO, changed.pop("arguments"), headers=KEY, **changed)

    error = second.json()["error"]
    assert (second.status_code, error["code"], error["reason"]) == (422, "CONFLICT", "IDEMPOTENCY.KEY_REUSED")
    assert error["details"]["first_call"] == first.json()["call"]["call_id"]
    assert len(sandbox.calls) == 1
    assert [kind.rpartition(".")[2] for kind in kinds_of(row_of(second))] == ["began", "ended"]


@pytest.mark.req("SPEC-9")
def test_a_first_call_that_still_runs_is_said(ready: None, caller: Caller, bell: Bell) -> None:
    first = caller.invoke(ECHO, {"text": "x"}, headers=KEY | {"Prefer": "respond-async"})

    second = caller.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert (second.status_code, second.json()["error"]["reason"]) == (409, "IDEMPOTENCY.IN_PROGRESS")
    assert second.headers["Retry-After"] == "1"
    assert second.json()["error"]["details"]["first_call"] == first.json()["call"]["call_id"]
    bell.deliver()
    assert caller.invoke(ECHO, {"text": "x"}, headers=KEY).status_code == 200


@pytest.mark.req("SPEC-9")
def test_keys_of_different_users_and_tools_do_not_meet(
    ready: None, caller: Caller, enable: Callable[..., Tool], sandbox: ScriptedSandbox
) -> None:
    enable("plans")
    for envelope in ({}, {"user_id": "ann"}, {"user_id": "bob"}):
        assert caller.invoke(ECHO, {"text": "x"}, headers=KEY, **envelope).status_code == 200
    caller.invoke("sample.tools.plans", {"text": "x"}, headers=KEY)

    assert len(sandbox.calls) == 4
    assert "ann" not in json.dumps(list(Invocation.objects.values_list("user_fingerprint", flat=True)))


@pytest.mark.req("TOOLS-22")
def test_keys_of_different_agents_do_not_meet(
    ready: None, caller: Caller, operator: Person, sandbox: ScriptedSandbox
) -> None:
    other = make_caller(operator.by, "other")
    access.give_grant(agent_id=other.agent.pk, tools="*", reason="x", by=operator.by)

    caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    other.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert len(sandbox.calls) == 2


def test_a_refused_call_leaves_its_key_free(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable(idempotency="keyed")
    refused = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    grant()

    allowed = caller.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert (refused.status_code, allowed.status_code) == (403, 200)


def test_a_call_that_never_began_leaves_its_key_free(
    ready: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, sandbox.outcome = sandbox.outcome, RunOutcome(RunStatus.START_FAILED, error_message="no engine")
    no_box = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    sandbox.outcome = good
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "send_wake_up", Mock(side_effect=ConnectionError("no broker")))
        no_broker = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    bell.answers = False
    asked = caller.invoke(ECHO, {"text": "x"}, headers=KEY | {"Prefer": "respond-async"})
    bell.rung.clear()
    Invocation.objects.filter(state="queued").update(queue_deadline_at=asked.json()["call"]["created_at"])
    sweeper.sweep_once()
    bell.answers = True

    answered = caller.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert [each.status_code for each in (no_box, no_broker, asked, answered)] == [503, 503, 202, 200]
    assert "Idempotency-Replayed" not in answered.headers


def test_an_answer_in_another_currency_is_another_call(ready: None, caller: Caller) -> None:
    caller.invoke(ECHO, {"text": "x"}, headers=KEY, currency="EUR")

    other = caller.invoke(ECHO, {"text": "x"}, headers=KEY, currency="USD")

    assert (other.status_code, other.json()["error"]["reason"]) == (422, "IDEMPOTENCY.KEY_REUSED")


def test_who_lost_the_grant_gets_no_earlier_answer(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    caller: Caller,
    operator: Person,
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable(idempotency="keyed")
    given = grant()
    caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    access.revoke_grant(grant_id=given.pk, reason="for a test", by=operator.by)

    with bind_log_context():
        again = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
        logged = read_log_field("call_id")

    assert (again.status_code, again.json()["error"]["reason"]) == (403, "AUTH.NO_GRANT")
    assert again.json()["data"] is None
    assert kinds_of(row_of(again)) == PAIR
    assert logged == row_of(again).wire_id


def test_who_lost_the_consent_gets_no_earlier_answer(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    caller: Caller,
    operator: Person,
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable(idempotency="keyed", consent={"required": True})
    grant()
    asked = consents.request_consent(tool=ECHO, versions="^1", purpose="a test", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=asked.pk, reason="for a test", by=operator.by)
    first = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    consents.revoke_consent(consent_id=asked.pk, reason="for a test", by=operator.by)

    again = caller.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert (first.status_code, again.status_code) == (200, 403)
    assert again.json()["error"]["reason"] == "POLICY.CONSENT_REQUIRED"
    assert len(sandbox.calls) == 1


@pytest.mark.parametrize("lost", ["agent", "key"])
def test_an_agent_that_was_disabled_or_lost_its_key_since_it_was_authenticated_gets_no_earlier_answer(
    lost: str, ready: None, caller: Caller, operator: Person, sandbox: ScriptedSandbox
) -> None:
    envelope = RequestEnvelope(request_id="once", actor={"type": "agent", "id": "x"}, idempotency_key="order-1")
    call = calls.CallRequest(ECHO, {"text": "x"}, envelope)
    first = services.invoke_tool(call, by=caller.by)
    assert (first.invocation.state, first.replayed) == ("succeeded", False)
    match lost:
        case "agent":
            access.disable_agent(agent_id=caller.agent.pk, reason="for a test", by=operator.by)
        case "key":
            assert caller.by.key_id is not None
            access.revoke_key(key_id=caller.by.key_id, by=operator.by)

    with pytest.raises(calls.CallRefused, match=f"^The {lost} .*(disabled|revoked)") as refused:
        services.invoke_tool(call, by=caller.by)

    assert refused.value.problem.reason == "AUTH.FORBIDDEN"
    assert kinds_of(refused.value.invocation) == PAIR
    assert len(sandbox.calls) == 1
    assert not Fact.objects.filter(kind="invocation.replayed").exists()


def test_the_order_of_names_in_the_arguments_does_not_matter(
    ready: None, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    caller.invoke(ECHO, {"text": "x", "n": 1}, headers=KEY)
    second = caller.invoke(ECHO, {"n": 1, "text": "x"}, headers=KEY)

    assert second.headers["Idempotency-Replayed"] == "true"


@pytest.mark.req("SPEC-9", "TOOLS-20")
@pytest.mark.django_db(transaction=True)
def test_eight_calls_at_once_with_one_key_run_once(ready: None, caller: Caller, sandbox: ScriptedSandbox) -> None:
    answers = at_once(8, lambda number: caller.invoke(ECHO, {"text": "x"}, headers=KEY))

    found = [(answer.status_code, answer.json()["error"]) for answer in answers]  # type: ignore[union-attr]
    reasons = {error["reason"] for _, error in found if error}
    assert reasons <= {"IDEMPOTENCY.IN_PROGRESS"}
    assert (200, None) in found
    assert len(sandbox.calls) == 1
    assert Attempt.objects.count() == 1
    assert Invocation.objects.filter(idempotency_key="order-1").count() == 1
    for invocation in Invocation.objects.all():
        assert kinds_of(invocation) == PAIR


@pytest.mark.req("SPEC-9")
def test_an_answer_stays_the_same_when_its_tool_is_deprecated_since(
    ready: None, caller: Caller, operator: Person
) -> None:
    first = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    deprecate_tool(
        name=ECHO,
        reason="There is a better one.",
        sunset_on=datetime.now(UTC).date() + timedelta(days=30),
        by=operator.by,
    )

    second = caller.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert second.content == first.content
    assert "Deprecation" in second.headers  # the caller is told all the same
    assert "There is a better one." in caller.invoke(ECHO, {"text": "y"}).json()["warnings"][0]


@pytest.mark.req("SPEC-9")
def test_an_answer_whose_values_were_erased_is_gone(ready: None, caller: Caller, sandbox: ScriptedSandbox) -> None:
    first = row_of(caller.invoke(ECHO, {"text": "x"}, headers=KEY))
    Snapshot.objects.filter(invocation_id=first.pk, kind="output").delete()

    assert_problem(caller.invoke(ECHO, {"text": "x"}, headers=KEY), 410, "ANSWER.ERASED")
    assert_problem(caller.get(f"/invocations/{first.wire_id}"), 410, "ANSWER.ERASED")
    assert len(sandbox.calls) == 1


@pytest.mark.req("SPEC-9", "TOOLS-20")
@pytest.mark.parametrize("days", [1, 30])
def test_a_key_is_kept_as_long_as_the_tool_says_and_then_makes_a_new_call(
    days: int,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
) -> None:
    enable(idempotency="keyed", idempotency_keep_seconds=days * 86_400)
    grant()
    first = row_of(caller.invoke(ECHO, {"text": "x"}, headers=KEY))
    assert first.key_until is not None
    assert abs(first.key_until - first.created_at - timedelta(days=days)) < timedelta(
        minutes=1
    )  # by the database's clock
    assert row_of(caller.invoke(ECHO, {"text": "x"}, headers=KEY)) == first

    Invocation.objects.update(key_until=first.created_at)  # the time has passed
    second = caller.invoke(ECHO, {"text": "other"}, headers=KEY)

    assert second.status_code == 200
    assert row_of(second) != first
    assert len(sandbox.calls) == 2
    assert (
        len({run.context["idempotency_key"] for _, run in sandbox.calls}) == 2
    )  # or the tool would take it for the first
    assert caller.get(f"/invocations/{first.wire_id}").status_code == 200


def test_one_that_lost_the_race_for_a_key_is_not_said_to_have_lacked_a_consent(
    ready: None, caller: Caller, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    bell.answers = False
    caller.invoke(ECHO, {"text": "x"}, headers=KEY | {"Prefer": "respond-async"})
    find, looked = services.find_earlier, iter([True])
    monkeypatch.setattr(
        services, "find_earlier", lambda *args, **more: None if next(looked, False) else find(*args, **more)
    )

    second = caller.invoke(ECHO, {"text": "x"}, headers=KEY)

    assert_problem(second, 409, "IDEMPOTENCY.IN_PROGRESS")
    assert "refused_at" not in second.json()["call"]
    began = Fact.objects.get(invocation_id=row_of(second).pk, kind="invocation.began")
    assert b"refused_at" not in bytes(began.leaf)


def test_who_waits_for_a_call_that_could_not_be_rung_for_is_forgotten(
    ready: None, caller: Caller, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    waker = InProcessWaker()
    monkeypatch.setattr(calls, "get_waker", lambda: waker)

    def broken(invocation_id: object, work_class: str) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(outbox, "send_wake_up", broken)

    assert caller.invoke(ECHO, {"text": "x"}).status_code == 503
    assert waker._waiters == {}


@pytest.mark.req("SPEC-9")
def test_who_prefers_to_wait_gets_the_answer_of_the_first_call(
    ready: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    bell.answers = False
    first = caller.invoke(ECHO, {"text": "x"}, headers=KEY | {"Prefer": "respond-async"})
    at_once = caller.invoke(ECHO, {"text": "x"}, headers=KEY)
    assert_problem(at_once, 409, "IDEMPOTENCY.IN_PROGRESS")
    assert at_once.headers["Location"] == first.headers["Location"]
    bell.answers = True

    waited = caller.invoke(ECHO, {"text": "x"}, headers=KEY | {"Prefer": "wait=5"})

    assert (waited.status_code, waited.headers["Idempotency-Replayed"]) == (200, "true")
    assert row_of(waited) == row_of(first)
    assert len(sandbox.calls) == 1
    assert Fact.objects.filter(kind="invocation.replayed").count() == 1
