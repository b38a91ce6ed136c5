"""Degraded calls: can a policy let a call of a model have less than it asks for, and is that said?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.usage import Usage
from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import connect_provider
from tests.support.calls import ask as preflight
from tests.support.calls import assert_problem, row_of, writer
from tests.support.connected_models import SCRIPTED
from tests.support.dispatches import ECHO
from tests.support.model_calls import MODEL, ask, leaf_of, say
from tests.support.policies_in_force import degrade, forbid, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import ScriptedSandbox
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
SMALL = "model.other.small"


@pytest.fixture
def small(operator: Person, model: Tool) -> Tool:
    connect_provider(name="other", kind=SCRIPTED, reason="for a test", by=operator.by)
    return connect_model(
        provider="other", alias="small", model="script", unpriced="count", reason="for a test", by=operator.by
    )


@pytest.mark.req("LLM-14")
def test_a_smaller_model_answers_and_decision_leaf_and_answer_say_so(
    caller: Caller, small: Tool, bench: ProviderBench
) -> None:
    put_in_force(permit(), degrade(MODEL, answered_by=SMALL))

    answer = ask(caller, say("Hello"))

    said, less = answer.json(), {"answered_by": SMALL, "tools": None, "rules": ["hub@1#less"]}
    assert (said["data"]["text"], said["data"]["answered_by"], said["data"]["degraded"]) == ("Hi there", SMALL, less)
    assert f"Policy lets {SMALL} answer this call, says hub@1#less." in said["warnings"]
    began, ended = (leaf_of(row_of(answer), f"invocation.{each}") for each in ("began", "ended"))
    assert (began["decision"]["degraded"], began["model"]["fallbacks"]) == (less, [SMALL])
    assert ended["model"]["provider"] == "other"
    assert len(bench.configs) == 1, "the asked model's provider is not even connected"


@pytest.mark.req("LLM-14")
def test_where_the_smaller_model_may_not_be_asked_the_call_is_refused(
    caller: Caller, small: Tool, bench: ProviderBench
) -> None:
    put_in_force(permit(tool={"equals": MODEL}), degrade(MODEL, answered_by=SMALL))

    answer = ask(caller, say("Hello"))

    assert_problem(answer, 403, "POLICY.DENY_TOOL")
    assert SMALL in answer.json()["error"]["message"]
    assert bench.provider is None


@pytest.mark.req("LLM-3", "LLM-14")
@pytest.mark.parametrize(
    ("tools", "shown"), [("read_only", ["sample.tools.echo"]), ("none", [])], ids=["that only read", "none"]
)
def test_the_model_is_shown_fewer_tools_and_so_proposes_none_of_the_others(
    tools: str,
    shown: list[str],
    caller: Caller,
    model: Tool,
    bench: ProviderBench,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
) -> None:
    enable()
    writing = writer(enable)
    grant()
    grant(writing.name)
    put_in_force(permit(), degrade(MODEL, tools=tools))

    answer = ask(caller, say("Hello", tools=["sample.tools.echo", writing.name]))

    assert answer.status_code == 200, answer.content
    [request] = bench.requests
    assert [each.name for each in request.tools] == shown
    assert answer.json()["data"]["degraded"]["tools"] == tools
    assert any("Policy lets the model be shown" in each for each in answer.json()["warnings"])
    began = leaf_of(row_of(answer), "invocation.began")["model"]
    assert began.get("tools", {"count": 0})["count"] == len(shown)


@pytest.mark.req("LLM-14")
def test_of_two_rules_the_fewest_tools_remain_and_tools_are_called_as_ever(
    caller: Caller, model: Tool, bench: ProviderBench, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    every = {"id": "every", "effect": "degrade", "when": {}, "tools": "none"}
    put_in_force(permit(), degrade(MODEL, tools="read_only"), every)

    called = preflight(caller, "sample.tools.echo", {"text": "x"})
    answer = ask(caller, say("Hello", tools=["sample.tools.echo"]))

    assert answer.json()["data"]["degraded"] == {
        "answered_by": None,
        "tools": "none",
        "rules": ["hub@1#every", "hub@1#less"],
    }
    assert bench.requests[0].tools == ()
    assert called["allow"] is True


@pytest.mark.req("LLM-3", "LLM-12")
def test_a_proposal_is_that_of_the_model_that_answered_and_not_of_the_one_that_was_asked(
    caller: Caller, operator: Person, small: Tool, bench: ProviderBench, ready_for_models: ScriptedSandbox
) -> None:
    piece = ToolCallDelta(index=0, call_id="call_1", name=ECHO, arguments='{"text": "hello"}')
    bench.scripts = [(ChatDelta(tool_call=piece), ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(10, 5)))]
    only_the_asked = forbid("only-the-asked", tool={"equals": ECHO}, model_verified={"not": {"equals": MODEL}})
    put_in_force(permit(), degrade(MODEL, answered_by=SMALL))
    asked = row_of(ask(caller, say("Which?")))
    named = {"proposed_by": {"invocation": asked.wire_id, "call_id": "call_1"}}

    called = caller.invoke(ECHO, {"text": "hello"}, **named)
    put_in_force(permit(), only_the_asked)
    refused = caller.invoke(ECHO, {"text": "hello"}, **named)

    assert called.status_code == 200, called.json()
    assert leaf_of(asked, "invocation.ended")["model"]["stood_in"] == SMALL
    for answer in (called, refused):
        began = leaf_of(row_of(answer), "invocation.began")
        assert (began["proposed_by"]["model"], began["decision_input"]["model_verified"]) == (SMALL, SMALL)
        page = operator.client().get(reverse("invocation", args=[row_of(answer).pk])).content.decode()
        assert f'href="/invocations/{asked.wire_id}">{SMALL}</a>' in page
    assert_problem(refused, 403, "POLICY.DENY_TOOL")
