"""Meter alarms: is a provider found that begins to report more or less of a model, and is an honest one left in peace?"""

from __future__ import annotations

import json
import logging
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils.translation import override

from evidence.integrity.alarms import METERED, list_alarms
from evidence.models import Fact
from invocations.model_meters import meter_book
from invocations.model_meters.learned_counts import find_learned_counts, forget_learned_counts
from invocations.model_meters.meter_book import MeterBook, MeteredModel, MeterSums
from invocations.model_meters.models import ModelMeter
from invocations.model_meters.services import LEARNED_CALLS, write_sums
from llm.answers import ChatDelta, FinishReason
from llm.meter_windows import MIN_CALLS, MeterWindow
from llm.usage import Usage
from tests.support.connected_models import connect_scripted_model
from tests.support.model_calls import ask, say
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(tenant: Tenant) -> MeteredModel:
    return MeteredModel(tenant.pk, "openai", "gpt-4o")


def report(model: MeteredModel, calls: int, *, factor: float = 1.0, seed: int = 1) -> None:
    """Calls whose texts have three quarters of a token for what the hub counts, give or take a tenth; ``factor``: the lie."""
    chosen = random.Random(seed)
    for _ in range(calls // meter_book.CALLS):
        sums = MeterSums()
        for _ in range(meter_book.CALLS):
            tokens = chosen.randrange(200, 4000)
            sums.add(round(tokens * factor), round(tokens / 0.75 * chosen.uniform(0.9, 1.1)))
        write_sums(model, {"input": sums})


def facts() -> list[dict[str, Any]]:
    rows = Fact.objects.filter(kind="model_meter.differed").order_by("id")
    return [json.loads(bytes(row.leaf))["data"] for row in rows]


@pytest.mark.req("LLM-14")
@pytest.mark.parametrize(("factor", "per_mille"), [(1.02, 20), (0.98, -20)])
def test_two_per_cent_are_a_fact_an_alarm_and_a_line_in_the_log_once(
    factor: float, per_mille: int, model: MeteredModel, caplog: pytest.LogCaptureFixture
) -> None:
    report(model, LEARNED_CALLS)
    with caplog.at_level(logging.WARNING, logger="toolhub.models"):
        report(model, 2000, factor=factor, seed=2)

    [fact] = facts()
    assert (fact["provider"], fact["name"], fact["figure"]) == ("openai", "gpt-4o", "input")
    assert abs(fact["difference_per_mille"] - per_mille) < 12
    with override("en"):
        [alarm] = [each for each in list_alarms(model.tenant_id) if each.kind == METERED]
        assert "openai · gpt-4o, input:" in alarm.said
        assert alarm.title == "A provider reports other figures than before"
    assert caplog.text.count("than was to be expected") == 1


@pytest.mark.req("LLM-14")
@pytest.mark.parametrize("factor", [1.0, 1.004, 0.996])
def test_what_is_less_than_half_a_per_cent_raises_none(factor: float, model: MeteredModel) -> None:
    report(model, LEARNED_CALLS)
    report(model, 3000, factor=factor, seed=3)

    assert facts() == []


@pytest.mark.req("LLM-14")
def test_what_was_learned_does_not_follow_a_provider_that_reports_a_little_more_each_time(model: MeteredModel) -> None:
    report(model, LEARNED_CALLS)
    for step in range(1, 8):
        report(model, 1000, factor=1 + 0.004 * step, seed=step)

    assert facts()


@pytest.mark.req("LLM-14")
def test_an_alarm_stays_for_a_week(model: MeteredModel) -> None:
    report(model, LEARNED_CALLS)
    report(model, 1000, factor=1.1, seed=2)
    row = ModelMeter.objects.get()
    assert row.differed_at is not None
    ModelMeter.objects.update(differed_at=row.differed_at - timedelta(days=7, minutes=1))

    assert [each for each in list_alarms(model.tenant_id) if each.kind == METERED] == []


@pytest.mark.req("LLM-14")
def test_what_a_provider_says_it_charges_is_held_against_the_price_itself(model: MeteredModel) -> None:
    sums = MeterSums()
    for _ in range(MIN_CALLS):
        sums.add(1_020, 1_000)
    write_sums(model, {"money": sums})

    assert [(each["figure"], each["difference_per_mille"]) for each in facts()] == [("money", 20)]


@pytest.mark.req("LLM-14")
def test_sums_of_several_processes_come_together(model: MeteredModel) -> None:
    books = [MeterBook(), MeterBook()]
    for _ in range(meter_book.CALLS):
        for book in books:
            if (figures := book.add(model, {"output": (100, 150)})) is not None:
                write_sums(model, figures)

    row = ModelMeter.objects.get(figure="output")
    assert MeterWindow(*row.window).calls == 2 * meter_book.CALLS
    assert row.most_per_mille == 667


@pytest.mark.req("LLM-14")
def test_a_book_holds_a_bounded_number_of_models(model: MeteredModel) -> None:
    book = MeterBook()
    for number in range(meter_book.MAX_MODELS + 50):
        book.add(model._replace(model=f"m-{number}"), {"input": (1, 1)})

    assert len(book._pages) == meter_book.MAX_MODELS


@pytest.fixture
def connected(operator: Person, grant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_book, "CALLS", 1)
    forget_learned_counts()
    grant("model.*")
    connect_scripted_model(operator.by, unpriced="count")


@pytest.mark.req("LLM-14")
@pytest.mark.usefixtures("connected")
def test_the_end_of_a_call_that_the_provider_counted_is_compared_and_an_estimate_is_not(
    caller: Caller, bench: ProviderBench
) -> None:
    silent = (ChatDelta(text="Hi"), ChatDelta(finish_reason=FinishReason.STOP, usage=Usage()))
    bench.scripts = [text_answer("Hi there"), silent]

    counted = ask(caller, say("Hello"), operation="preflight").json()["data"]["model"]["input_tokens"]
    ask(caller, say("Hello"))
    ask(caller, say("Hello"))

    sums = {row.figure: MeterWindow(*row.window) for row in ModelMeter.objects.all()}
    assert {figure: (each.calls, each.reported, each.counted) for figure, each in sums.items()} == {
        "input": (1, 10, counted),
        "output": (1, 2, 3),
    }


@pytest.mark.req("LLM-7")
@pytest.mark.usefixtures("connected")
def test_a_provider_that_counts_more_than_the_hub_has_the_next_call_reserve_more(
    caller: Caller, bench: ProviderBench
) -> None:
    usage = ChatDelta(finish_reason=FinishReason.STOP, usage=Usage(300, 2))
    bench.scripts = [(ChatDelta(text="Hi"), usage)] * 2
    before = ask(caller, say("Hello"), operation="preflight").json()["data"]["model"]["input_tokens"]
    ask(caller, say("Hello"))
    forget_learned_counts()

    after = ask(caller, say("Hello"), operation="preflight").json()["data"]["model"]["input_tokens"]

    assert before < 300 < after <= 330


@pytest.mark.req("LLM-7")
def test_less_is_reserved_once_enough_was_learned_and_never_less_than_any_call_had(model: MeteredModel) -> None:
    report(model, LEARNED_CALLS)
    forget_learned_counts()

    learned = find_learned_counts(*model).input

    assert 0.75 / 0.9 * 1000 < learned.bound(1000) < 1000
    assert abs(learned.estimate(1000) - 750) < 10
    assert learned.bound(50) == 50
