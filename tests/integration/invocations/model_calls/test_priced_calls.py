"""Priced calls: which prices does a call have, and what does it say that they were?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from access.budgets.services import set_budget
from invocations.model_calls import model_runs
from invocations.models import Invocation
from kernel.http.deferred_responses import Handler
from registry.model_prices.price_tables import forget_price_tables, get_price_table
from tests.support.budgets import DAY, balance
from tests.support.calls import assert_problem
from tests.support.connected_models import set_script_prices
from tests.support.model_calls import HeldChat, OpenStream, ask, build_body, say, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

EUROS: dict[str, Any] = {"currency": "EUR", "rates": [{"effective_from": "2026-01-01", "rate": "0.5"}]}


@pytest.mark.django_db(transaction=True)
@pytest.mark.req("LLM-7", "LLM-10")
def test_a_stream_keeps_the_prices_that_it_was_accepted_with_while_the_next_call_has_others(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    cheap = set_script_prices(operator.by, input="1", output="1")
    body = build_body(caller, say("Hello", max_tokens=100))

    async def story() -> list[Any]:
        chat, handler = HeldChat(), Handler(4)
        bench.chat = chat
        first, second = OpenStream(handler, caller, body), OpenStream(handler, caller, body)
        await first.send()
        await first.read(until="Begin")
        await sync_to_async(set_script_prices, thread_sensitive=False)(operator.by, input="100", output="100")
        await second.send()
        await second.read(until="Begin")
        chat.go_on.set()
        ends = [(await each.read())[-1] for each in (first, second)]
        await until(lambda: not model_runs._whole_runs)
        await sync_to_async(connections.close_all)()
        return ends

    ends = asyncio.run(story())

    assert [event for event, _ in ends] == ["end", "end"]
    used = [envelope["data"]["usage"] for _, envelope in ends]
    tokens = [each["input_tokens"] + each["output_tokens"] for each in used]
    assert [each["cost_micros"] for each in used] == [tokens[0], tokens[1] * 100]
    assert used[0]["price_version"] == get_price_table(cheap).version != used[1]["price_version"]
    assert Invocation.objects.filter(state="succeeded").count() == 2


@pytest.mark.django_db
@pytest.mark.req("LLM-7")
def test_a_process_that_has_read_nothing_yet_prices_the_next_call_by_what_another_has_set(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    set_script_prices(operator.by, input="1")
    first = ask(caller, say("Hello")).json()["data"]["usage"]
    set_script_prices(operator.by, input="7")
    forget_price_tables()

    second = ask(caller, say("Hello")).json()["data"]["usage"]

    assert second["cost_micros"] == 7 * first["cost_micros"]


@pytest.mark.django_db
@pytest.mark.req("LLM-7")
def test_what_a_call_costs_is_in_the_currency_of_budgets_by_the_rate_that_its_price_version_names(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    budget = set_budget(scope="tenant", dimension="money", amount=10_000, window_s=365 * DAY, by=operator.by)
    row = set_script_prices(operator.by, input="1", output="1", **EUROS)
    preflight = ask(caller, say("Hello", max_tokens=99), operation="preflight").json()["data"]["model"]

    usage = ask(caller, say("Hello", max_tokens=99)).json()["data"]["usage"]

    assert preflight["cost_micros"] == -(-(preflight["input_tokens"] + 99) // 2)
    assert (preflight["currency"], preflight["price"]["rate"], preflight["price"]["input"]) == ("EUR", "0.5", "1")
    assert (usage["currency"], usage["cost_micros"]) == ("EUR", (usage["input_tokens"] + usage["output_tokens"]) // 2)
    assert usage["price_version"] == preflight["price_version"] == get_price_table(row).version
    assert balance(budget) == (usage["cost_micros"], 0)


@pytest.mark.django_db
@pytest.mark.req("LLM-7")
def test_what_has_no_price_is_unpriced_and_never_free(
    caller: Caller, connect: Callable[..., Tool], grant: Callable[..., Any], bench: ProviderBench
) -> None:
    grant("model.*")
    connect()
    connect(alias="strict", unpriced="refuse")

    usage = ask(caller, say("Hello")).json()["data"]["usage"]
    preflight = ask(caller, say("Hello"), operation="preflight").json()["data"]["model"]

    assert (usage["cost_micros"], usage["price_version"]) == (None, None)
    assert (preflight["cost_micros"], preflight["price"]) == (None, None)
    assert_problem(ask(caller, say("Hello"), model="model.script.strict"), 403, "MODEL.UNPRICED")
