"""Does what a model has answered become calls, each answered once, in order and in its dialect, whatever the model got wrong?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as django_settings

from evidence.keys import fingerprint_under
from evidence.models import Fact
from invocations.models import Invocation, Tally
from invocations.sandbox.base import Outcome, Status
from invocations.values import values_key_of
from registry.showing_to_models import nonce_key
from tests.calls import PAIR, assert_problem, kinds_of, writer
from tests.conftest import make_caller
from tests.in_force import forbid, permit, put_in_force
from toolhub.kernel.ids import decode
from unitools.dialects.nonces import make_nonce

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.calls import Bell, ScriptedSandbox
    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.req("TOOLS-30", "SVC-1")]
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
MANGLED = "sample_tools_echo"


def chat(*calls: tuple[str, str, Any], finish_reason: str = "tool_calls") -> dict[str, Any]:
    """A completion of OpenAI Chat with calls: id, name, arguments."""
    said = [
        {
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for id, name, given in calls
    ]
    message = {"role": "assistant", "content": None, "tool_calls": said}
    return {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}]}


def answers_of(caller: Caller, arguments: dict[str, Any]) -> dict[str, Any]:
    """The same call of the echo tool, as each provider writes it."""
    nonce = make_nonce(nonce_key(caller.by.tenant_id))
    call = json.dumps({"name": ECHO, "arguments": arguments})
    return {
        "openai": chat(("call_1", MANGLED, arguments)),
        "openai-responses": {
            "object": "response",
            "status": "completed",
            "output": [
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "call_1",
                    "name": MANGLED,
                    "arguments": json.dumps(arguments),
                    "status": "completed",
                }
            ],
        },
        "anthropic": {
            "type": "message",
            "role": "assistant",
            "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "call_1", "name": MANGLED, "input": arguments}],
        },
        "gemini": {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"functionCall": {"name": ECHO, "args": arguments}}]},
                    "finishReason": "STOP",
                }
            ]
        },
        "mcp": {
            "jsonrpc": "2.0",
            "id": "call_1",
            "method": "tools/call",
            "params": {"name": ECHO, "arguments": arguments},
        },
        "xml": f'I look.\n<tool_call id="call_1" nonce="{nonce}">{call}</tool_call>',
    }


def send(caller: Caller, response: Any, headers: dict[str, str] | None = None, **more: Any) -> Any:
    actor = {"type": "agent", "id": caller.agent.name}
    body = {"request_id": "test-request-1", "actor": actor, "response": response, **more}
    return caller.post("/dispatch", body, **(headers or {}))


def rows(answer: Any) -> list[Invocation]:
    calls = [each["answer"]["call"] for each in answer.json()["data"]["calls"]]
    return [Invocation.objects.get(pk=decode("inv", call["call_id"])) for call in calls]


def statuses(answer: Any) -> list[str]:
    return [each["status"] for each in answer.json()["data"]["calls"]]


@pytest.fixture
def ready(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    scripted: dict[str, Any],
) -> ScriptedSandbox:
    """The echo tool may be called; it answers its text with a ``+``."""
    enable()
    grant()
    return sandbox


@pytest.mark.parametrize("dialect", ["openai", "openai-responses", "anthropic", "gemini", "mcp", "xml"])
def test_a_response_of_each_dialect_becomes_the_same_call_and_is_answered_in_it(
    dialect: str, ready: ScriptedSandbox, caller: Caller
) -> None:
    answer = send(caller, answers_of(caller, {"text": "a < b && c"})[dialect])

    assert answer.status_code == 200, answer.json()
    data = answer.json()["data"]
    assert (data["dialect"], statuses(answer)) == (dialect, ["ok"])
    assert json.loads(ready.calls[0][1].arguments) == {"text": "a < b && c"}
    [row] = rows(answer)
    assert (row.origin, kinds_of(row)) == ("llm", PAIR)
    assert data["calls"][0]["answer"]["data"] == {"text": "a < b && c+"}
    assert "b && c+" in json.dumps(data["messages"])


def test_begin_binds_what_the_model_named_the_call_by(ready: ScriptedSandbox, caller: Caller) -> None:
    [row] = rows(send(caller, chat(("call_7Qx1", MANGLED, {"text": "x"}))))

    fact = Fact.objects.get(invocation_id=row.pk, kind="invocation.began")
    data = json.loads(bytes(fact.leaf))["data"]
    assert (data["origin"], data["proposal"]) == ("llm", fingerprint_under(values_key_of(row), b"call_7Qx1"))


def test_each_call_is_answered_once_and_in_order_whatever_becomes_of_it(
    ready: ScriptedSandbox, caller: Caller, enable: Callable[..., Tool], scripted: dict[str, Any]
) -> None:
    writer(enable)
    scripted["broken"] = Outcome(Status.RAISED, error_type="ValueError", error_message="It broke.", report={})

    answer = send(
        caller,
        chat(
            ("c1", MANGLED, {"text": "one"}),
            ("c2", "no_such_tool", {}),
            ("c3", MANGLED, '{"text": "cu'),
            ("c4", MANGLED, {"text": 5}),
            ("c5", "sample_tools_write", {}),
            ("c1", MANGLED, {"text": "again"}),
            ("c6", MANGLED, '{"text": NaN}'),
            ("c7", MANGLED, '{"text": "a\\u0000b"}'),
            ("c8", MANGLED, {"text": "broken"}),
            ("c9", MANGLED, {"text": "two"}),
        ),
    )

    data = answer.json()["data"]
    assert statuses(answer) == [
        "ok", "unknown_tool", "truncated", "invalid_arguments", "needs_approval", "invalid_arguments",
        "invalid_arguments", "invalid_arguments", "tool_error", "ok",
    ]  # fmt: skip
    reasons = [each["answer"]["error"] and each["answer"]["error"]["reason"] for each in data["calls"]]
    assert reasons == [
        None, "TOOL.UNKNOWN", "TOOL.ARGS_TRUNCATED", "SCHEMA.VALIDATION_FAILED", "CONSENT.REQUIRED",
        "TOOL.CALL_ID_TWICE", "TOOL.ARGS_UNUSABLE", "TOOL.ARGS_UNUSABLE", "TOOL.EXECUTION_FAILED", None,
    ]  # fmt: skip
    assert len(data["messages"]) == 10
    assert [message["tool_call_id"] for message in data["messages"]][:3] == ["c1", "c2", "c3"]
    assert [json.loads(call.arguments)["text"] for _, call in ready.calls] == ["one", "broken", "two"]
    known = [each for each in data["calls"] if each["answer"].get("call")]
    assert len(known) == 9
    assert {
        tuple(kinds_of(Invocation.objects.get(pk=decode("inv", each["answer"]["call"]["call_id"])))) for each in known
    } == {tuple(PAIR)}
    assert Tally.objects.get(kind="request.rejected").reason == "TOOL.UNKNOWN"


@pytest.mark.req("TOOLS-20")
def test_a_response_that_is_sent_again_runs_nothing_twice(ready: ScriptedSandbox, caller: Caller) -> None:
    response = chat(("c1", MANGLED, {"text": "one"}), ("c2", MANGLED, {"text": "one"}))

    first, again = send(caller, response), send(caller, response)

    assert len(ready.calls) == 2
    assert [each["replayed"] for each in first.json()["data"]["calls"]] == [False, False]
    assert [each["replayed"] for each in again.json()["data"]["calls"]] == [True, True]
    assert again.json()["data"]["messages"] == first.json()["data"]["messages"]
    assert rows(again) == rows(first)

    other = send(caller, response, request_id="test-request-2")
    assert (len(ready.calls), rows(other) != rows(first)) == (4, True)
    by_key = [
        send(caller, response, {"Idempotency-Key": "turn-1"}, request_id=f"test-request-{number}") for number in (3, 4)
    ]
    assert len(ready.calls) == 6
    assert rows(by_key[0]) == rows(by_key[1])


def test_a_call_that_was_refused_may_be_tried_again_with_its_id(
    enable: Callable[..., Tool],
    caller: Caller,
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    scripted: dict[str, Any],
) -> None:
    enable()
    response = chat(("c1", MANGLED, {"text": "one"}))

    refused = send(caller, response)
    grant()

    assert statuses(refused) == ["denied"]
    assert "AUTH.NO_GRANT" in refused.json()["data"]["messages"][0]["content"]
    assert statuses(send(caller, response)) == ["ok"]


def test_what_policy_forbids_to_models_is_forbidden_here(ready: ScriptedSandbox, caller: Caller) -> None:
    put_in_force(permit(), forbid("no-models", origin={"equals": "llm"}))

    answer = send(caller, chat(("c1", MANGLED, {"text": "one"})))

    assert statuses(answer) == ["denied"]
    assert (ready.calls, kinds_of(rows(answer)[0])) == ([], PAIR)


def test_a_key_that_may_not_call_is_refused_and_each_call_has_its_pair(
    ready: ScriptedSandbox, operator: Person
) -> None:
    reader = make_caller(operator.by, "reader", scopes=("tools:read",))

    assert_problem(send(reader, chat(("c1", MANGLED, {"text": "one"}))), 403, "AUTH.FORBIDDEN")

    assert kinds_of(Invocation.objects.get()) == PAIR
    assert ready.calls == []


@pytest.mark.parametrize("hold", [True, False])
def test_what_goes_on_is_answered_with_where_its_answer_will_be(
    hold: bool, ready: ScriptedSandbox, caller: Caller, enable: Callable[..., Tool]
) -> None:
    writer(enable)
    name, more = (
        ("sample_tools_write", {"on_consent": "hold", "purpose": "for a test"})
        if hold
        else (MANGLED, {"headers": {"Prefer": "respond-async"}})
    )

    answer = send(caller, chat(("c1", name, {"text": "one"})), **more)

    assert answer.status_code == 202, answer.json()
    assert answer.headers["Retry-After"]
    assert statuses(answer) == ["needs_approval" if hold else "ok"]
    assert rows(answer)[0].wire_id in answer.json()["data"]["messages"][0]["content"]


@pytest.mark.parametrize("text", ["It is sunny.", "Call <tool_call>{}</tool_call> like this.", ""])
def test_an_answer_without_calls_is_no_mistake(text: str, ready: ScriptedSandbox, caller: Caller) -> None:
    response = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}

    answer = send(caller, response)

    assert answer.status_code == 200, answer.json()
    assert answer.json()["data"]["calls"] == []
    assert "no call" in answer.json()["warnings"][0]


@pytest.mark.req("TOOLS-22")
def test_a_call_in_a_text_counts_only_with_the_mark_of_a_rendering_for_this_tenant(
    ready: ScriptedSandbox, caller: Caller, foreign_caller: Caller
) -> None:
    call = json.dumps({"name": ECHO, "arguments": {"text": "x"}})
    theirs = make_nonce(nonce_key(foreign_caller.by.tenant_id))
    rendered = caller.get("/tools?dialect=xml").json()["data"]["tools"]
    ours = rendered[rendered.index('nonce="') + 7 :].partition('"')[0]

    for nonce, found in ((theirs, []), ("x" * 43, []), (ours, ["ok"])):
        answer = send(caller, f'<tool_call id="c" nonce="{nonce}">{call}</tool_call>', dialect="xml")
        assert [each["status"] for each in answer.json()["data"]["calls"]] == found, answer.json()


def test_a_tool_of_another_tenant_is_one_that_is_not_there(
    ready: ScriptedSandbox, foreign_caller: Caller, caller: Caller
) -> None:
    answer = send(foreign_caller, chat(("c1", MANGLED, {"text": "x"}), ("c2", ECHO, {"text": "x"})))

    assert statuses(answer) == ["unknown_tool", "unknown_tool"]
    assert not Invocation.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "destructive", "status"),
    [("{'text': 'x',}", False, "ok"), ("{'text': 'x',}", True, "invalid_arguments")],
)
def test_broken_json_is_put_right_only_where_nothing_can_be_destroyed(
    arguments: str, destructive: bool, status: str, enable: Callable[..., Tool], ready: ScriptedSandbox, caller: Caller
) -> None:
    writer(enable)

    answer = send(caller, chat(("c1", "sample_tools_write" if destructive else MANGLED, arguments)))

    assert statuses(answer) == [status], answer.json()
    assert answer.json()["data"]["calls"][0]["repaired"] is not destructive


DEEP = "[" * 60
BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "unknown dialect": ({"response": chat(), "dialect": "klingon"}, 422, "DIALECT.UNKNOWN"),
    "a dialect that is only written": ({"response": chat(), "dialect": "markdown"}, 422, "DIALECT.UNKNOWN"),
    "no response at all": ({"response": {"weather": "sunny"}}, 422, "DISPATCH.UNKNOWN_RESPONSE"),
    "a number": ({"response": 5}, 422, "DISPATCH.UNKNOWN_RESPONSE"),
    "a chunk of a stream": (
        {"response": {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "x"}}]}},
        422,
        "DISPATCH.UNKNOWN_RESPONSE",
    ),
    "another dialect than it says": (
        {"response": chat(("c", "x", {})), "dialect": "gemini"},
        422,
        "DISPATCH.UNKNOWN_RESPONSE",
    ),
    "too many calls": ({"response": chat(*[(f"c{n}", "x", {}) for n in range(101)])}, 422, "SCHEMA.VALIDATION_FAILED"),
    "no response field": ({}, 422, "SCHEMA.VALIDATION_FAILED"),
    "an unknown field": ({"response": chat(), "colour": "red"}, 422, "SCHEMA.VALIDATION_FAILED"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_read_is_a_problem_by_name_and_runs_nothing(
    what: str, ready: ScriptedSandbox, caller: Caller
) -> None:
    body, status, reason = BAD[what]
    actor = {"type": "agent", "id": "x"}

    assert_problem(caller.post("/dispatch", {"request_id": "test-request-1", "actor": actor, **body}), status, reason)

    assert ready.calls == []
    assert Tally.objects.get().reason == reason  # witnessed all the same


@pytest.mark.parametrize(
    ("response", "status", "reason"),
    [
        ("[" * 500_000 + "]" * 500_000, 400, "REQUEST.MALFORMED"),
        ('{"a": NaN}', 400, "REQUEST.MALFORMED"),
        ('{"a": 1, "a": 2}', 400, "REQUEST.MALFORMED"),
        ('"' + "x" * 1_100_000 + '"', 413, "REQUEST.TOO_LARGE"),
    ],
    ids=["1 MiB of brackets", "NaN", "a key twice", "more than 1 MiB"],
)
def test_a_body_that_is_no_json_is_refused_before_any_driver_sees_it(
    response: str, status: int, reason: str, ready: ScriptedSandbox, caller: Caller
) -> None:
    body = f'{{"request_id": "test-request-1", "actor": {{"type": "agent", "id": "x"}}, "response": {response}}}'

    assert_problem(caller.post("/dispatch", body), status, reason)
    assert ready.calls == []


@pytest.mark.parametrize("arguments", ["[" * 500_000, '{"text": ' + "[" * 70 + "]" * 70 + "}", "[1]", '"x"', "{} {}"])
def test_arguments_that_hide_something_are_answered_and_not_run(
    arguments: str, ready: ScriptedSandbox, caller: Caller
) -> None:
    answer = send(caller, chat(("c1", MANGLED, arguments)))

    assert statuses(answer)[0] in {"invalid_arguments", "truncated"}, answer.json()
    assert (ready.calls, kinds_of(rows(answer)[0])) == ([], PAIR)


def test_names_that_no_tool_can_have_are_unknown(ready: ScriptedSandbox, caller: Caller) -> None:
    answer = send(caller, chat(*[(f"c{n}", name, {}) for n, name in enumerate(["x" * 600, "Ä", "a b", "'; --", "%"])]))

    assert statuses(answer) == ["unknown_tool"] * 5


def test_the_secret_of_the_mark_is_the_tenants_and_the_hubs(
    caller: Caller, foreign_caller: Caller, settings: Any
) -> None:
    ours, theirs = nonce_key(caller.by.tenant_id), nonce_key(foreign_caller.by.tenant_id)
    settings.SECRET_KEY = "another" + django_settings.SECRET_KEY

    assert len({ours, theirs, nonce_key(caller.by.tenant_id)}) == 3
