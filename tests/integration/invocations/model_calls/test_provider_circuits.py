"""Provider circuits: is a provider that fails left alone for a while, by all processes, and asked again when it is time?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from invocations.metrics import hub_gauges
from kernel.database.connections import database_time
from llm.answers import ChatDelta
from llm.problems import ProviderRateLimited, ProviderUnavailable, SafetyBlocked
from registry.model_providers.api import show_provider
from registry.model_providers.circuits import FAILURES, begin_try, count_answer, count_failure
from registry.model_providers.services import change_provider
from registry.models import ModelCircuit, ModelProvider
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.model_calls import ask, leaf_of, say
from tests.support.model_outages import chat_reply, connect_server
from tests.support.model_servers import Reply, model_server
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
REMOTE = "model.remote.main"


def open_circuit() -> None:
    """The one model has failed as often in a row as it takes."""
    for _ in range(FAILURES):
        count_failure(ModelProvider.objects.get(), "script", why="PROVIDER.UNAVAILABLE")


def let_time_pass() -> None:
    """The circuit has been open for as long as it may."""
    ModelCircuit.objects.update(open_until=database_time() - timedelta(seconds=1))


def states_of(operator: Person, caller: Caller) -> tuple[Any, Any]:
    """What people are told of the circuit, and what agents are."""
    circuit = show_provider(ModelProvider.objects.get(name="remote"))["models"][0]["circuit"]
    listed = caller.get("/models").json()["data"]["models"][0]["circuit"]
    return circuit and circuit["state"], listed


@pytest.mark.req("LLM-14")
def test_a_provider_that_is_killed_is_asked_a_few_times_then_left_alone_then_tried_once_and_used_again(
    caller: Caller, operator: Person, grant: Callable[..., Any], settings: Any
) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    grant("model.*")
    with model_server(chat_reply("Hi there")) as server:
        port = urlsplit(server.url).port
        connect_server(operator.by, "remote", server.url)
        assert ask(caller, say("Hello"), model=REMOTE).json()["data"]["text"] == "Hi there"
        assert states_of(operator, caller) == (None, "closed")

    killed = [ask(caller, say("Hello"), model=REMOTE) for _ in range(FAILURES)]
    left_alone = ask(caller, say("Hello"), model=REMOTE)

    assert {each.json()["error"]["reason"] for each in killed} == {"PROVIDER.UNAVAILABLE"}
    assert {row_of(each).state for each in killed} == {"failed"}
    assert_problem(left_alone, 503, "PROVIDER.UNAVAILABLE")
    assert int(left_alone["Retry-After"]) in range(1, 6)
    assert (row_of(left_alone).state, kinds_of(row_of(left_alone))) == ("denied", PAIR)
    assert states_of(operator, caller) == ("open", "open")

    assert port is not None
    with model_server(chat_reply("Here again"), port=port) as server:
        assert ask(caller, say("Hello"), model=REMOTE).status_code == 503
        assert server.heard == []
        let_time_pass()
        assert states_of(operator, caller) == ("half_open", "half_open")
        tried = ask(caller, say("Hello"), model=REMOTE)

    assert tried.json()["data"]["text"] == "Here again"
    assert states_of(operator, caller) == (None, "closed")


@pytest.mark.req("LLM-14")
def test_a_try_that_fails_opens_the_circuit_for_twice_as_long(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    ModelProvider.objects.update(settings={"retries": 3})
    bench.scripts = [(ProviderUnavailable(),)] * 20
    open_circuit()
    let_time_pass()

    answer = ask(caller, say("Hello"))

    assert_problem(answer, 503, "PROVIDER.UNAVAILABLE")
    assert len(bench.requests) == 1, "the call that tries is not made again"
    circuit = ModelCircuit.objects.get()
    assert circuit.opened == 2
    assert circuit.open_until is not None
    assert circuit.open_until > database_time() + timedelta(seconds=7)


@pytest.mark.req("LLM-14")
def test_of_many_that_come_when_it_is_half_open_one_tries(operator: Person, model: Tool) -> None:
    open_circuit()
    let_time_pass()
    first, second = (ModelCircuit.objects.get() for _ in range(2))  # seen by two processes

    assert begin_try(first, longest_s=30) is True
    with pytest.raises(ProviderUnavailable):
        begin_try(second, longest_s=30)


JSON = {"type": "schema", "json_schema": {"type": "object", "required": ["a"]}}


@pytest.mark.req("LLM-14")
def test_the_call_that_tries_may_ask_for_its_json_once_more(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    open_circuit()
    let_time_pass()
    bench.scripts = [text_answer("no JSON"), text_answer('{"a": 1}')]

    answer = ask(caller, say("Hello", response_format=JSON))

    assert answer.status_code == 200, answer.content
    assert answer.json()["data"]["output"] == {"a": 1}
    assert not ModelCircuit.objects.exists()


@pytest.mark.req("LLM-14")
def test_a_circuit_that_another_call_has_closed_since_keeps_nobody_from_asking(operator: Person, model: Tool) -> None:
    open_circuit()
    let_time_pass()
    seen = ModelCircuit.objects.get()
    count_answer(ModelProvider.objects.get(), "script")

    assert begin_try(seen, longest_s=30) is False


@pytest.mark.req("LLM-14")
def test_what_fails_once_and_is_answered_when_it_is_asked_again_is_no_failure(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    bench.scripts = [(ProviderUnavailable(retry_after_s=0),), text_answer("Hi there")]

    ask(caller, say("Hello"))

    assert not ModelCircuit.objects.exists()


@pytest.mark.req("LLM-14")
def test_a_request_that_a_provider_cannot_read_keeps_nobody_else_from_asking(
    caller: Caller, operator: Person, grant: Callable[..., Any], settings: Any
) -> None:
    """Some refuse a request with a text that is no JSON."""
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    grant("model.*")
    with model_server(Reply([b"bad picture"], 400, content_type="text/plain")) as server:
        connect_server(operator.by, "remote", server.url)
        for _ in range(FAILURES):
            assert_problem(ask(caller, say("Hello"), model=REMOTE), 502, "PROVIDER.BAD_RESPONSE")

    assert not ModelCircuit.objects.exists()


@pytest.mark.req("LLM-14")
def test_what_the_caller_or_the_account_is_refused_for_is_no_failure_of_the_provider(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    ModelProvider.objects.update(settings={"retries": 0})
    bench.scripts = [(SafetyBlocked(),), (ProviderRateLimited(),)] * FAILURES

    for _ in range(2 * FAILURES):
        ask(caller, say("Hello"))

    assert not ModelCircuit.objects.exists()


@pytest.mark.req("LLM-14")
def test_failures_between_answers_do_not_add_up(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    ModelProvider.objects.update(settings={"retries": 0})
    bench.scripts = [(ChatDelta(text="Half"),), text_answer("Hi there")] * FAILURES

    answers = [ask(caller, say("Hello")) for _ in range(2 * FAILURES)]

    assert [each.status_code for each in answers] == [502, 200] * FAILURES
    assert not ModelCircuit.objects.exists()


@pytest.mark.req("LLM-14")
def test_a_provider_that_is_reached_otherwise_begins_anew(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    open_circuit()

    change_provider(name="script", settings={"retries": 1}, reason="for a test", by=operator.by)

    assert ask(caller, say("Hello")).status_code == 200


@pytest.mark.req("LLM-14")
def test_each_request_that_was_sent_is_counted_and_only_the_answered_one_is_paid(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    bench.scripts = [
        (ProviderRateLimited(retry_after_s=0),),
        (ProviderUnavailable(retry_after_s=0),),
        text_answer("Hi"),
    ]

    answer = ask(caller, say("Hello"))

    usage, ended = answer.json()["data"]["usage"], leaf_of(row_of(answer), "invocation.ended")["model"]
    assert usage["requests"] == ended["requests"] == len(bench.requests) == 3
    assert (usage["input_tokens"], usage["output_tokens"]) == (10, 1)


@pytest.mark.req("LLM-14")
def test_the_hub_shows_which_models_it_does_not_ask(operator: Person, model: Tool) -> None:
    open_circuit()

    [seen] = hub_gauges._circuits(database_time())

    assert seen.attributes is not None
    assert (seen.value, seen.attributes["state"], seen.attributes["gen_ai.request.model"]) == (1, "open", "script")
