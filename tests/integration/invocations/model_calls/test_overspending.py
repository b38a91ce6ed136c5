"""Overspending: can calls of a model that come at once take more than there is?"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from access.budgets.services import set_budget
from invocations.model_calls import model_runs
from invocations.model_calls.token_counts import estimate_request
from invocations.models import Invocation
from kernel.http.deferred_responses import Handler
from llm.documents import read_document
from llm.requests import ChatRequest
from tests.support.budgets import DAY, assert_conserved, balance
from tests.support.connected_models import set_script_prices
from tests.support.model_calls import HeldChat, OpenStream, build_body, say, until

if TYPE_CHECKING:
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
CALLS, ENOUGH_FOR = 200, 10


@pytest.mark.req("LLM-11")
@pytest.mark.parametrize("dimension", ["tokens", "money"])
def test_of_two_hundred_calls_at_once_ten_reach_the_provider_where_there_is_enough_for_ten(
    dimension: str, caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    set_script_prices(operator.by, input="1", output="1")  # a millionth of a dollar for each token
    arguments = say("Hello", max_tokens=100)
    takes = 100 + estimate_request(read_document(ChatRequest, arguments | {"model": "script:script"}))
    amount = ENOUGH_FOR * takes + takes - 1
    budget = set_budget(scope="tenant", dimension=dimension, amount=amount, window_s=365 * DAY, by=operator.by)

    async def story() -> tuple[HeldChat, list[int]]:
        chat, handler = HeldChat(), Handler(8)
        bench.chat = chat
        requests = [
            OpenStream(handler, caller, build_body(caller, arguments), accept="application/json") for _ in range(CALLS)
        ]
        for request in requests:
            await request.send()
        reading = [asyncio.create_task(request.read()) for request in requests]
        # The provider lets nobody go before all others were refused, so that what is taken is all of what is held.
        await until(lambda: sum(each.done() for each in reading) == CALLS - ENOUGH_FOR, at_most_s=180)
        chat.go_on.set()
        await asyncio.gather(*reading)
        await until(lambda: not model_runs._whole_runs)
        await sync_to_async(connections.close_all)()
        return chat, [request.status for request in requests]

    chat, statuses = asyncio.run(story())

    assert chat.asked == ENOUGH_FOR
    assert Counter(statuses) == {200: ENOUGH_FOR, 429: CALLS - ENOUGH_FOR}
    assert Invocation.objects.filter(state="succeeded").count() == ENOUGH_FOR
    used: Any = balance(budget)
    assert used[1] == 0
    assert used[0] <= amount
    assert_conserved()
