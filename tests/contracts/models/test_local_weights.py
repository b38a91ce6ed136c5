"""Local weights: do real models in this process answer as every provider does, and leave the process as it was?"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from llm.answers import FinishReason
from llm.messages import Text, UserMessage
from llm.problems import ContextOverflow
from llm.provider_factory import ProviderConfig
from llm.providers import local_embeddings
from llm.providers.local import CHAT_NAME, LocalProvider
from llm.requests import ChatRequest, EmbedRequest, RerankRequest, SchemaFormat
from llm.streams import collect_answer
from scripts.provision import peers
from unitools.calls import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llm.answers import ChatAnswer
    from llm.interfaces import ChatModel

pytestmark = pytest.mark.long

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "born": {"type": "integer"}},
    "required": ["name", "born"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def provider() -> Iterator[LocalProvider]:
    folder = str(peers.ensure_local_models())
    sys.path.append(folder)
    yield LocalProvider(ProviderConfig("local"))
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def chat(provider: LocalProvider) -> ChatModel:
    return provider.get_chat_model(CHAT_NAME)


def asking(text: str, **given: Any) -> ChatRequest:
    usual = {"temperature": 0.0, "seed": 1, "max_tokens": 40, **given}
    return ChatRequest(model="local:small", messages=(UserMessage((Text(text),)),), **usual)


@pytest.mark.req("LLM-1", "LLM-5")
def test_a_model_answers_in_the_process_and_its_stream_is_its_whole_answer(chat: ChatModel) -> None:
    request = asking("What is the capital of France?")

    async def both() -> tuple[ChatAnswer, ChatAnswer]:
        return await chat.generate(request), await collect_answer(chat.stream(request))

    whole, streamed = anyio.run(both)
    assert "Paris" in whole.text
    assert (whole.text, whole.finish_reason) == (streamed.text, FinishReason.STOP)
    assert whole.usage is not None
    assert (whole.usage.is_metered, whole.usage.estimated) == (True, False)
    assert anyio.run(chat.generate, asking("Count to a hundred.", max_tokens=5)).finish_reason is FinishReason.LENGTH


@pytest.mark.req("LLM-3")
def test_a_small_model_proposes_a_call_because_a_grammar_holds_it_to_one(chat: ChatModel) -> None:
    tool = ToolSpec("acme.weather.get", "Weather of a city", CITY)

    answer = anyio.run(chat.generate, asking("What is the weather in Rome?", tools=(tool,), max_tokens=200))

    assert [(call.name, call.arguments) for call in answer.proposals] == [("acme.weather.get", {"city": "Rome"})]
    assert answer.finish_reason is FinishReason.TOOL


@pytest.mark.req("LLM-4")
def test_a_document_of_a_small_model_is_of_the_schema_that_was_asked_for(chat: ChatModel) -> None:
    wanted = SchemaFormat(PERSON)

    answer = anyio.run(chat.generate, asking("Ada Lovelace was born in 1815.", response_format=wanted, max_tokens=100))

    assert set(answer.output) == {"name", "born"}
    assert answer.repairs == ()


@pytest.mark.req("LLM-9")
def test_a_conversation_that_does_not_fit_is_refused(chat: ChatModel) -> None:
    with pytest.raises(ContextOverflow):
        anyio.run(chat.generate, asking("word " * 6000))


class Counted:
    """The runtime's own server, and how many pieces it made."""

    def __init__(self, server: Any) -> None:
        self.server, self.pieces = server, 0

    def handle_chat_completions(self, body: str, take: Any) -> None:
        def count(piece: str) -> Any:
            self.pieces += 1
            return take(piece)

        self.server.handle_chat_completions(body, count)


@pytest.mark.req("LLM-5")
def test_whoever_leaves_a_local_stream_stops_the_model(chat: ChatModel, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio.run(chat.generate, asking("Hi", max_tokens=1))
    runtime = chat._runtime  # type: ignore[attr-defined]
    counted = Counted(runtime._server)
    monkeypatch.setattr(runtime, "_server", counted)

    async def leave() -> None:
        stream = chat.stream(asking("Write a long story about a ship.", max_tokens=900))
        await anext(stream)
        await stream.aclose()

    anyio.run(leave)
    anyio.run(chat.generate, asking("Hi", max_tokens=1))  # comes after it, for there is one thread

    assert 0 < counted.pieces < 300


@pytest.mark.req("LLM-10")
def test_the_runtime_listens_on_no_address_and_takes_no_signal(chat: ChatModel) -> None:
    heard: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("hub"))
    try:
        anyio.run(chat.generate, asking("Hi", max_tokens=1))
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    address = chat._runtime._server.listening_address  # type: ignore[attr-defined]
    assert address.startswith("unix://")
    assert not os.path.lexists(address.removeprefix("unix://"))
    assert heard == ["hub"]


@pytest.mark.req("LLM-6")
def test_a_thousand_texts_have_their_vectors_in_their_order(provider: LocalProvider) -> None:
    embedder = provider.get_embed_model(local_embeddings.NAME)
    items = tuple(f"text number {n}" for n in range(1000))

    async def main() -> None:
        answer = await embedder.embed(EmbedRequest(model="local:e5", items=items, kind="passage"))
        assert (len(answer.vectors), answer.dim, answer.dtype) == (1000, 384, "float32")
        assert answer.usage is not None
        assert answer.usage.input_tokens > 3000
        for place in (0, 500, 999):
            alone = await embedder.embed(EmbedRequest(model="local:e5", items=(items[place],), kind="passage"))
            assert alone.vectors[0] == pytest.approx(answer.vectors[place], abs=1e-5)
        cut, whole = (await embedder.embed(EmbedRequest(model="local:e5", items=("one", "one\0two")))).vectors
        assert cut != whole

    anyio.run(main)


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize(
    ("query", "best"),
    [("What is the capital of France?", 2), ("法国的首都是哪里？", 4), ("Which fruit is yellow?", 0)],
)
def test_a_local_model_of_vectors_ranks_the_right_text_first(provider: LocalProvider, query: str, best: int) -> None:
    texts = (
        "Bananas are yellow.",
        "Berlin is the capital of Germany.",
        "Paris is the capital of France.",
        "猫喜欢睡觉。",
        "巴黎是法国的首都。",
    )
    ranker = provider.get_rerank_model(local_embeddings.NAME)

    answer = anyio.run(ranker.rerank, RerankRequest(model="local:e5", query=query, candidates=texts))

    assert answer.ordering[0] == best
    assert answer.encoder == "bi"
