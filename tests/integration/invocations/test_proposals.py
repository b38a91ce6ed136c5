"""Proposals: does what a model proposes enter the same steps as a call over the API, whatever it got wrong?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.keys.subject_keys import fingerprint_under
from evidence.models import Fact
from invocations.value_keys import find_values_key
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of, writer
from tests.support.policies_in_force import forbid, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"


def propose(caller: Caller, arguments: Any, name: str = ECHO, call_id: str = "call_7Qx1", **envelope: Any) -> Any:
    said = {"name": name, "call_id": call_id, "arguments": arguments}
    actor = {"type": "agent", "id": caller.agent.name}
    return caller.post("/proposals", {"request_id": "test-request-1", "actor": actor, **said, **envelope})


def begin_of(answer: Any) -> dict[str, Any]:
    fact = Fact.objects.get(invocation_id=row_of(answer).pk, kind__endswith=".began")
    data: dict[str, Any] = json.loads(bytes(fact.leaf))["data"]
    return data


@pytest.mark.req("TOOLS-30", "TOOLS-13", "SVC-1")
@pytest.mark.parametrize("arguments", [{"text": "hello"}, '{"text": "hello"}', ' {"text":\n"hello"} '])
def test_a_proposal_becomes_a_call_of_origin_llm_whichever_way_its_arguments_are_written(
    arguments: Any,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable()
    grant()

    answer = propose(caller, arguments)

    assert answer.status_code == 200, answer.json()
    assert answer.headers["Location"].endswith(row_of(answer).wire_id)
    assert json.loads(sandbox.calls[0][1].arguments) == {"text": "hello"}
    assert row_of(answer).origin == "llm"
    assert kinds_of(row_of(answer)) == PAIR
    begin = begin_of(answer)
    key = find_values_key(row_of(answer))
    assert (begin["origin"], begin["proposal"]) == ("llm", fingerprint_under(key, b"call_7Qx1"))


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_no_arguments_may_be_written_as_an_empty_text(
    arguments: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable()
    grant()

    assert propose(caller, arguments).status_code == 200
    assert json.loads(sandbox.calls[0][1].arguments) == {}


@pytest.mark.req("TOOLS-30", "SVC-3", "TOOLS-18")
@pytest.mark.parametrize(
    "arguments",
    ['{"text": "hel', "null", "[1]", "5", '"text"', '{"a": 1, "a": 2}', "NaN", "[" * 100, [1], 5, False, {"text": 5}],
)
def test_arguments_that_a_model_got_wrong_are_refused_by_the_schema_with_a_pair(
    arguments: Any,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable()
    grant()

    answer = propose(caller, arguments)

    body = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")
    assert body["call"]["refused_at"] == "input_schema"
    assert kinds_of(row_of(answer)) == PAIR
    assert sandbox.calls == []


@pytest.mark.req("TOOLS-15", "TOOLS-19", "TOOLS-30")
@pytest.mark.parametrize("what", ["no grant", "no consent", "forbidden to models"])
def test_a_proposal_is_refused_where_the_same_call_would_be(
    what: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable()
    writer(enable)
    if what != "no grant":
        grant()
    if what == "forbidden to models":
        put_in_force(permit(), forbid("no-models", origin={"equals": "llm"}))
    name = WRITE if what == "no consent" else ECHO

    proposed, called = propose(caller, {}, name), caller.invoke(name, {})

    assert kinds_of(row_of(proposed)) == PAIR
    if what == "forbidden to models":
        assert_problem(proposed, 403, "POLICY.DENY_TOOL")
        assert called.status_code == 200
    else:
        assert proposed.json()["error"]["reason"] == called.json()["error"]["reason"]
        assert proposed.json()["call"]["refused_at"] == called.json()["call"]["refused_at"]
        assert sandbox.calls == []


@pytest.mark.req("TOOLS-30", "TOOLS-20")
def test_a_proposal_that_is_sent_again_with_its_key_is_answered_again(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()

    first = propose(caller, "{}", idempotency_key="turn-3")
    again = propose(caller, {}, idempotency_key="turn-3")

    assert again.headers["Idempotency-Replayed"] == "true"
    assert row_of(again) == row_of(first)
    assert len(sandbox.calls) == 1


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"name": None}, "/name"),
        ({"call_id": "ann@example.org"}, "/call_id"),
        ({"arguments": None}, "/arguments"),
        ({"type": "function"}, "/type"),
        ({"request_id": None}, "/request_id"),
    ],
)
def test_a_proposal_of_another_shape_is_refused_by_the_name_of_the_field(
    changes: dict[str, Any], pointer: str, caller: Caller, enable: Callable[..., Tool]
) -> None:
    enable()

    body = assert_problem(propose(caller, **{"arguments": {}, **changes}), 422, "SCHEMA.VALIDATION_FAILED")

    assert pointer in {finding["pointer"] for finding in body["error"]["details"]["findings"]}
