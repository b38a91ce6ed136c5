"""Dispatch: does what a model has answered become calls, each answered once, in order and in its dialect, whatever the model got
wrong?
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings as django_settings

from evidence.keys.subject_keys import fingerprint_under
from evidence.models import Fact
from invocations import services
from invocations.dispatch import api as dispatch_api
from invocations.models import Invocation, Tally
from invocations.queue import claims
from invocations.run import execution
from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.value_keys import find_values_key
from kernel.ids import decode
from registry.discovery.tool_specs import nonce_key
from tests.conftest import make_caller
from tests.support.calls import PAIR, assert_problem, kinds_of, writer
from tests.support.dispatches import ECHO, MANGLED, chat, rows, send, statuses
from tests.support.model_responses import WHOLE
from tests.support.model_streams import STREAMS, event_text
from tests.support.policies_in_force import forbid, permit, put_in_force
from unitools.dialects.nonces import make_nonce

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db


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
        "bedrock": {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [{"toolUse": {"toolUseId": "call_1", "name": MANGLED, "input": arguments}}],
                }
            },
            "stopReason": "tool_use",
        },
        "langchain": {
            "type": "ai",
            "content": "",
            "response_metadata": {"finish_reason": "tool_calls"},
            "tool_calls": [{"type": "tool_call", "id": "call_1", "name": MANGLED, "args": arguments}],
        },
        "mcp": {
            "jsonrpc": "2.0",
            "id": "call_1",
            "method": "tools/call",
            "params": {"name": ECHO, "arguments": arguments},
        },
        "xml": f'I look.\n<tool_call id="call_1" nonce="{nonce}">{call}</tool_call>',
    }


@pytest.mark.req("SVC-1", "TOOLS-30")
@pytest.mark.parametrize(
    "dialect", ["openai", "openai-responses", "anthropic", "gemini", "bedrock", "langchain", "mcp", "xml"]
)
def test_a_response_of_each_dialect_becomes_the_same_call_and_is_answered_in_it(
    dialect: str, ready_for_models: ScriptedSandbox, caller: Caller
) -> None:
    answer = send(caller, answers_of(caller, {"text": "a < b && c"})[dialect])

    assert answer.status_code == 200, answer.json()
    data = answer.json()["data"]
    assert (data["dialect"], statuses(answer)) == (dialect, ["ok"])
    assert json.loads(ready_for_models.calls[0][1].arguments) == {"text": "a < b && c"}
    [row] = rows(answer)
    assert (row.origin, kinds_of(row)) == ("llm", PAIR)
    assert data["calls"][0]["answer"]["data"] == {"text": "a < b && c+"}
    assert "b && c+" in json.dumps(data["messages"])


@pytest.mark.req("CONN-5", "TOOLS-30")
@pytest.mark.parametrize("dialect", STREAMS)
def test_a_stream_becomes_the_same_call_and_one_that_broke_off_becomes_none(
    dialect: str, ready_for_models: ScriptedSandbox, caller: Caller
) -> None:
    whole = WHOLE[dialect]([(ECHO if dialect == "gemini" else MANGLED, {"text": "a < b && c"})])
    chunks = list(STREAMS[dialect](whole))
    text = event_text(chunks, dialect=dialect)

    answer = send(caller, text)
    broken = send(caller, text[: len(text) // 2], request_id="turn-0002")

    assert (answer.json()["data"]["dialect"], statuses(answer)) == (dialect, ["ok"])
    assert statuses(send(caller, chunks, request_id="turn-0003")) == ["ok"]
    assert_problem(broken, 422, "DISPATCH.UNKNOWN_RESPONSE")
    assert len(ready_for_models.calls) == 2


@pytest.mark.req("CONN-5", "TOOLS-30")
def test_a_call_in_a_text_is_made_where_the_caller_trusts_the_form_and_else_said_what_it_looks_like(
    ready_for_models: ScriptedSandbox, caller: Caller
) -> None:
    bare = f"<function={MANGLED}>\n<parameter=text>\n7\n</parameter>\n</function>"
    text = f"I look.\n<tool_call>\n{bare}\n</tool_call>"

    untrusted = send(caller, text).json()
    trusted = send(caller, text, request_id="turn-0002", trust_text="hermes")

    assert untrusted["data"]["calls"] == []
    assert "trust_text='hermes'" in untrusted["warnings"][1]
    assert (trusted.json()["data"]["dialect"], statuses(trusted)) == ("text", ["ok"])
    assert [json.loads(call.arguments) for _, call in ready_for_models.calls] == [{"text": "7"}]
    assert "<tool_response>" in trusted.json()["data"]["messages"]
    assert send(caller, text, request_id="turn-0003", trust_text="hermetic").status_code == 422


@pytest.mark.req("TOOLS-6", "TOOLS-30")
def test_the_model_of_a_response_is_the_one_that_calls_unless_the_client_names_another(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, bell: Bell, scripted: dict[str, Any]
) -> None:
    enable("echo", provider_compat={"models": ["openai:gpt-4o"]})
    grant()

    def asked(number: int, **said: Any) -> list[str]:
        return statuses(
            send(caller, chat((f"call_{number}", MANGLED, {"text": "x"})), request_id=f"turn-000{number}", **said)
        )

    by_another = {"client": {"app": "test", "model": "claude-sonnet-4-5"}}
    assert asked(1, model="claude-sonnet-4-5") == asked(2, model="gpt-4o", **by_another) != ["ok"]
    assert asked(3, model="gpt-4o") == ["ok"]


@pytest.mark.req("TOOLS-18", "TOOLS-30")
def test_begin_binds_what_the_model_named_the_call_by(ready_for_models: ScriptedSandbox, caller: Caller) -> None:
    [row] = rows(send(caller, chat(("call_7Qx1", MANGLED, {"text": "x"}))))

    fact = Fact.objects.get(invocation_id=row.pk, kind="invocation.began")
    data = json.loads(bytes(fact.leaf))["data"]
    assert (data["origin"], data["proposal"]) == ("llm", fingerprint_under(find_values_key(row), b"call_7Qx1"))


@pytest.mark.req("TOOLS-30")
def test_each_call_is_answered_once_and_in_order_whatever_becomes_of_it(
    ready_for_models: ScriptedSandbox, caller: Caller, enable: Callable[..., Tool], scripted: dict[str, Any]
) -> None:
    writer(enable)
    scripted["broken"] = RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message="It broke.", report={})

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
        None, "TOOL.UNKNOWN", "TOOL.ARGS_TRUNCATED", "SCHEMA.VALIDATION_FAILED", "POLICY.CONSENT_REQUIRED",
        "TOOL.CALL_ID_TWICE", "TOOL.ARGS_UNUSABLE", "TOOL.ARGS_UNUSABLE", "TOOL.EXECUTION_FAILED", None,
    ]  # fmt: skip
    assert len(data["messages"]) == 10
    assert [message["tool_call_id"] for message in data["messages"]][:3] == ["c1", "c2", "c3"]
    assert [json.loads(call.arguments)["text"] for _, call in ready_for_models.calls] == ["one", "broken", "two"]
    known = [each for each in data["calls"] if each["answer"].get("call")]
    assert len(known) == 9
    assert {
        tuple(kinds_of(Invocation.objects.get(pk=decode("inv", each["answer"]["call"]["call_id"])))) for each in known
    } == {tuple(PAIR)}
    assert Tally.objects.get(kind="request.rejected").reason == "TOOL.UNKNOWN"


@pytest.mark.req("TOOLS-20", "TOOLS-30")
def test_a_response_that_is_sent_again_runs_nothing_twice(ready_for_models: ScriptedSandbox, caller: Caller) -> None:
    response = chat(("c1", MANGLED, {"text": "one"}), ("c2", MANGLED, {"text": "one"}))

    first, again = send(caller, response), send(caller, response)

    assert len(ready_for_models.calls) == 2
    assert [each["replayed"] for each in first.json()["data"]["calls"]] == [False, False]
    assert [each["replayed"] for each in again.json()["data"]["calls"]] == [True, True]
    assert again.json()["data"]["messages"] == first.json()["data"]["messages"]
    assert rows(again) == rows(first)

    other = send(caller, response, request_id="test-request-2")
    assert (len(ready_for_models.calls), rows(other) != rows(first)) == (4, True)
    by_key = [
        send(caller, response, {"Idempotency-Key": "turn-1"}, request_id=f"test-request-{number}") for number in (3, 4)
    ]
    assert len(ready_for_models.calls) == 6
    assert rows(by_key[0]) == rows(by_key[1])


@pytest.mark.req("TOOLS-20", "TOOLS-30")
def test_a_response_that_is_sent_again_while_its_call_goes_on_waits_for_that_one(
    ready_for_models: ScriptedSandbox, caller: Caller, settings: Any
) -> None:
    response = chat(("c1", MANGLED, {"text": "one"}))
    settings.TOOLHUB_SYNC_WAIT_S = 0
    first = send(caller, response)
    settings.TOOLHUB_SYNC_WAIT_S = 20

    again = send(caller, response)

    assert (first.status_code, again.status_code) == (202, 200)
    assert (statuses(again), again.json()["data"]["calls"][0]["replayed"]) == (["ok"], True)
    assert (rows(again), len(ready_for_models.calls)) == (rows(first), 1)


@pytest.mark.req("TOOLS-30")
def test_no_thread_waits_where_the_server_can_wait_without_one(
    ready_for_models: ScriptedSandbox, caller: Caller, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait_async(seconds: float) -> None:
        await in_thread(partial(bell.wait, seconds))

    async def in_thread(work: Callable[[], Any]) -> Any:
        return await sync_to_async(work)()

    monkeypatch.setattr(dispatch_api, "can_wait", lambda request: True)
    monkeypatch.setattr(bell, "wait_async", wait_async)
    response = chat(("c1", MANGLED, {"text": "one"}), ("c2", "no_such_tool", {}), ("c3", MANGLED, {"text": "two"}))

    waiting = send(caller, response)
    begun = len(ready_for_models.calls)
    answer = async_to_sync(waiting.filled)(in_thread)

    assert (begun, len(ready_for_models.calls)) == (0, 2)
    assert [each["status"] for each in json.loads(answer.content)["data"]["calls"]] == ["ok", "unknown_tool", "ok"]


@pytest.mark.req("TOOLS-30")
def test_calls_that_end_one_by_one_are_not_all_looked_at_each_time(
    ready_for_models: ScriptedSandbox, caller: Caller, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []
    look = services.find_answer

    def counted(begun: Any, *, last: bool) -> Any:
        looked.append(begun.invocation.pk)
        return look(begun, last=last)

    def one_ends(_: float) -> None:
        with claims.claim_next_call() as invocation:
            assert invocation is not None
            execution.run_claimed_call(invocation)

    monkeypatch.setattr(services, "find_answer", counted)
    monkeypatch.setattr(bell, "wait", one_ends)
    answer = send(caller, chat(*((f"call_{n}", MANGLED, {"text": str(n)}) for n in range(9))))

    assert statuses(answer) == ["ok"] * 9
    assert len(looked) <= 3 * 9  # all that are left each time: 63


@pytest.mark.req("TOOLS-30")
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


@pytest.mark.req("TOOLS-15", "TOOLS-30")
def test_what_policy_forbids_to_models_is_forbidden_here(ready_for_models: ScriptedSandbox, caller: Caller) -> None:
    put_in_force(permit(), forbid("no-models", origin={"equals": "llm"}))

    answer = send(caller, chat(("c1", MANGLED, {"text": "one"})))

    assert statuses(answer) == ["denied"]
    assert (ready_for_models.calls, kinds_of(rows(answer)[0])) == ([], PAIR)


@pytest.mark.req("TOOLS-15", "TOOLS-18")
def test_a_key_that_may_not_call_is_refused_and_each_call_has_its_pair(
    ready_for_models: ScriptedSandbox, operator: Person
) -> None:
    reader = make_caller(operator.by, "reader", scopes=("tools:read",))

    assert_problem(send(reader, chat(("c1", MANGLED, {"text": "one"}))), 403, "AUTH.FORBIDDEN")

    assert kinds_of(Invocation.objects.get()) == PAIR
    assert ready_for_models.calls == []


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize("hold", [True, False])
def test_what_goes_on_is_answered_with_where_its_answer_will_be(
    hold: bool, ready_for_models: ScriptedSandbox, caller: Caller, enable: Callable[..., Tool]
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


@pytest.mark.req("CONN-3", "TOOLS-30")
@pytest.mark.parametrize("id", ["sample.echo.x_y", "sample.echo_x.y", f"sample.tools.{'t' * 64}"])
def test_a_name_of_the_list_leads_to_its_tool_in_every_dialect_and_so_does_the_id(
    id: str, ready_for_models: ScriptedSandbox, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable("echo", id=id)
    grant(id)

    for dialect in ("openai", "anthropic", "gemini", "mcp"):
        names = caller.get(f"/tools?dialect={dialect}").json()["data"]["names"]
        (name,) = [each for each, tool in names.items() if tool == id]
        for called in (name, id):
            said = json.dumps(answers_of(caller, {"text": "x"})[dialect])
            response = json.loads(said.replace(MANGLED, called).replace(ECHO, called))
            answer = send(caller, response, request_id=f"{dialect}-{called == id}")
            assert [each["status"] for each in answer.json()["data"]["calls"]] == ["ok"], answer.json()

    assert set(Invocation.objects.values_list("tool", flat=True)) == {id}


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize("text", ["It is sunny.", "Call <tool_call>{}</tool_call> like this.", ""])
def test_an_answer_without_calls_is_no_mistake(text: str, ready_for_models: ScriptedSandbox, caller: Caller) -> None:
    response = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}

    answer = send(caller, response)

    assert answer.status_code == 200, answer.json()
    assert answer.json()["data"]["calls"] == []
    assert "no call" in answer.json()["warnings"][0]


@pytest.mark.req("TOOLS-22", "TOOLS-30")
def test_a_call_in_a_text_counts_only_with_the_mark_of_a_rendering_for_this_tenant(
    ready_for_models: ScriptedSandbox, caller: Caller, foreign_caller: Caller
) -> None:
    call = json.dumps({"name": ECHO, "arguments": {"text": "x"}})
    theirs = make_nonce(nonce_key(foreign_caller.by.tenant_id))
    rendered = caller.get("/tools?dialect=xml").json()["data"]["tools"]
    ours = rendered[rendered.index('nonce="') + 7 :].partition('"')[0]

    for nonce, found in ((theirs, []), ("x" * 43, []), (ours, ["ok"])):
        answer = send(caller, f'<tool_call id="c" nonce="{nonce}">{call}</tool_call>', dialect="xml")
        assert [each["status"] for each in answer.json()["data"]["calls"]] == found, answer.json()


@pytest.mark.req("TOOLS-22", "TOOLS-30")
def test_a_tool_of_another_tenant_is_one_that_is_not_there(
    ready_for_models: ScriptedSandbox, foreign_caller: Caller, caller: Caller
) -> None:
    answer = send(foreign_caller, chat(("c1", MANGLED, {"text": "x"}), ("c2", ECHO, {"text": "x"})))

    assert statuses(answer) == ["unknown_tool", "unknown_tool"]
    assert not Invocation.objects.exists()


@pytest.mark.req("TOOLS-30")
@pytest.mark.parametrize(
    ("arguments", "destructive", "status"),
    [("{'text': 'x',}", False, "ok"), ("{'text': 'x',}", True, "invalid_arguments")],
)
def test_broken_json_is_put_right_only_where_nothing_can_be_destroyed(
    arguments: str,
    destructive: bool,
    status: str,
    enable: Callable[..., Tool],
    ready_for_models: ScriptedSandbox,
    caller: Caller,
) -> None:
    writer(enable)

    answer = send(caller, chat(("c1", "sample_tools_write" if destructive else MANGLED, arguments)))

    assert statuses(answer) == [status], answer.json()
    assert answer.json()["data"]["calls"][0]["repaired"] is not destructive


@pytest.mark.req("TOOLS-22")
def test_the_secret_of_the_mark_is_the_tenants_and_the_hubs(
    caller: Caller, foreign_caller: Caller, settings: Any
) -> None:
    ours, theirs = nonce_key(caller.by.tenant_id), nonce_key(foreign_caller.by.tenant_id)
    settings.SECRET_KEY = "another" + django_settings.SECRET_KEY

    assert len({ours, theirs, nonce_key(caller.by.tenant_id)}) == 3
