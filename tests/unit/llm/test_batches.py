"""Batches: are the items of a large request asked for in parts, and is the whole one answer or none?"""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.problems import ProviderAnswerUnreadable, ProviderRateLimited
from llm.providers.batches import BatchLimits, ask_in_batches, find_one_model, split_items, sum_usages
from llm.usage import Usage


@pytest.mark.req("LLM-6")
@given(items=st.lists(st.text(max_size=6), max_size=30), most=st.integers(1, 7), size=st.integers(1, 12))
def test_batches_hold_every_item_once_in_its_order_and_keep_both_limits(items: list[str], most: int, size: int) -> None:
    batches = list(split_items(items, BatchLimits(most, size)))

    assert [item for batch in batches for item in batch] == items
    for batch in batches:
        assert 0 < len(batch) <= most
        assert len(batch) == 1 or sum(len(item.encode()) for item in batch) <= size


@pytest.mark.req("LLM-6")
def test_answers_come_in_the_order_of_the_batches_and_few_are_asked_beside_each_other() -> None:
    at_once: list[int] = []
    running = 0

    async def ask(number: int, items: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        nonlocal running
        running += 1
        at_once.append(running)
        for _ in range(10 - number):  # the later a batch, the sooner it is answered
            await anyio.lowlevel.checkpoint()
        running -= 1
        return number, items

    async def main() -> list[tuple[int, tuple[str, ...]]]:
        return await ask_in_batches([str(n) for n in range(20)], BatchLimits(2, max_parallel=3), ask)

    answers = anyio.run(main)

    assert answers == [(n, (str(2 * n), str(2 * n + 1))) for n in range(10)]
    assert max(at_once) == 3


@pytest.mark.req("LLM-6", "LLM-9")
def test_one_batch_that_fails_fails_the_whole_with_its_problem_and_stops_the_others() -> None:
    stopped: list[int] = []

    async def ask(number: int, items: tuple[str, ...]) -> None:
        if number == 1:
            raise ProviderRateLimited(retry_after_s=7)
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(number)

    async def main() -> None:
        await ask_in_batches("abcd", BatchLimits(1), ask)

    with pytest.raises(ProviderRateLimited) as refused:
        anyio.run(main)
    assert refused.value.retry_after == 7
    assert set(stopped) == {0, 2, 3}


@pytest.mark.req("LLM-5")
def test_a_sum_of_usages_is_known_only_where_every_part_of_it_is() -> None:
    assert sum_usages([Usage(3), Usage(4, cached_tokens=1)]) == Usage(7, cached_tokens=1, requests=2)
    assert sum_usages([Usage(3), None]) is None
    assert sum_usages([]) is None


@pytest.mark.req("LLM-9")
def test_two_models_in_the_answers_to_one_request_are_refused() -> None:
    assert find_one_model(["", "a", "a"]) == "a"
    assert find_one_model([""]) == ""
    with pytest.raises(ProviderAnswerUnreadable):
        find_one_model(["a", "b"])
