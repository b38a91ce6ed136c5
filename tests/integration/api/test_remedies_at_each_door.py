"""Remedies: can what an answer says would help be done by whoever reads it: a program over REST, a model over MCP or in a
dispatch?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access.budgets.rate_limits import check_refused_call
from access.consents.services import ASKING
from invocations import services
from kernel.problems import Forbidden, Internal, Problem, collect_problem_classes
from tests.support.calls import writer
from tests.support.entry_paths import at_the_door, modern_request
from tests.support.remedies import HTTP, OF_EXCHANGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
FIRST = "inv_0123456789abcdefghjkmnpqrs"
REQUEST = {"method": "POST", "path": "/api/v1/consents", "body": {"tool": ECHO}}
OF_CALLS = [cls for cls in collect_problem_classes() if cls.reason not in OF_EXCHANGES]
ASKED = {"type": "agent", "id": "a"}


def over_rest(caller: Caller, tool: str = ECHO, **envelope: Any) -> dict[str, Any]:
    error: dict[str, Any] = caller.invoke(tool, {"text": "x"}, **envelope).json()["error"]
    return error


def over_mcp(caller: Caller, tool: str = ECHO, **envelope: Any) -> dict[str, Any]:
    """What the model reads."""
    sent = at_the_door(*modern_request(caller, "tools/call", {"name": tool, "arguments": {"text": "x"}}, envelope))
    assert sent.body["result"]["isError"], sent
    error: dict[str, Any] = json.loads(sent.body["result"]["content"][0]["text"])["error"]
    return error


def in_a_dispatch(caller: Caller, tool: str = ECHO, **envelope: Any) -> str:
    """What the model reads there: the message of the tool."""
    function = {"name": tool.replace(".", "_"), "arguments": '{"text": "x"}'}
    message = {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    response = {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
    }
    said = {"request_id": "test-request-1", "actor": ASKED | {"id": caller.agent.name}, **envelope}
    answer = caller.post("/dispatch", said | {"response": response, "dialect": "openai"}).json()
    return json.dumps(answer["data"]["results"] if "results" in answer["data"] else answer["data"])


@pytest.fixture
def refused_for(
    monkeypatch: pytest.MonkeyPatch,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> Callable[[Problem], None]:
    """``refused_for(problem)``: every call is from now on."""
    enable()
    grant()

    def make(problem: Problem) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise problem

        monkeypatch.setattr(services, "run_preflight", refuse)

    return make


@pytest.mark.req("TOOLS-24")
def test_what_every_problem_of_the_catalogue_advises_can_be_done_at_both_doors(
    caller: Caller, refused_for: Callable[[Problem], None]
) -> None:
    """In one test: a caller, a tool and a grant for each would take longer than to be refused."""
    assert len(OF_CALLS) > 100
    for cls in OF_CALLS:
        if cls is not Internal:
            check_advice(cls, caller, refused_for)


@pytest.mark.req("TOOLS-24")
@pytest.mark.unmapped
def test_what_an_error_without_a_name_advises_can_be_done_at_both_doors(
    caller: Caller, refused_for: Callable[[Problem], None]
) -> None:
    check_advice(Internal, caller, refused_for)


def check_advice(cls: type[Problem], caller: Caller, refused_for: Callable[[Problem], None]) -> None:
    refused_for(cls(details={"request": REQUEST, "on_consent": ASKING, "first_call": FIRST}))

    answers = {door: door(caller) for door in (over_rest, over_mcp)}

    for door, told in answers.items():
        place = (cls.reason, door.__name__, told)
        assert (told["reason"], bool(told["remedy"])) == (cls.reason, True), place
        assert HTTP.search(told["remedy"]) is None, place
        assert ("`retry_after_s`" not in told["remedy"]) or told["retry_after_s"] > 0, place
        assert told["details"]["first_call"] == FIRST, place
    assert answers[over_rest]["details"]["request"] == REQUEST, cls.reason
    assert answers[over_mcp]["details"] == {"first_call": FIRST}, cls.reason


@pytest.mark.req("TOOLS-24")
def test_the_reason_of_another_problem_is_told_to_a_model_in_the_same_words(
    caller: Caller, refused_for: Callable[[Problem], None], settings: Any
) -> None:
    settings.TOOLHUB_RATE_REFUSED_CALLS = 1
    because = Forbidden("No.", details={"request": REQUEST, "asked": [{"ask": REQUEST}]})
    check_refused_call(caller.by.id, because=because)
    refused_for(because)

    told = over_mcp(caller)

    assert told["reason"] == "QUOTA.RATE_LIMITED"
    assert told["details"]["because"]["details"] == {"asked": [{}]}
    assert told["remedy"].startswith("Wait `retry_after_s` seconds") and told["retry_after_s"] > 0


@pytest.mark.req("TOOLS-19", "TOOLS-24")
@pytest.mark.parametrize("on_consent", ["refuse", "ask"])
def test_a_model_that_needs_a_consent_is_told_to_have_a_person_agree_and_a_program_how_to_ask(
    on_consent: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    writer(enable, data_classes=["payment"], consent={"validity_seconds": 600})
    grant()
    asked = {"on_consent": on_consent, "purpose": "for a test"}

    model, program = over_mcp(caller, WRITE, **asked), over_rest(caller, WRITE, **asked)

    assert model["remedy"] == program["remedy"]
    assert HTTP.search(json.dumps(model["details"])) is None
    assert program["details"]["request"]["path"] == "/api/v1/consents"
    assert program["details"]["on_consent"] == ["ask", "hold"]
    assert program["details"].keys() - model["details"].keys() == {"request", "on_consent"}


@pytest.mark.req("TOOLS-24", "TOOLS-30")
def test_a_model_in_a_dispatch_reads_when_to_try_again(caller: Caller, refused_for: Callable[[Problem], None]) -> None:
    (cls,) = (each for each in collect_problem_classes() if each.reason == "QUEUE.UNAVAILABLE")
    refused_for(cls())

    told = in_a_dispatch(caller)

    assert "Try again after `retry_after_s` seconds." in told
    assert "`retry_after_s` is 5." in told


@pytest.mark.req("TOOLS-24")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/agents", {"name": 12345}),
        ("/model-providers", {"name": "script", "kind": 5}),
        ("/models/model.script.main/chat", {"request_id": "short"}),
        ("/chat/completions", {"model": "model.script.main", "messages": [], "no_such": 1}),
    ],
)
def test_who_makes_a_mistake_in_something_else_is_not_sent_to_the_schema_of_a_tool(
    path: str, body: dict[str, Any], caller: Caller
) -> None:
    served = path == "/chat/completions"

    answer = Client().post(
        f"{'/v1' if served else '/api/v1'}{path}", body, content_type="application/json", headers=caller.headers()
    )

    error = answer.json()["error"]
    assert (answer.status_code, error["code" if served else "reason"]) == (
        400 if served else 422,
        "SCHEMA.VALIDATION_FAILED",
    )
    assert "Correct the fields" in error["message" if served else "remedy"]
    assert "tool" not in error["message" if served else "remedy"]
