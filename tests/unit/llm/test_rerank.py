"""Rerank: are scores those of the candidates, in whatever order and shape a provider answers?"""

from __future__ import annotations

import math
import random
from typing import Any

import anyio
import pytest

from llm.problems import ProviderAnswerUnreadable
from llm.providers.bi_encoder import BiEncoder
from llm.providers.rerank_shapes import SHAPES, read_usage
from llm.requests import RerankRequest
from llm.usage import Usage
from tests.support.scripted_models import EVERYTHING, ScriptedEmbedder


def answer(shape: str, scores: list[Any], places: list[Any]) -> Any:
    """What a provider of that shape says, in the order of the places."""
    known = SHAPES[shape]
    rows = [{"index": place, known.score: scores[place % len(scores)]} for place in places]
    return {known.results: rows} if known.results else rows


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize("shape", SHAPES)
def test_scores_are_put_in_the_order_of_the_candidates(shape: str) -> None:
    scores = [n / 100 for n in range(100)]
    places = list(range(100))
    random.Random(7).shuffle(places)

    assert SHAPES[shape].read_scores(answer(shape, scores, places), 100) == tuple(scores)


@pytest.mark.req("LLM-6", "LLM-9")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("places", [[0, 1], [0, 1, 1], [0, 1, 2, 2], [0, 1, 3], [0, 1, -1]])
def test_an_answer_that_leaves_a_candidate_out_or_names_one_twice_is_refused(shape: str, places: list[int]) -> None:
    with pytest.raises(ProviderAnswerUnreadable):
        SHAPES[shape].read_scores(answer(shape, [0.1, 0.2, 0.3], places), 3)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("score", [None, "0.5", True, math.nan, math.inf])
def test_a_score_that_is_no_number_is_refused(shape: str, score: object) -> None:
    with pytest.raises(ProviderAnswerUnreadable):
        SHAPES[shape].read_scores(answer(shape, [score], [0]), 1)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("document", [None, {}, [], "canary", {"results": {}}, {"results": ["a"]}, ["a"]])
def test_an_answer_of_another_shape_is_refused_and_not_quoted(shape: str, document: object) -> None:
    with pytest.raises(ProviderAnswerUnreadable) as refused:
        SHAPES[shape].read_scores(document, 1)
    assert "canary" not in str(refused.value)


@pytest.mark.req("LLM-6")
def test_each_shape_has_its_own_names_and_asks_for_all_candidates() -> None:
    bodies = {name: shape.build_body("rank-1", "q", ["a", "b"]) for name, shape in SHAPES.items()}

    assert bodies == {
        "cohere": {"model": "rank-1", "query": "q", "documents": ["a", "b"], "top_n": 2},
        "jina": {"model": "rank-1", "query": "q", "documents": ["a", "b"], "top_n": 2, "return_documents": False},
        "tei": {"query": "q", "texts": ["a", "b"], "raw_scores": False},
        "llamacpp": {"model": "rank-1", "query": "q", "documents": ["a", "b"], "top_n": 2},
    }


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    ("document", "usage"),
    [
        ({"usage": {"total_tokens": 12}}, Usage(12)),
        ({"meta": {"billed_units": {"search_units": 2}}}, Usage(requests=2)),
        ({"meta": {"billed_units": {"input_tokens": 9, "search_units": 1}}}, Usage(9)),
        ({"usage": {"total_tokens": -1}}, None),
        ({"usage": "many"}, None),
        ({}, None),
        ([], None),
    ],
)
def test_what_a_provider_counts_is_the_usage_and_silence_is_none(document: object, usage: Usage | None) -> None:
    assert read_usage(document) == usage


class ByText(ScriptedEmbedder):
    """Vectors by the texts themselves."""

    async def compute_vectors(self, request: Any) -> Any:
        self.vectors = tuple((float(len(item)), 1.0) for item in request.items)
        return await super().compute_vectors(request)


@pytest.mark.req("LLM-6")
def test_a_model_of_vectors_orders_texts_and_says_that_it_read_them_apart() -> None:
    embedder = ByText(())
    request = RerankRequest(model="main", query="aaaa", candidates=("a", "aaaa", "aa"), idempotency_key="k")

    ranked = anyio.run(BiEncoder(embedder).rerank, request)

    assert ranked.ordering == (1, 2, 0)
    assert ranked.scores[1] == pytest.approx(1.0)
    assert (ranked.encoder, ranked.model, ranked.usage) == ("bi", "script-001", Usage(4, requests=2))
    assert [(each.kind, each.idempotency_key) for each in embedder.requests] == [
        ("query", "k:query"),
        ("passage", "k:passage"),
    ]
    assert embedder.features is EVERYTHING
