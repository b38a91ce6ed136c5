"""Journal costs: does what calls cost come to what genai-prices makes of the providers' own journals, and is one that lies found
by its calls?
"""

from __future__ import annotations

import json
import random
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import genai_prices
import pytest

from access.budgets.services import set_budget
from evidence.integrity.alarms import METERED, list_alarms
from evidence.models import Fact
from invocations.model_calls import model_prices
from invocations.model_meters import learned_counts
from invocations.model_meters import services as meters
from invocations.model_meters.meter_book import MeterBook
from invocations.models import Invocation
from llm import meter_windows
from llm.prices import MILLION, VENDORS, PricedModel
from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import connect_provider
from registry.secrets.services import set_secret
from tests.support.budgets import DAY, assert_conserved, balance
from tests.support.model_calls import ask, say
from tests.support.model_servers import Reply, model_server
from tests.support.model_streams import STREAMS
from tests.support.provider_wires import as_sent, build_whole, frame_event, text_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Caller, Person
    from tests.support.http_server import Heard
    from tests.support.model_servers import ModelServer

pytestmark = pytest.mark.django_db
DIFFERED = "model_meter.differed"
ENOUGH = 30
# A kind of provider, its wire, what its journal is called there, the model that is asked, and those that answer.
WIRES: list[tuple[str, str, str, str, list[str]]] = [
    ("openai", "openai", "chat", "gpt-4o", ["gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-mini"]),
    ("openai_responses", "openai-responses", "responses", "gpt-4o", ["gpt-4o-2024-08-06"]),
    ("anthropic", "anthropic", "default", "claude-haiku-4-5", ["claude-haiku-4-5-20251001"]),
    ("gemini", "gemini", "default", "gemini-2.5-flash", ["gemini-2.5-flash"]),
]


