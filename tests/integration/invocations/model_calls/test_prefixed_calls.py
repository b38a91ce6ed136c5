"""Prefixed calls: does every conversation begin with the tenant's own text, and does nobody who asks a model get to see it?"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from access.budgets.services import set_budget
from evidence.models import Fact, Snapshot
from evidence.services import open_values
from invocations.files.services import store_file
from invocations.model_calls.model_requests import MOST_MESSAGES
from kernel.canonical import compute_digest
from llm.messages import SystemMessage, Text
from llm.problems import ProviderQuotaExhausted
from registry.model_prefixes.services import set_prefix
from tests.integration.invocations.model_calls.test_canary_words import iter_stored_texts
from tests.support.calls import assert_problem, row_of
from tests.support.drawn_pictures import draw
from tests.support.model_calls import ask, parse_events, say
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.models import Invocation
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
PREFIX = "Quokkaprefix: never promise a price."
OWN = {"role": "system", "segments": [{"type": "text", "text": "Be brief."}]}


def put(operator: Person, text: str = PREFIX) -> None:
    set_prefix(text=text, reason="for a test", by=operator.by)


def system_texts(request: Any) -> list[str]:
    return [
        segment.text
        for message in request.messages
        if isinstance(message, SystemMessage)
        for segment in message.segments
        if isinstance(segment, Text)
    ]


def model_of(call: Invocation) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(Fact.objects.get(invocation_id=call.pk, kind__endswith="began").leaf))
    asked: dict[str, Any] = found["data"]["model"]
    return asked


@pytest.mark.req("LLM-12")
def test_the_prefix_stands_before_all_that_a_caller_says_and_a_change_counts_with_the_next_call(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    with_system = {"messages": [OWN, *say("Hello")["messages"]]}
    before = row_of(ask(caller, say("Hello")))
    put(operator)
    first = row_of(ask(caller, with_system))
    put(operator, "Another one.")
    second = row_of(ask(caller, say("Hello")))
    put(operator, "")
    after = row_of(ask(caller, with_system))

    assert [system_texts(each) for each in bench.requests] == [
        [],
        [PREFIX, "Be brief."],
        ["Another one."],
        ["Be brief."],
    ]
    assert isinstance(bench.requests[1].messages[0], SystemMessage)
    assert [model_of(each).get("prefix", {}).get("version") for each in (before, first, second, after)] == [
        None,
        1,
        2,
        None,
    ]
    assert model_of(first)["prefix"]["digest"] == compute_digest(PREFIX)


@pytest.mark.req("LLM-12")
def test_its_tokens_are_reserved_estimated_and_said(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    set_budget(scope="tenant", dimension="tokens", amount=100_000, window_s=86_400, by=operator.by)
    bare = ask(caller, say("Hello", max_tokens=10)).json()
    put(operator, "x" * 3_000)
    response = ask(caller, say("Hello", max_tokens=10))
    answer = response.json()
    asked = ask(caller, say("Hello", max_tokens=10), operation="preflight").json()["data"]["model"]

    tokens = answer["data"]["usage"]["prefix_tokens"]
    assert (bare["data"]["usage"]["prefix_tokens"], tokens, asked["prefix_tokens"]) == (0, tokens, tokens)
    assert tokens > 1_000
    assert answer["call"]["budget"][0]["takes"] - bare["call"]["budget"][0]["takes"] == tokens
    assert model_of(row_of(response))["prefix"]["tokens"] == tokens


@pytest.mark.req("LLM-12")
def test_a_prefix_that_leaves_no_room_in_the_window_is_counted_and_not_quoted(
    caller: Caller, operator: Person, connect: Callable[..., Tool], grant: Callable[..., Any], bench: ProviderBench
) -> None:
    grant("model.*")
    connect(window_tokens=1_000)
    put(operator, PREFIX * 200)

    answer = ask(caller, say("Hello", max_tokens=10))

    assert_problem(answer, 413, "LLM.CONTEXT_OVERFLOW")
    assert b"Quokka" not in answer.content
    assert bench.provider is None


@pytest.mark.req("LLM-12")
def test_places_in_a_request_are_counted_without_it(
    caller: Caller, operator: Person, connect: Callable[..., Tool], grant: Callable[..., Any], bench: ProviderBench
) -> None:
    grant("model.*")
    connect(features={"image_ref": "refused"})
    put(operator)
    content = draw("PNG", 1, 1)
    held, _ = store_file(path="/data/picture", content=content, by=operator.by)
    picture = {
        "type": "image_ref",
        "id": held.wire_id,
        "media_type": "image/png",
        "size_bytes": len(content),
        "width": 1,
        "height": 1,
    }

    answer = ask(caller, {"messages": [{"role": "user", "segments": [picture]}]})

    assert_problem(answer, 422, "LLM.UNSUPPORTED")
    assert answer.json()["error"]["details"]["findings"][0]["pointer"] == "/messages/0/segments/0"


@pytest.mark.req("LLM-12")
def test_a_request_that_is_asked_for_again_begins_with_it_too(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    put(operator)
    bench.scripts = [text_answer("no json"), text_answer('{"n": 1}')]

    answer = ask(caller, say("Hello", response_format={"type": "json"}))

    assert answer.json()["data"]["output"] == {"n": 1}
    assert [system_texts(each) for each in bench.requests] == [[PREFIX], [PREFIX]]


@pytest.mark.req("LLM-12")
def test_room_is_kept_for_it_in_the_longest_conversation(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    put(operator)

    answer = ask(caller, say(*["x"] * MOST_MESSAGES))
    beyond = ask(caller, say(*["x"] * (MOST_MESSAGES + 1)))

    assert answer.status_code == 200, answer.json()
    assert len(bench.requests[0].messages) == MOST_MESSAGES + 1
    assert_problem(beyond, 422, "SCHEMA.VALIDATION_FAILED")


@pytest.mark.req("LLM-12")
def test_no_word_of_it_is_in_an_answer_an_error_a_log_or_any_row_but_its_own(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench, caplog: pytest.LogCaptureFixture
) -> None:
    put(operator)
    bench.scripts = [text_answer("Hi"), text_answer("Hi"), (ProviderQuotaExhausted(),), (RuntimeError(PREFIX),)]
    with caplog.at_level(logging.DEBUG):
        answers = [
            ask(caller, say("Hello")),
            ask(caller, say("Hello"), operation="preflight"),
            ask(caller, say("Hello", system_prefix="")),
            ask(caller, say("Hello"), headers={"Accept": "text/event-stream"}),
            ask(caller, say("Hello")),
        ]
        calls = [row_of(each) for each in (answers[0], answers[2], answers[4])]
        answers += [caller.get(f"/invocations/{each.wire_id}") for each in calls]
        answers.append(caller.get("/models"))

    texts = [b"".join(each) if each.streaming else each.content for each in answers]
    assert not [text for text in texts if b"Quokka" in text]
    assert "Quokka" not in caplog.text
    assert_problem(answers[2], 422, "SCHEMA.VALIDATION_FAILED")
    assert parse_events(texts[3].decode())[-1][0] == "end"
    assert not [row for row in Snapshot.objects.all() if "Quokka" in json.dumps(open_values(row))]
    assert {table for table, text in iter_stored_texts() if "Quokka" in text} == {"registry_modelprefix"}


@pytest.mark.req("LLM-12")
def test_vectors_and_orders_have_no_conversation_to_put_it_before(
    caller: Caller, operator: Person, connect: Callable[..., Tool], grant: Callable[..., Any], bench: ProviderBench
) -> None:
    grant("model.*")
    connect(alias="words", operation="embed")
    put(operator)

    answer = ask(caller, {"items": ["a"]}, model="model.script.words", operation="embed")

    assert answer.status_code == 200, answer.json()
    assert answer.json()["data"]["usage"]["prefix_tokens"] == 0
    assert "prefix" not in model_of(row_of(answer))
