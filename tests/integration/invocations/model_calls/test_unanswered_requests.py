"""Unanswered requests: is what nobody answered counted where a provider may charge for it, and at its own price, and is that
said?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from access.budgets.services import set_budget
from llm.answers import ChatDelta, FinishReason
from llm.problems import ModelTimedOut, ProviderRateLimited, ProviderUnavailable, StreamTruncated
from llm.providers.failures import classify_exception
from llm.usage import Usage
from registry.model_prices.services import set_model_prices
from registry.models import ModelProvider
from tests.support.budgets import DAY, assert_conserved, balance
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.connected_models import connect_scripted_model, set_script_prices
from tests.support.model_calls import ask, leaf_of, say
from tests.support.model_outages import chat_reply, connect_server
from tests.support.model_servers import Reply, json_reply, model_server
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.models import Budget
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench
    from tests.support.model_servers import ModelServer

pytestmark = pytest.mark.django_db
FIRST, SECOND = "model.first.main", "model.second.main"
SILENT = Reply((), content_type="text/event-stream", end="stall")


@pytest.fixture
def second(operator: Person, grant: Callable[..., Any], settings: Any) -> Iterator[ModelServer]:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    grant("model.*")
    with model_server(chat_reply("From the second", model="small-2")) as server:
        connect_server(operator.by, "second", server.url, model="small-2")
        yield server


@pytest.fixture
def first(operator: Person, second: ModelServer) -> Iterator[ModelServer]:
    """Its provider takes the request, and says nothing; it is a hundred times as dear as the second."""
    day: dict[str, Any] = {"effective_from": "2026-01-01"}
    prices = [
        day | {"provider": "first", "model": "small-1", "input": "100", "output": "100"},
        day | {"provider": "second", "model": "small-2", "input": "1", "output": "1"},
    ]
    set_model_prices(document={"prices": prices}, reason="for a test", by=operator.by)
    with model_server(SILENT) as server:
        timeouts = {"timeouts": {"first_event_s": 0.3}}
        connect_server(operator.by, "first", server.url, fallbacks=[SECOND], settings=timeouts)
        yield server


def money_of(operator: Person, **scope: Any) -> Budget:
    said = {"scope": "tenant"} | scope
    return set_budget(dimension="money", amount=1_000_000, window_s=365 * DAY, by=operator.by, **said)


@pytest.mark.req("LLM-7", "LLM-14")
def test_a_request_that_ran_out_of_time_before_the_fallback_is_counted_by_estimate_at_its_own_price(
    caller: Caller, operator: Person, first: ModelServer
) -> None:
    whole = money_of(operator)
    of_first, of_second = (money_of(operator, scope="tool", tool=name) for name in (FIRST, SECOND))
    estimate = ask(caller, say("Hello"), model=FIRST, operation="preflight").json()["data"]["model"]["input_tokens"]

    answer = ask(caller, say("Hello"), model=FIRST)

    said = answer.json()["data"]
    took = {"input_tokens": estimate, "output_tokens": 0, "cost_micros": 100 * estimate, "counted_by": "estimate"}
    assert said["text"] == "From the second"
    assert said["attempts"][0] == {"model": FIRST, "requests": 1, "problem": "LLM.TIMEOUT", "took": took}
    assert "took" not in said["attempts"][1]
    assert said["usage"]["counted_by"] == "estimate"
    of_answer = said["usage"]["cost_micros"] - 100 * estimate
    assert 0 < of_answer < 100
    assert any("counted by estimate" in each for each in answer.json()["warnings"])
    assert [balance(each) for each in (whole, of_first, of_second)] == [
        (100 * estimate + of_answer, 0),
        (100 * estimate, 0),
        (of_answer, 0),
    ]
    ended = leaf_of(row_of(answer), "invocation.ended")
    assert ended["model"]["attempts"][0]["took"] == took
    assert {name: part["money"] for name, part in ended["budget"]["parts"].items()} == {
        of_first.wire_id: 100 * estimate,
        of_second.wire_id: of_answer,
    }
    assert_conserved()


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize(
    "refusal",
    [
        json_reply({"error": {"message": "overloaded", "type": "server_error"}}, 503),
        json_reply({"error": {"message": "slow down"}}, 429),
        Reply([b"<html>"], content_type="text/html"),
        Reply([b"no such page"], 404, content_type="text/plain"),
    ],
    ids=["503", "429", "a page", "404"],
)
def test_a_refusal_costs_nothing_and_leaves_the_budget_of_its_model_alone(
    refusal: Reply, caller: Caller, operator: Person, first: ModelServer
) -> None:
    of_first, of_second = (money_of(operator, scope="tool", tool=name) for name in (FIRST, SECOND))
    first.answer = lambda _: refusal

    answer = ask(caller, say("Hello"), model=FIRST)

    said = answer.json()["data"]
    assert "took" not in said["attempts"][0]
    assert balance(of_first) == (0, 0)
    assert balance(of_second) == (said["usage"]["cost_micros"], 0)
    assert leaf_of(row_of(answer), "invocation.ended")["budget"]["not_of"] == [of_first.wire_id]


@pytest.fixture
def money(operator: Person, model: Tool) -> Budget:
    set_script_prices(operator.by, input="1", output="1")
    return money_of(operator)


@pytest.mark.req("LLM-7")
def test_a_request_that_no_connection_was_made_for_in_time_costs_nothing(
    caller: Caller, money: Budget, bench: ProviderBench
) -> None:
    ModelProvider.objects.update(settings={"retries": 0})
    unsent = classify_exception(httpx2.ConnectTimeout("late"))
    bench.scripts = [(unsent,), (ModelTimedOut(),)]

    never_sent, lost = (ask(caller, say("Hello")) for _ in range(2))

    for answer in (never_sent, lost):
        assert_problem(answer, 504, "LLM.TIMEOUT")
    assert [usage_in_end(each)["settled_by"] for each in (never_sent, lost)] == ["nothing", "estimate"]


def usage_in_end(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = leaf_of(row_of(answer), "invocation.ended")["model"]
    return found


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize("lost", [ModelTimedOut(), StreamTruncated()], ids=["late", "cut off before its first word"])
def test_each_try_that_nobody_knows_the_cost_of_is_counted_beside_the_one_that_was_answered(
    lost: Exception, caller: Caller, money: Budget, bench: ProviderBench
) -> None:
    for each in (lost, ProviderRateLimited(), ProviderUnavailable()):
        each.retry_after = 0  # type: ignore[attr-defined]
    bench.scripts = [(lost,), (lost,), text_answer("Hi")]
    estimate = ask(caller, say("Hello"), operation="preflight").json()["data"]["model"]["input_tokens"]

    answer = ask(caller, say("Hello"))

    usage = answer.json()["data"]["usage"]
    assert (usage["requests"], usage["counted_by"]) == (3, "estimate")
    assert balance(money) == (2 * estimate + 10 + 1, 0)
    assert leaf_of(row_of(answer), "invocation.ended")["model"]["reported"] == {"input": 10, "output": 1}


@pytest.mark.req("LLM-7")
def test_usage_that_was_reported_before_another_model_was_asked_is_not_lost(
    caller: Caller, operator: Person, money: Budget, bench: ProviderBench
) -> None:
    ModelProvider.objects.update(settings={"retries": 0})
    connect_scripted_model(operator.by, "first", unpriced="count", fallbacks=["model.script.main"])
    bench.scripts = [(ChatDelta(usage=Usage(500, 0), model="script-001"), StreamTruncated()), text_answer("Hi")]

    answer = ask(caller, say("Hello"), model="model.script.first")

    assert answer.json()["data"]["answered_by"] == "model.script.main"
    assert balance(money) == (500 + 10 + 1, 0)


@pytest.mark.req("LLM-7")
def test_an_answer_of_a_model_without_a_price_takes_the_money_that_was_reserved_and_never_none(
    caller: Caller, money: Budget, bench: ProviderBench
) -> None:
    stranger = ChatDelta(text="Hi", model="script-9b")
    bench.scripts = [(stranger, ChatDelta(finish_reason=FinishReason.STOP, usage=Usage(10, 2)))]
    reserved = ask(caller, say("Hello", max_tokens=100), operation="preflight").json()["data"]["model"]["cost_micros"]

    answer = ask(caller, say("Hello", max_tokens=100))

    usage = answer.json()["data"]["usage"]
    assert (usage["cost_micros"], usage["price_version"]) == (None, None)
    assert balance(money) == (reserved, 0)
    assert any("script-9b, which has no price" in each for each in answer.json()["warnings"])
    assert "money" not in leaf_of(row_of(answer), "invocation.ended")["budget"]["spent"]


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize("figure", [10**30, -5, 1.5, "12", float("nan"), [3]], ids=str)
def test_a_figure_that_no_provider_can_mean_is_as_if_it_had_reported_nothing(
    figure: Any, caller: Caller, operator: Person, first: ModelServer
) -> None:
    budget = money_of(operator)
    first.answer = lambda _: chat_reply("Hi", usage={"prompt_tokens": figure, "completion_tokens": 2})

    answer = ask(caller, say("Hello"), model=FIRST)

    assert answer.status_code == 200, answer.content
    assert usage_in_end(answer)["settled_by"] == "estimate"
    assert 0 < balance(budget)[0] < 10_000
    assert kinds_of(row_of(answer)) == PAIR


@pytest.mark.req("LLM-7")
def test_vectors_that_the_hub_cannot_use_are_paid_for_all_the_same(
    caller: Caller, operator: Person, money: Budget, bench: ProviderBench
) -> None:
    connect_scripted_model(operator.by, "vectors", operation="embed", unpriced="count")
    bench.vectors = ((1.0,), (2.0,))

    answer = ask(caller, {"items": ["x"]}, model="model.script.vectors", operation="embed")

    assert_problem(answer, 502, "PROVIDER.BAD_RESPONSE")
    assert balance(money) == (1, 0)
