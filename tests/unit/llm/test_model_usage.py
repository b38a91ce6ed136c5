"""Model usage: do figures of a usage and parts of a cost say what they are, and never that something was free?"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from llm.answers import ChatAnswer, FinishReason
from llm.providers.wire_watches import ChatWatch
from llm.usage import Cost, Usage


@pytest.mark.req("LLM-7")
def test_usages_of_two_requests_add_up() -> None:
    first = Usage(100, 20, cached_tokens=40, image_units=1, audio_seconds=1.5)

    assert first + Usage(10, 2, estimated=True) == Usage(110, 22, 40, 1, 1.5, requests=2, estimated=True)


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize(
    "figures",
    [
        {"input_tokens": -1},
        {"output_tokens": -1},
        {"image_units": -1},
        {"audio_seconds": -0.1},
        {"audio_seconds": float("nan")},
        {"audio_seconds": float("inf")},
        {"requests": -1},
        {"input_tokens": 5, "cached_tokens": 6},
        {"cached_tokens": -1},
    ],
)
def test_a_usage_that_cannot_be_is_refused(figures: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"No figure|Cached tokens"):
        Usage(**figures)


@pytest.mark.req("LLM-7")
def test_a_usage_of_zeros_says_nothing() -> None:
    assert not Usage().is_metered
    assert Usage(1).is_metered
    assert Usage(audio_seconds=0.5).is_metered


@pytest.mark.req("LLM-7")
def test_a_cost_is_the_sum_of_its_parts_exactly() -> None:
    cost = Cost(Decimal("0.1"), Decimal("0.2"), image=Decimal("0.003"), audio=Decimal("0.0004"), price_version="7")

    assert cost.usd == Decimal("0.3034")
    assert cost.currency == "USD"


@pytest.mark.req("LLM-7")
def test_an_answer_without_a_price_has_no_cost_and_not_one_of_nothing() -> None:
    assert ChatAnswer(FinishReason.STOP, usage=Usage(10, 2)).cost is None


@pytest.mark.req("LLM-7")
def test_what_a_provider_charged_is_known_of_two_requests_where_it_said_so_of_both() -> None:
    one, other = Usage(1, charged_usd=Decimal("0.1")), Usage(2, charged_usd=Decimal("0.2"))
    assert (one + other).charged_usd == Decimal("0.3")
    assert (one + Usage(2)).charged_usd is None


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize(
    ("cost", "charged"),
    [
        (0.0021, Decimal("0.0021")),
        (0, Decimal(0)),
        ("0.1", None),
        (True, None),
        (-1, None),
        (float("nan"), None),
        (None, None),
    ],
)
def test_a_cost_in_a_stream_is_read_where_it_is_an_amount(cost: object, charged: Decimal | None) -> None:
    watch = ChatWatch()
    watch.read_event({"usage": {"prompt_tokens": 3, "completion_tokens": 1, "cost": cost}})
    assert watch.usage == Usage(3, 1, charged_usd=charged)
