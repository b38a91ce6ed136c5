"""Models for clients: how both clients and the demonstration ask the models of a served hub, and proposals become calls of tools."""

from __future__ import annotations

import asyncio
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import UNPAIRED, Embedded, copy_of
from tests.e2e.processes import ROOT, python, run, until
from tests.support.chat_provider import ARGUMENTS, BREAK_OFF, REFUSE, STALL, answer_request
from tests.support.doc_blocks import ALL
from tests.support.model_servers import ModelServer, model_server
from unitools.hub import AsyncHubClient, HubClient, StillRunning, new_key
from unitools.hub.errors import InvalidArgument, NotFound, Refused, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOL = "commerce.pricing.get_realtime_quote"
MODEL = "model.house.talks"


@dataclass(frozen=True, slots=True)
class World:
    hub: Embedded
    key: str
    provider: ModelServer

    def client(self) -> HubClient:
        return HubClient(self.hub.url, self.key, agent="shopping-assistant")

    def state(self, call_id: str) -> str:
        """Of a call that ends beside its caller."""
        with self.client() as client:
            try:
                client.wait(call_id)
            except Refused as refused:
                return refused.reason
        return "OK"


@pytest.fixture(scope="module")
def world(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with model_server(answer_request) as provider:
        near = {"TOOLHUB_OUTBOUND_NETWORKS": "127.0.0.0/8"}
        hub = copy_of(prepared, tmp_path_factory.mktemp("models") / "hub", **near)
        key = run(python("-m", "tests.e2e.model_world", provider.url), hub.env)
        with hub.served():
            yield World(hub, key, provider)
    assert hub.count(UNPAIRED) == 0


@pytest.mark.req("LLM-1", "LLM-4")
def test_a_model_proposes_the_hub_calls_and_the_model_goes_on(world: World) -> None:
    with world.client() as hub:
        question = "What do two laptops cost?"
        asked = hub.chat("talks", question, tools=["commerce.pricing.*"], max_tokens=200)
        done = hub.dispatch(asked)
        told = hub.chat("talks", [question, asked, *done.messages], tools="commerce.pricing.*")

    (proposal,), (call,) = asked.proposals, done.calls
    assert (asked.finish_reason, proposal.name, proposal.proposed_by) == ("tool", TOOL, asked.call_id)
    assert (call.id, call.status, call.data["total"]) == (proposal.id, "ok", "1898.00")
    assert call.envelope["call"]["proposed_by"] == asked.call_id
    assert told.text.startswith("You said: ")
    assert '"total": "1898.00"' in told.text
    assert (told.usage.input_tokens, told.usage.output_tokens, told.usage.counted_by) == (12, 7, "provider")


def test_a_stream_is_the_same_answer_in_pieces_with_both_clients(world: World) -> None:
    async def stream(question: str) -> tuple[list[Any], Any]:
        async with (
            AsyncHubClient(world.hub.url, world.key) as hub,
            hub.stream(MODEL, question, temperature=0.0) as stream,
        ):
            return [each async for each in stream], stream.answer

    question = "Größe 中 😀"
    with world.client() as hub:
        whole = hub.chat(MODEL, question, temperature=0.0)
        with hub.stream(MODEL, question, temperature=0.0) as opened:
            pieces = list(opened)
            answers = [whole, opened.answer]
    others, answer = asyncio.run(stream(question))

    assert {each.text for each in [*answers, answer]} == {f"You said: {question}"}
    assert {each.usage for each in [*answers, answer]} == {whole.usage}
    assert len(pieces) > 1
    for deltas in (pieces, others):
        assert "".join(each.text for each in deltas) == whole.text


def test_leaving_a_stream_ends_the_call_and_the_providers_request(world: World) -> None:
    world.provider.left.clear()
    with world.client() as hub, hub.stream(MODEL, f"Please {STALL}") as stream:
        assert next(iter(stream)).text
    assert world.provider.left.wait(60)

    assert until(lambda: world.state(stream.call_id), "the call has its end") == "REQUEST.CANCELLED"


def test_a_key_of_ones_own_gets_the_first_answer_again(world: World) -> None:
    asked, key = len(world.provider.heard), new_key()
    with world.client() as hub:
        first = hub.chat(MODEL, "Hello", key=key)
        again = hub.chat(MODEL, "Hello", key=key)
        with hub.stream(MODEL, "Hello", key=key) as stream:
            told = "".join(each.text for each in stream)

    assert (first.text, first.replayed) == ("You said: Hello", False)
    assert (again.text, again.replayed, again.call_id, told) == (first.text, True, first.call_id, first.text)
    assert len(world.provider.heard) == asked + 1


def test_failures_are_those_of_other_calls(world: World) -> None:
    with world.client() as hub:
        for question, reason in ((REFUSE, "PROVIDER.AUTH"), (BREAK_OFF, "PROVIDER.STREAM_TRUNCATED")):
            with pytest.raises(UpstreamError) as refused:
                hub.chat(MODEL, question)
            assert refused.value.reason == reason
            with hub.stream(MODEL, question) as stream, pytest.raises(UpstreamError) as refused:
                list(stream)
            assert (refused.value.reason, refused.value.call_id) == (reason, stream.call_id)
        with pytest.raises(InvalidArgument, match="temperature"):
            hub.chat(MODEL, "Hello", temperature=9.0)
        with pytest.raises(NotFound), hub.stream("nobody", "Hello"):
            pass


@pytest.mark.req("LLM-7")
def test_models_are_listed_and_give_vectors_and_scores(world: World) -> None:
    with world.client() as hub:
        found = hub.models()
        (talks,) = hub.models(operation="chat")
        vectors = hub.embed("embeds", ["a red bicycle", "a boat"])
        scores = hub.rerank("ranks", "bicycles", ["a long text", "short"])

    assert {each.id for each in found} == {"model.house.talks", "model.house.embeds", "model.house.ranks"}
    assert (talks.provider, talks.features["tools"]) == ("house", "passed")
    assert [tuple(round(each, 6) for each in vector) for vector in vectors.vectors] == [(0.6, 0.8)] * 2
    assert (vectors.dim, scores.ordering, scores.usage.input_tokens) == (2, (1, 0), 5)


def tell_demonstration(world: World, model: str) -> subprocess.CompletedProcess[str]:
    """As the page says it, with another model."""
    page = "ask-a-model-of-this-machine.md"
    (shown,) = [block.text for block in ALL if block.page.name == page and block.elsewhere]
    (arguments,) = re.findall(r'^make demo ARGS="(.+)"$', shown, re.MULTILINE)
    command = python("scripts/demo.py", *arguments.replace("local:smollm2", model).split())
    env = world.hub.env | {"TOOLHUB_PUBLIC_URL": world.hub.url}
    return subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.req("LLM-3", "LLM-12", "CARD-3")
def test_the_demonstration_tells_how_a_model_comes_to_a_proven_answer_as_often_as_somebody_likes(world: World) -> None:
    for model in ("house:talks", MODEL):
        told = tell_demonstration(world, model)

        assert told.returncode == 0, told.stdout + told.stderr
        assert "approves: It is what the customer asked for." in told.stdout
        assert "the total of the quote is in the answer" in told.stdout
        proven = r"proposed   inv_\w+ by the answer of inv_\w+, of model.house.talks, and its values are those that were proposed"
        assert re.search(rf"{proven}\n\s+VERIFIED\n", told.stdout), told.stdout
        assert ("has made the agent" in told.stdout) == (model == "house:talks")


def test_in_the_demonstration_a_person_denies_what_the_customer_did_not_ask_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ARGUMENTS, "quantity", 200)

    told = tell_demonstration(world, MODEL)

    assert told.returncode == 2, told.stdout
    assert told.stdout.count("denies: It is not what the customer asked for.") == 3
    assert "did not come to a quote and an answer" in told.stderr


