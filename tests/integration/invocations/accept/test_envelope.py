"""Envelope: is what an envelope says read, refused by name where it is wrong, kept, and told to the tool; and what does its
answer say?
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import F

from evidence.models import Fact
from invocations.models import Invocation
from tests.support.calls import assert_problem, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
ECHO = "sample.tools.echo"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def ready(
    enable: Callable[..., Any], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> ScriptedSandbox:
    enable()
    grant()
    return sandbox


@pytest.mark.req("SPEC-1")
def test_what_the_caller_says_of_itself_and_of_its_place_reaches_the_tool(
    ready: ScriptedSandbox, caller: Caller
) -> None:
    place: dict[str, Any] = {
        "locale": "de-DE",
        "currency": "EUR",
        "timezone": "Europe/Berlin",
        "session_id": "session-1",
    }
    client = {"app": "shop", "version": "3", "model": "provider:model"}

    answer = caller.invoke(ECHO, {}, client=client, user_id="ann@example.org", **place)

    assert answer.status_code == 200, answer.json()
    context = ready.calls[0][1].context
    assert context | place | {"client": client, "request_id": "test-request-1"} == context
    assert "ann@example.org" not in json.dumps(context)  # whom the agent acts for is nothing that tools are told


@pytest.mark.req("SPEC-1")
def test_an_envelope_may_name_its_version_and_one_that_nobody_here_reads_is_refused(
    ready: ScriptedSandbox, caller: Caller
) -> None:
    assert caller.invoke(ECHO, {}, envelope="1").status_code == 200

    body = assert_problem(caller.invoke(ECHO, {}, envelope="2"), 422, "SCHEMA.VALIDATION_FAILED")

    [finding] = body["error"]["details"]["findings"]
    assert finding == {"pointer": "/envelope", "message": "This hub reads and writes version 1 of the envelope only."}


@pytest.mark.req("SPEC-1")
@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("actor", {"type": "agent", "id": "a", "role": "root"}, "/actor/role"),
        ("client", {"app": "a", "platform": "x"}, "/client/platform"),
        ("trace", {"span_id": "0123456789abcdef", "trace_id": TRACE}, "/trace/trace_id"),
        ("time_zone", "UTC", "/time_zone"),
    ],
)
def test_a_field_that_does_not_exist_is_refused_by_its_name_at_every_level(
    field: str, value: Any, pointer: str, ready: ScriptedSandbox, caller: Caller
) -> None:
    body = assert_problem(caller.invoke(ECHO, {}, **{field: value}), 422, "SCHEMA.VALIDATION_FAILED")

    assert pointer in {finding["pointer"] for finding in body["error"]["details"]["findings"]}
    assert ready.calls == []


@pytest.mark.req("SPEC-9", "TOOLS-20")
@pytest.mark.parametrize("again", ['"order-7"', "order-7", ' "order-7" '])
def test_a_key_means_the_same_with_and_without_the_quotation_marks_of_its_draft(
    again: str, ready: ScriptedSandbox, caller: Caller
) -> None:
    first = caller.invoke(ECHO, {}, idempotency_key="order-7")

    second = caller.invoke(ECHO, {}, headers={"Idempotency-Key": again})

    assert second.headers["Idempotency-Replayed"] == "true"
    assert row_of(second) == row_of(first)


@pytest.mark.req("SPEC-9")
@pytest.mark.parametrize("key", ['"', '""', '"a"b"', '"a\\b"', '"a";v=1', '"a b"', "a b", "é", "k" * 256])
def test_a_key_of_another_shape_is_refused_by_name(key: str, ready: ScriptedSandbox, caller: Caller) -> None:
    answer = caller.invoke(ECHO, {}, headers={"Idempotency-Key": key})

    body = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")
    assert [finding["pointer"] for finding in body["error"]["details"]["findings"]] == ["/idempotency_key"]
    assert ready.calls == []


@pytest.mark.req("SPEC-1", "SPEC-3")
def test_a_call_goes_on_with_the_trace_of_its_caller_and_its_answer_names_it(
    instrumented: None, ready: ScriptedSandbox, caller: Caller
) -> None:
    spans = {"span_id": "00f067aa0ba902b7", "parent_span_id": "0123456789abcdef"}

    answer = caller.invoke(ECHO, {}, headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}, trace=spans)

    assert answer.status_code == 200, answer.json()
    assert answer.json()["call"]["trace_id"] == TRACE
    assert answer.headers["traceparent"].split("-")[1] == TRACE
    assert ready.calls[0][1].context["traceparent"].split("-")[1] == TRACE
    row = row_of(answer)
    facts = Fact.objects.filter(invocation_id=row.pk)
    assert {fact.trace_id for fact in facts} == {TRACE}
    assert json.loads(bytes(facts.get(kind="invocation.began").leaf))["data"]["caller_trace"] == spans


@pytest.mark.req("SPEC-5")
def test_an_answer_may_be_kept_for_as_long_as_it_is_fresh_and_no_longer_when_it_is_read_again(
    caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable(ttl_seconds=60, quotes=["price"])
    grant()

    made = caller.invoke(ECHO, {}, idempotency_key="order-7")
    Invocation.objects.update(finished_at=F("finished_at") - timedelta(seconds=45))
    read = caller.get(f"/invocations/{row_of(made).wire_id}")
    replayed = caller.invoke(ECHO, {}, idempotency_key="order-7")
    Invocation.objects.update(finished_at=F("finished_at") - timedelta(hours=1))
    stale = caller.get(f"/invocations/{row_of(made).wire_id}")

    assert made.headers["Cache-Control"] == "private, max-age=60"
    for later in (read, replayed):
        kind, left = later.headers["Cache-Control"].split("=")
        assert (kind, int(left) <= 15) == ("private, max-age", True)
        assert later.json()["ttl_seconds"] == 60  # what was promised when it was given
    assert stale.headers["Cache-Control"] == "private, max-age=0"


@pytest.mark.req("SPEC-5")
def test_what_says_nothing_of_its_freshness_is_not_kept(ready: ScriptedSandbox, caller: Caller) -> None:
    made = caller.invoke(ECHO, {})
    refused = caller.invoke(ECHO, {"text": 5})

    assert made.headers["Cache-Control"] == refused.headers["Cache-Control"] == "no-store"
    assert caller.get(f"/invocations/{row_of(made).wire_id}").headers["Cache-Control"] == "no-store"