@dataclass
class Journal:
    """Of one provider: whole answers as it has sent them. ``lie``: how much more it reports than there was."""

    wire: tuple[str, str, str, str, list[str]]
    chosen: random.Random
    answers: list[dict[str, Any]] = field(default_factory=list)
    lie: float = 1.0

    def answer(self, heard: Heard) -> Reply:
        _, dialect, _, _, models = self.wire
        whole = build_whole(dialect, text=self._draw_text(heard), calls=False)
        whole |= {"modelVersion" if dialect == "gemini" else "model": self.chosen.choice(models)}
        whole |= {"usageMetadata" if dialect == "gemini" else "usage": self._draw_usage(dialect)}
        self.answers.append(whole)
        events = [as_sent(each) for each in STREAMS[dialect](whole)]
        if dialect == "openai-responses":
            events[1:1] = text_events(whole["output"][0])
        if dialect in ("openai", "gemini"):  # whose last chunk has it
            events[-1] |= {name: whole[name] for name in ("usage", "usageMetadata") if name in whole}
        if dialect == "anthropic":  # whose first event has what was read
            events[0]["message"]["usage"] = whole["usage"] | {"output_tokens": 0}
        framed = [frame_event(each, dialect) for each in events]
        done = [b"data: [DONE]\n\n"] if dialect == "openai" else []
        return Reply([b"".join([*framed, *done])], content_type="text/event-stream")

    def _draw_text(self, heard: Heard) -> str:
        if b'"a JSON, please"' not in heard.body:
            return "word " * self.chosen.randrange(1, 40)
        return self.chosen.choice(['{"a": 1}', "no JSON"])

    def _draw_usage(self, dialect: str) -> dict[str, Any]:
        read, written, thought = (self.chosen.randrange(1, most) for most in (90_000, 4_000, 2_000))
        cached = self.chosen.choice([0, read // 3])
        if dialect == "anthropic":
            kept = self.chosen.choice([0, read // 4])
            rest = {"cache_read_input_tokens": cached, "cache_creation_input_tokens": kept}
            return {"input_tokens": read - cached - kept, "output_tokens": written, **rest}
        if dialect == "gemini":
            counts = {"promptTokenCount": read, "candidatesTokenCount": written, "thoughtsTokenCount": thought}
            return counts | {"cachedContentTokenCount": cached}
        names = ("prompt", "completion") if dialect == "openai" else ("input", "output")
        return {
            f"{names[0]}_tokens": read,
            f"{names[1]}_tokens": written + thought,
            "total_tokens": read + written + thought,
            f"{names[0]}_tokens_details": {"cached_tokens": cached},
            f"{names[1]}_tokens_details": {"reasoning_tokens": thought},
        }

    def compute_usd(self, at: datetime) -> Decimal:
        kind, _, flavour, _, _ = self.wire
        found = (
            genai_prices.extract_usage(each, provider_id=VENDORS[kind], api_flavor=flavour) for each in self.answers
        )
        return sum((each.calc_price(genai_request_timestamp=at).total_price for each in found), Decimal(0))


@contextmanager
def connected(journal: Journal, name: str, operator: Person) -> Iterator[ModelServer]:
    kind, _, _, model, _ = journal.wire
    with model_server(journal.answer) as server:
        terms: dict[str, Any] = {"kind": kind, "address": f"{server.url}/v1", "secret": "wire.key"}
        connect_provider(name=name, reason="for a test", by=operator.by, **terms)
        connect_model(provider=name, alias="main", model=model, reason="for a test", by=operator.by)
        yield server


@pytest.fixture
def vendors(operator: Person, grant: Callable[..., Any], settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers on this machine that cost what those cost whose wires they speak."""

    def price(provider: str, model: str, kind: str, _: str) -> PricedModel:
        return PricedModel(provider, model, kind)

    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setattr(model_prices, "PricedModel", price)
    set_secret(name="wire.key", value="sk-journal-0123456789", by=operator.by)
    grant("model.*")


@pytest.mark.req("LLM-7")
@pytest.mark.usefixtures("vendors")
@pytest.mark.parametrize("calls", [36, pytest.param(1000, marks=pytest.mark.long)])
def test_mixed_calls_cost_within_half_a_per_cent_of_what_the_raw_journals_come_to(
    calls: int, caller: Caller, operator: Person
) -> None:
    chosen = random.Random(17)
    journals = [Journal(wire, chosen) for wire in WIRES]
    budget = set_budget(scope="tenant", dimension="money", amount=10**12, window_s=365 * DAY, by=operator.by)
    schema = {"type": "schema", "json_schema": {"type": "object", "required": ["a"]}}
    kinds: list[dict[str, Any]] = [{}, {"stream": True}, {"response_format": schema}]
    servers = [connected(journal, f"vendor{place}", operator) for place, journal in enumerate(journals)]
    with servers[0], servers[1], servers[2], servers[3]:
        for number in range(calls):
            ask_one(caller, f"model.vendor{number % len(journals)}.main", dict(chosen.choice(kinds)), chosen)

    expected = float(sum(each.compute_usd(datetime.now(UTC)) for each in journals))
    settled, held = balance(budget)
    assert sum(len(each.answers) for each in journals) > calls, "some were asked for JSON twice"
    assert Invocation.objects.count() == calls
    assert held == 0
    assert abs(settled / MILLION - expected) <= 0.005 * expected
    assert_conserved()


def ask_one(caller: Caller, model: str, kind: dict[str, Any], chosen: random.Random) -> None:
    headers = {"Accept": "text/event-stream"} if kind.pop("stream", False) else {}
    words = "a JSON, please" if kind else "word " * chosen.randrange(1, 40)
    answer = ask(caller, say(words, max_tokens=50, **kind), model=model, headers=headers)
    assert answer.status_code == 200 or answer.json()["error"]["reason"] == "SCHEMA.VALIDATION_FAILED"


@pytest.mark.req("LLM-14")
@pytest.mark.usefixtures("vendors")
def test_a_provider_that_begins_to_report_two_per_cent_more_is_found_by_the_calls_that_are_made(
    caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts two tokens for three of what the hub counts, give or take half a per cent: few calls say enough."""
    for module in (meter_windows, learned_counts, meters):
        monkeypatch.setattr(module, "MIN_CALLS", ENOUGH)
    monkeypatch.setattr(meters, "_book", MeterBook())
    learned_counts.forget_learned_counts()
    chosen, told = random.Random(5), []
    journal = CountingJournal(WIRES[0], chosen)
    with connected(journal, "vendor", operator):
        for lie in (1.0, 1.02):
            journal.lie = lie
            for _ in range(ENOUGH + 10):
                ask(caller, say("word " * chosen.randrange(300, 900)), model="model.vendor.main")
            told.append([json.loads(bytes(row.leaf))["data"] for row in Fact.objects.filter(kind=DIFFERED)])

    [fact] = told[1]
    assert told[0] == []
    assert (fact["figure"], abs(fact["difference_per_mille"] - 20) <= 5) == ("input", True)
    assert len([each for each in list_alarms(operator.by.tenant_id) if each.kind == METERED]) == 1


class CountingJournal(Journal):
    """Of one that reports what it has read, and from some day on a little more."""

    def answer(self, heard: Heard) -> Reply:
        self._read = len(json.loads(heard.body)["messages"][-1]["content"])
        return super().answer(heard)

    def _draw_text(self, heard: Heard) -> str:
        return "word " * 30

    def _draw_usage(self, dialect: str) -> dict[str, Any]:
        read = round(self._read / 4.5 * self.chosen.uniform(0.995, 1.005) * self.lie)
        return {"prompt_tokens": read, "completion_tokens": 30, "total_tokens": read + 30}
