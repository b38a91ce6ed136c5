"""Hot changes: what becomes of answers that are on their way while what they were asked under is changed?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from invocations.model_calls import model_runs, tenant_providers
from invocations.models import Invocation
from kernel.http.deferred_responses import Handler
from registry.model_providers.connected_models import change_model, connect_model
from registry.model_providers.services import change_provider
from tests.support.calls import PAIR, kinds_of
from tests.support.connected_models import SCRIPTED, set_script_prices
from tests.support.model_calls import HeldChat, OpenStream, build_body, leaf_of, say, until
from tests.support.scripted_models import ScriptedProvider

if TYPE_CHECKING:
    from llm.provider_factory import ProviderConfig
    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db(transaction=True)
STREAMS = 20
CHANGES: dict[str, dict[str, Any]] = {
    "an alias": {"model": "other-model"},
    "limits": {"max_output_tokens": 50, "default_output_tokens": 50},
    "fallbacks": {"fallbacks": ["model.script.small"]},
    "timeouts": {"settings": {"timeouts": {"idle_s": 7, "total_s": 9}}},
    "prices": {"prices": "100"},
    "retries": {"settings": {"retries": 5, "rates": {"requests": 1000}}},
}


class HeldProvider(ScriptedProvider):
    """Its answers wait; it is told when its connections are closed."""

    def __init__(self, cfg: ProviderConfig) -> None:
        super().__init__(cfg)
        self.chat: Any = HeldChat()
        self.closed = 0

    def _check_name(self, name: str) -> None:
        del name

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[HeldProvider]:
    """Each provider that was connected, in their order."""
    found: list[HeldProvider] = []

    def connect(cfg: ProviderConfig) -> HeldProvider:
        found.append(HeldProvider(cfg))
        return found[-1]

    monkeypatch.setitem(tenant_providers.KINDS, SCRIPTED, connect)
    return found


def change(operator: Person, terms: dict[str, Any]) -> None:
    """In a thread, as a request does."""
    try:
        if "prices" in terms:
            set_script_prices(operator.by, input=terms["prices"], output=terms["prices"])
        elif "settings" in terms:
            change_provider(name="script", reason="for a test", by=operator.by, **terms)
        else:
            change_model(provider="script", alias="main", reason="for a test", by=operator.by, **terms)
    finally:
        connections.close_all()


async def open_streams(handler: Handler, caller: Caller, count: int) -> list[OpenStream]:
    streams = [OpenStream(handler, caller, build_body(caller, say("Hello"))) for _ in range(count)]
    for stream in streams:
        await stream.send()
    for stream in streams:
        await stream.read(until="Begin")
    return streams


@pytest.mark.req("LLM-10", "LLM-14")
@pytest.mark.parametrize("terms", CHANGES.values(), ids=CHANGES)
def test_streams_go_on_as_they_were_accepted_and_the_next_call_gets_what_was_changed(
    terms: dict[str, Any], caller: Caller, operator: Person, model: Tool, made: list[HeldProvider]
) -> None:
    connect_model(
        provider="script", alias="small", model="script", unpriced="count", reason="for a test", by=operator.by
    )

    set_script_prices(operator.by, input="1", output="1")

    async def story() -> tuple[list[Any], list[Any]]:
        handler = Handler(4)
        streams = await open_streams(handler, caller, STREAMS)
        await sync_to_async(change, thread_sensitive=False)(operator, terms)
        later = await open_streams(handler, caller, 1)
        for provider in made:
            provider.chat.go_on.set()
        answers = [(await stream.read())[-1] for stream in [*streams, *later]]
        await until(lambda: not model_runs._whole_runs)
        await sync_to_async(connections.close_all)()
        return answers, [provider.closed for provider in made]

    answers, closed = asyncio.run(story())

    assert {event for event, _ in answers} == {"end"}
    assert {data["data"]["text"] for _, data in answers} == {"Beginning"}
    *calls, latest = Invocation.objects.select_related("version").order_by("created_at", "id")
    assert {kinds_of(each) == PAIR for each in (*calls, latest)} == {True}
    [version] = {each.version for each in calls}
    began = [leaf_of(each, "invocation.began")["model"] for each in (calls[0], latest)]
    assert (latest.version != version) is ("prices" not in terms)
    assert (began[0] != began[1]) is not bool({"settings", "prices"} & terms.keys())
    *costs, cost = (data["data"]["usage"]["cost_micros"] for _, data in answers)
    assert len(set(costs)) == 1
    assert (cost == 100 * costs[0]) is ("prices" in terms)
    # What was reached otherwise has new connections, and the old ones are closed behind their last stream.
    is_new = "timeouts" in terms.get("settings", {})
    assert closed == ([1, 0] if is_new else [0])