def test_the_demonstration_names_the_models_that_there_are(world: World) -> None:
    told = tell_demonstration(world, "local:smollm2")

    assert told.returncode == 1, told.stdout
    assert "model.house.talks" in told.stderr
    assert "make models" in told.stderr


@pytest.mark.req("LLM-3", "LLM-5")
def test_the_hub_takes_a_question_to_its_answer_and_tells_how(world: World) -> None:
    async def ask() -> Any:
        async with AsyncHubClient(world.hub.url, world.key, agent="shopping-assistant") as hub:
            return await hub.run(MODEL, "What do two laptops cost?", tools=TOOL, limits={"steps": 3})

    told: list[Any] = []
    with world.client() as hub:
        answer = hub.run(MODEL, "What do two laptops cost?", tools=TOOL, max_tokens=200, on_event=told.append)
    other = asyncio.run(ask())

    assert (answer.stop_reason, answer.problem, other.stop_reason) == ("finished", None, "finished")
    assert [(each.role, each.tool, each.state) for each in answer.steps] == [
        ("model", MODEL, "succeeded"),
        ("tool", TOOL, "succeeded"),
        ("model", MODEL, "succeeded"),
    ]
    assert [(each.role, each.tool) for each in other.steps] == [(each.role, each.tool) for each in answer.steps]
    assert '"total": "1898.00"' in answer.text
    assert [each.kind for each in told if each.kind != "model.delta"] == [
        "model.asked",
        "model.answered",
        "tool.called",
        "tool.ended",
        "model.asked",
        "model.answered",
    ]


class Enough(Exception):
    """So much was heard that the test goes on."""


@pytest.mark.req("LLM-5")
def test_the_words_of_a_model_come_before_it_has_ended_and_a_run_outlives_its_caller(world: World) -> None:
    question, key = f"Please {STALL}", new_key()

    def listen(event: Any) -> None:
        if event.kind == "model.delta":
            raise Enough(event.data["text"])

    with world.client() as hub:
        with pytest.raises(Enough) as heard:
            hub.run(MODEL, question, key=key, on_event=listen)
        with pytest.raises(StillRunning) as waiting:
            hub.run(MODEL, question, key=key, timeout_s=1)
        hub.cancel_run(waiting.value.call_id)
        ended = hub.wait_for_run(waiting.value.call_id)

    assert "You said: Please".startswith(str(heard.value))
    assert (ended.state, ended.stop_reason, ended.text) == ("cancelled", "cancelled", "")
    assert ended.problem is not None
    assert ended.problem.reason == "RUN.STOPPED"
