"""Retrieval wire: do vectors and scores arrive over HTTP in the order of what was sent, in as many requests as it takes?"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from openai.types import EmbeddingCreateParams
from pydantic import TypeAdapter

from kernel.problems import NotFound, Problem, SchemaInvalid
from llm.problems import (
    ProviderAnswerUnreadable,
    ProviderKeyRefused,
    ProviderQuotaExhausted,
    ProviderRateLimited,
    ProviderUnavailable,
)
from llm.provider_factory import ProviderConfig, ProviderFactory
from llm.providers.rerank_shapes import SHAPES
from llm.providers.retrieval import RetrievalProvider
from llm.requests import EmbedRequest, RerankRequest
from llm.usage import Usage
from tests.support.model_servers import Reply, json_reply, model_server

if TYPE_CHECKING:
    from tests.support.http_server import Heard

KEY = "canary-key"


def provider(url: str, **options: Any) -> RetrievalProvider:
    return RetrievalProvider(ProviderConfig("retrieval", url, KEY, {"networks": ("127.0.0.0/8",), **options}))


def embed(texts: list[str]) -> dict[str, Any]:
    """What OpenAI answers, with the number in each text as its vector; in another order."""
    rows = [
        {"object": "embedding", "index": n, "embedding": [float(text.split()[-1]), 1]} for n, text in enumerate(texts)
    ]
    random.Random(7).shuffle(rows)
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "data": rows, "model": "vectors-1", "usage": usage}


def rank(heard: Heard) -> Reply:
    """The scores of all shapes at once: of the number in each text."""
    body = json.loads(heard.body)
    documents = body.get("documents") or body["texts"]
    scored = [(n, float(text.split()[-1]) / 1000) for n, text in enumerate(documents)]
    rows = [
        {"index": n, "relevance_score": score, "score": score} for n, score in sorted(scored, key=lambda each: -each[1])
    ]
    return json_reply(
        rows if "texts" in body else {"model": "rank-1", "results": rows, "usage": {"total_tokens": len(rows)}}
    )


@pytest.mark.req("LLM-6", "LLM-10")
def test_a_thousand_texts_have_their_vectors_in_their_order_and_openai_knows_each_request() -> None:
    items = tuple(f"number {n}" for n in range(1000))

    with model_server(lambda heard: json_reply(embed(json.loads(heard.body)["input"]))) as server:
        model = provider(f"{server.url}/v1").get_embed_model("multilingual-e5-small")
        request = EmbedRequest(model="lab:e5", items=items, kind="passage", normalize=False, idempotency_key="k")
        answer = anyio.run(model.embed, request)

    assert answer.vectors == tuple((float(n), 1.0) for n in range(1000))
    assert (answer.dim, answer.dtype, answer.model) == (2, "float32", "vectors-1")
    assert answer.usage == Usage(1000, requests=10)
    assert len(server.heard) == 10
    assert {each.path for each in server.heard} == {"/v1/embeddings"}
    assert {each.headers["authorization"] for each in server.heard} == {f"Bearer {KEY}"}
    assert {each.headers["idempotency-key"] for each in server.heard} == {f"k:{n}" for n in range(10)}
    for body in server.bodies:
        TypeAdapter(EmbeddingCreateParams).validate_python(body)
        assert len(body["input"]) == 100
        assert all(text.startswith("passage: number ") for text in body["input"])


@pytest.mark.req("LLM-6")
def test_the_length_of_vectors_is_asked_for_and_another_one_is_refused() -> None:
    with model_server(lambda heard: json_reply(embed(json.loads(heard.body)["input"]))) as server:
        two = provider(server.url, dimensions=2, batch_items=1).get_embed_model("text-embedding-3-small")
        assert anyio.run(two.embed, EmbedRequest(model="m", items=("1", "2"))).dim == 2
        three = provider(server.url, dimensions=3).get_embed_model("text-embedding-3-small")
        with pytest.raises(ProviderAnswerUnreadable):
            anyio.run(three.embed, EmbedRequest(model="m", items=("1", "2")))
    assert [(body["dimensions"], len(body["input"])) for body in server.bodies] == [(2, 1), (2, 1), (3, 2)]


WRONG: dict[str, Any] = {
    "a text is left out": {"data": [{"index": 0, "embedding": [1.0]}]},
    "a text is there twice": {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
    "a place is none": {"data": [{"index": 0, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}]},
    "a vector is text": {"data": [{"embedding": "AAAA"}, {"embedding": "AAAA"}]},
    "a number is text": {"data": [{"embedding": ["canary"]}, {"embedding": [1.0]}]},
    "a number is true": {"data": [{"embedding": [True]}, {"embedding": [1.0]}]},
    "a number is huge": {"data": [{"embedding": [10**400]}, {"embedding": [1.0]}]},
    "lengths differ": {"data": [{"embedding": [1.0, 2.0]}, {"embedding": [1.0]}]},
    "it is a list": [[1.0], [2.0]],
    "it is a chat": {"choices": [{"message": {"content": "canary"}}]},
}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("wrong", WRONG)
def test_vectors_that_are_not_those_of_the_texts_are_refused(wrong: str) -> None:
    with model_server(json_reply(WRONG[wrong])) as server, pytest.raises(ProviderAnswerUnreadable) as refused:
        anyio.run(provider(server.url).get_embed_model("m").embed, EmbedRequest(model="m", items=("a", "b")))
    assert "canary" not in str(refused.value)


@pytest.mark.req("LLM-6")
def test_vectors_without_places_are_in_the_order_of_the_texts_and_silence_about_usage_is_none() -> None:
    said = {"data": [{"embedding": [3.0, 4.0]}, {"embedding": [0, 2]}]}

    with model_server(json_reply(said)) as server:
        answer = anyio.run(provider(server.url).get_embed_model("m").embed, EmbedRequest(model="m", items=("a", "b")))
    assert answer.vectors == ((0.6, 0.8), (0.0, 1.0))
    assert answer.usage is None


FAILURES: dict[str, tuple[Reply, type[Problem]]] = {
    "busy": (
        json_reply({"error": {"message": "canary", "type": "requests"}}, 429, headers={"Retry-After": "7"}),
        ProviderRateLimited,
    ),
    "spent": (json_reply({"error": {"message": "canary", "code": "insufficient_quota"}}, 429), ProviderQuotaExhausted),
    "key": (json_reply({"error": {"message": "canary", "code": "invalid_api_key"}}, 401), ProviderKeyRefused),
    "down": (json_reply({"message": "canary"}, 503), ProviderUnavailable),
    "html": (Reply([b"<html>canary"], content_type="text/html"), ProviderAnswerUnreadable),
    "cut": (Reply([b'{"data": ['], end="cut"), Problem),
}


@pytest.mark.req("LLM-9", "LLM-6")
@pytest.mark.parametrize("failure", FAILURES)
def test_one_request_that_fails_fails_the_whole_with_its_problem(failure: str) -> None:
    reply, problem = FAILURES[failure]

    def answer(heard: Heard) -> Reply:
        texts = json.loads(heard.body)["input"]
        return reply if "number 150" in texts else json_reply(embed(texts))

    with model_server(answer) as server, pytest.raises(problem) as refused:
        request = EmbedRequest(model="m", items=tuple(f"number {n}" for n in range(300)))
        anyio.run(provider(server.url).get_embed_model("m").embed, request)
    assert "canary" not in json.dumps(refused.value.to_error())
    assert refused.value.retry_after == (7 if failure == "busy" else None)


@pytest.mark.req("LLM-6", "LLM-10")
@pytest.mark.parametrize(("shape", "requests"), [("cohere", 1), ("jina", 1), ("tei", 4), ("llamacpp", 1)])
def test_a_hundred_candidates_have_their_scores_in_their_order_in_every_shape(shape: str, requests: int) -> None:
    numbers = list(range(100))
    random.Random(3).shuffle(numbers)

    with model_server(rank) as server:
        ranker = provider(f"{server.url}/v1", rerank=shape).get_rerank_model("rank-1")
        asked = RerankRequest(model="m", query="q", candidates=tuple(f"number {n}" for n in numbers))
        answer = anyio.run(ranker.rerank, asked)

    assert answer.scores == tuple(n / 1000 for n in numbers)
    assert numbers[answer.ordering[0]] == 99
    assert answer.encoder == "cross"
    assert answer.usage == (None if shape == "tei" else Usage(100))
    assert [each.path for each in server.heard] == ["/v1/rerank"] * requests


@pytest.mark.req("LLM-6")
def test_where_there_is_no_ranking_model_vectors_are_compared_and_the_answer_says_so() -> None:
    with model_server(lambda heard: json_reply(embed(json.loads(heard.body)["input"]))) as server:
        ranker = provider(server.url).get_rerank_model("multilingual-e5-small")
        answer = anyio.run(ranker.rerank, RerankRequest(model="m", query="5", candidates=("0", "5", "90")))

    assert answer.encoder == "bi"
    assert answer.ordering[0] == 1
    assert server.bodies[0]["input"] == ["query: 5"]
    assert server.bodies[1]["input"] == ["passage: 0", "passage: 5", "passage: 90"]


@pytest.mark.req("LLM-10", "LLM-6")
@pytest.mark.parametrize("kind", ["openai", "openai_compatible", "openai_responses"])
def test_a_provider_of_conversations_that_speaks_as_openai_does_has_vectors_and_rankings_too(kind: str) -> None:
    def answer(heard: Heard) -> Reply:
        return rank(heard) if heard.path.endswith("/rerank") else json_reply(embed(json.loads(heard.body)["input"]))

    with model_server(answer) as server:
        made = ProviderFactory()
        options = {"networks": ("127.0.0.0/8",), "rerank": "jina"}
        made.register("lab", ProviderConfig(kind, f"{server.url}/v1", KEY, options))
        vectors = anyio.run(
            made.get_embed_model("lab:bge-m3").embed, EmbedRequest(model="lab:bge-m3", items=("3", "4"))
        )
        asked = RerankRequest(model="lab:r", query="q", candidates=("3", "4"))
        ranked = anyio.run(made.get_rerank_model("lab:r").rerank, asked)

    assert (len(vectors.vectors), ranked.ordering) == (2, (1, 0))
    assert [each.path for each in server.heard] == ["/v1/embeddings", "/v1/rerank"]
    assert {each.headers["authorization"] for each in server.heard} == {f"Bearer {KEY}"}


@pytest.mark.req("LLM-10")
def test_wrong_options_are_refused_and_a_conversation_is_not_offered() -> None:
    for options in ({"rerank": "other"}, {"dimensions": 0}, {"dimensions": "many"}, {"batch_items": -1}):
        with pytest.raises(SchemaInvalid):
            provider("http://127.0.0.1:1", **options)
    with pytest.raises(SchemaInvalid):
        provider("")  # vectors have no address of their own
    with pytest.raises(NotFound):
        provider("http://127.0.0.1:1").get_chat_model("m")
    assert {name for name, shape in SHAPES.items() if shape.address} == {"cohere", "jina"}
