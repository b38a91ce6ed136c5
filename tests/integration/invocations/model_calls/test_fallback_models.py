"""Fallback models: does another model answer where the asked one's provider fails, and never the two of them together?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.budgets.services import set_budget
from access.policies.clauses import RuleEffect
from kernel.problems import SchemaInvalid
from registry.model_providers.circuits import FAILURES, count_failure
from registry.model_providers.connected_models import change_model, connect_model
from registry.model_providers.services import pause_provider
from registry.models import ModelProvider
from tests.support.budgets import DAY, balance
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.model_calls import ask, leaf_of, parse_events, say
from tests.support.model_outages import chat_reply, connect_server
from tests.support.model_servers import Reply, json_reply, model_server
from tests.support.policies_in_force import forbid, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench
    from tests.support.model_servers import ModelServer

pytestmark = pytest.mark.django_db
FIRST, SECOND = "model.first.main", "model.second.main"
BUSY = json_reply({"error": {"message": "overloaded", "type": "server_error"}}, 503)


@pytest.fixture
def second(operator: Person, settings: Any) -> Iterator[ModelServer]:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with model_server(chat_reply("From the second", model="small-2")) as server:
        connect_server(operator.by, "second", server.url, model="small-2")
        yield server


@pytest.fixture
def first(operator: Person, second: ModelServer) -> Iterator[ModelServer]:
    """Its provider is busy."""
    with model_server(BUSY) as server:
        connect_server(
            operator.by, "first", server.url, fallbacks=[SECOND], settings={"timeouts": {"first_event_s": 0.3}}
        )
        yield server


@pytest.fixture
def granted(grant: Callable[..., Any]) -> None:
    grant("model.*")


@pytest.mark.req("LLM-14")
@pytest.mark.usefixtures("granted")
def test_the_fallback_answers_and_the_answer_the_facts_and_the_steps_say_who_did_and_who_did_not(
    caller: Caller, first: ModelServer, second: ModelServer
) -> None:
    answer = ask(caller, say("Hello", max_tokens=50), model=FIRST)

    said, call = answer.json(), row_of(answer)
    attempts = [
        {"model": FIRST, "requests": 1, "problem": "PROVIDER.UNAVAILABLE"},
        {"model": SECOND, "requests": 1, "problem": None},
    ]
    assert answer.status_code == 200, answer.content
    assert (said["data"]["text"], said["data"]["model"]) == ("From the second", "small-2")
    assert (said["data"]["answered_by"], said["data"]["attempts"]) == (SECOND, attempts)
    assert f"{FIRST} did not answer (PROVIDER.UNAVAILABLE); {SECOND} did." in said["warnings"]
    assert [len(each.heard) for each in (first, second)] == [1, 1]
    began, ended = leaf_of(call, "invocation.began")["model"], leaf_of(call, "invocation.ended")["model"]
    assert (began["provider"], began["fallbacks"]) == ("first", [SECOND])
    assert (ended["provider"], ended["answered_by"], ended["requests"]) == ("second", "small-2", 2)
    assert ended["attempts"] == attempts
    steps = [(each["status"], each["note"]) for each in call.steps if each["name"] == "model.ask"]
    assert steps == [("failed", f"{FIRST} PROVIDER.UNAVAILABLE"), ("ok", SECOND)]
    assert kinds_of(call) == PAIR


@pytest.mark.req("LLM-14")
@pytest.mark.usefixtures("granted")
@pytest.mark.parametrize(
    "reply",
    [
        chat_reply("From the first", pieces=1),
        Reply((), content_type="text/event-stream", end="stall"),
        Reply([b"<html>"], content_type="text/html"),
        json_reply({"error": {"message": "slow down"}}, 429),
        json_reply({"error": {"message": "no such key"}}, 401),
    ],
    ids=["dies before the first token", "never begins", "no answer of its interface", "no more for now", "bad key"],
)
def test_whatever_keeps_a_provider_from_beginning_lets_the_fallback_answer(
    reply: Reply, caller: Caller, first: ModelServer, second: ModelServer
) -> None:
    first.answer = lambda _: reply

    answer = ask(caller, say("Hello"), model=FIRST, headers={"Accept": "text/event-stream"})

    events = parse_events(answer.content.decode())
    texts = [data.get("text", "") for event, data in events if event == "delta"]
    assert ("".join(texts), events[-1][1]["data"]["answered_by"]) == ("From the second", SECOND)
    assert not any("small-1" in str(data) for event, data in events if event == "delta")


@pytest.mark.req("LLM-14")
@pytest.mark.usefixtures("granted")
def test_after_the_first_token_nobody_else_is_asked(caller: Caller, first: ModelServer, second: ModelServer) -> None:
    first.answer = lambda _: chat_reply("From the first", pieces=3)

    answer = ask(caller, say("Hello"), model=FIRST)

    assert_problem(answer, 502, "PROVIDER.STREAM_TRUNCATED")
    assert answer.json()["data"] is None
    assert second.heard == []
    assert leaf_of(row_of(answer), "invocation.ended")["model"]["settled_by"] == "estimate"


@pytest.mark.req("LLM-14")
@pytest.mark.usefixtures("granted")
def test_what_the_request_itself_is_refused_for_is_not_asked_of_another(
    caller: Caller, first: ModelServer, second: ModelServer
) -> None:
    wrong = {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}}
    first.answer = lambda _: json_reply(wrong, 400)

    assert_problem(ask(caller, say("Hello"), model=FIRST), 413, "LLM.CONTEXT_OVERFLOW")
    assert second.heard == []


@pytest.mark.req("LLM-14")
@pytest.mark.usefixtures("granted")
def test_where_all_fail_the_problem_names_each(caller: Caller, first: ModelServer, second: ModelServer) -> None:
    second.answer = lambda _: json_reply({"error": {"message": "slow down"}}, 429, headers={"Retry-After": "7"})

    answer = ask(caller, say("Hello"), model=FIRST)

    assert_problem(answer, 429, "PROVIDER.RATE_LIMITED")
    error = answer.json()["error"]
    named = [(each["model"], each["problem"]) for each in error["details"]["attempts"]]
    assert named == [(FIRST, "PROVIDER.UNAVAILABLE"), (SECOND, "PROVIDER.RATE_LIMITED")]
    assert answer["Retry-After"] == "7"


@pytest.mark.req("LLM-14")
@pytest.mark.usefixtures("granted")
def test_a_provider_that_is_left_alone_is_passed_over(caller: Caller, first: ModelServer, second: ModelServer) -> None:
    for _ in range(FAILURES):
        count_failure(ModelProvider.objects.get(name="first"), "small-1", why="PROVIDER.UNAVAILABLE")

    answer = ask(caller, say("Hello"), model=FIRST)

    assert answer.json()["data"]["answered_by"] == SECOND
    assert first.heard == []
    assert answer.json()["data"]["attempts"][0] == {"model": FIRST, "requests": 0, "problem": "PROVIDER.UNAVAILABLE"}


@pytest.mark.req("LLM-14")
def test_a_model_that_the_caller_may_not_call_never_answers_in_place_of_another(
    caller: Caller, operator: Person, first: ModelServer, second: ModelServer, grant: Callable[..., Any]
) -> None:
    grant(FIRST)
    ungranted = ask(caller, say("Hello"), model=FIRST)
    grant("model.*")
    put_in_force(permit(), forbid("not-the-second", tool={"equals": SECOND}))
    forbidden = ask(caller, say("Hello"), model=FIRST)
    put_in_force(
        permit(), {"id": "masked", "effect": str(RuleEffect.OBLIGE), "when": {"tool": {"equals": SECOND}}, **MASK}
    )
    obliged = ask(caller, say("Hello"), model=FIRST)
    put_in_force(permit())
    pause_provider(name="second", reason="for a test", by=operator.by)
    paused = ask(caller, say("Hello"), model=FIRST)

    for answer in (ungranted, forbidden, obliged, paused):
        assert_problem(answer, 503, "PROVIDER.UNAVAILABLE")
        assert "fallbacks" not in leaf_of(row_of(answer), "invocation.began")["model"]
    assert second.heard == []


MASK = {"obligations": [{"action": "mask", "detector": "email"}]}


@pytest.mark.req("LLM-7")
@pytest.mark.usefixtures("granted")
def test_a_budget_of_a_model_that_did_not_answer_is_as_it_was(
    caller: Caller, operator: Person, first: ModelServer, second: ModelServer
) -> None:
    of_first, of_second = (
        set_budget(scope="tool", tool=name, dimension="tokens", amount=10_000, window_s=365 * DAY, by=operator.by)
        for name in (FIRST, SECOND)
    )
    whole = set_budget(scope="tenant", dimension="tokens", amount=10_000, window_s=365 * DAY, by=operator.by)

    fallen = ask(caller, say("Hello"), model=FIRST)
    first.answer = lambda _: chat_reply("From the first")
    plain = ask(caller, say("Hello"), model=FIRST)

    assert [each.json()["data"]["text"] for each in (fallen, plain)] == ["From the second", "From the first"]
    assert [balance(each) for each in (of_first, of_second, whole)] == [(7, 0), (7, 0), (14, 0)]
    [untouched] = leaf_of(row_of(plain), "invocation.ended")["budget"]["not_of"]
    assert untouched == of_second.wire_id


@pytest.mark.req("LLM-7")
@pytest.mark.usefixtures("granted")
def test_enough_is_reserved_for_the_model_that_may_take_most(
    caller: Caller, operator: Person, first: ModelServer, second: ModelServer
) -> None:
    budget = set_budget(scope="tenant", dimension="tokens", amount=900, window_s=365 * DAY, by=operator.by)
    alone = ask(caller, say("Hello"), model=SECOND, operation="preflight").json()["data"]
    change_model(provider="second", alias="main", default_output_tokens=800, reason="for a test", by=operator.by)
    change_model(provider="first", alias="main", default_output_tokens=100, reason="for a test", by=operator.by)
    both = ask(caller, say("Hello"), model=FIRST, operation="preflight").json()["data"]
    change_model(provider="second", alias="main", default_output_tokens=2000, reason="for a test", by=operator.by)
    too_dear = ask(caller, say("Hello"), model=FIRST)

    assert alone["allow"] is False
    assert both["budget_snapshot"][0]["takes"] > 800
    assert (both["model"]["fallbacks"], both["model"]["left_out"]) == ([SECOND], {})
    assert_problem(too_dear, 503, "PROVIDER.UNAVAILABLE")  # there was room for the first one alone
    assert balance(budget) == (0, 0)


@pytest.mark.req("LLM-14")
def test_a_model_falls_back_only_on_others_of_the_tenant_that_are_for_the_same_and_never_on_itself(
    operator: Person, connect: Callable[..., Tool], bench: ProviderBench
) -> None:
    connect()
    by, reason = operator.by, "for a test"
    connect_model(
        provider="script", alias="small", model="script", fallbacks=["model.script.main"], by=by, reason=reason
    )
    connect_model(provider="script", alias="vectors", model="script", operation="embed", by=by, reason=reason)

    for wanted in (
        "model.script.other",
        "sample.tools.echo",
        "model.script.vectors",
        "model.script.main",
        "model.script.small",
    ):
        with pytest.raises(SchemaInvalid) as refused:
            change_model(provider="script", alias="main", fallbacks=[wanted], by=by, reason=reason)
        assert refused.value.details["findings"][0]["pointer"] == "/fallbacks/0"


@pytest.mark.req("LLM-8", "LLM-14")
@pytest.mark.usefixtures("granted")
def test_json_that_is_asked_for_again_is_asked_of_the_model_that_answered_first(
    caller: Caller, first: ModelServer, second: ModelServer
) -> None:
    replies = iter([chat_reply("no JSON"), BUSY])
    first.answer = lambda _: next(replies)

    answer = ask(caller, say("Hello", response_format={"type": "json"}), model=FIRST)

    assert_problem(answer, 503, "PROVIDER.UNAVAILABLE")
    assert (len(first.heard), second.heard) == (2, [])
