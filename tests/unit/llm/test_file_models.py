"""File models: are vectors and scores of a model's file read in their order, in batches, and counted?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from llm.problems import ContextOverflow, ProviderAnswerUnreadable
from llm.providers.file_models import FileEmbedder, FileRanker
from llm.providers.local_runtime import find_problem
from llm.providers.model_files import ModelFile
from llm.requests import EmbedRequest, RerankRequest
from llm.usage import Usage

TOO_LARGE = {"type": "server_error", "message": "input (70 tokens) is too large to process. increase the canary"}


@dataclass
class CountingRuntime:
    """A vector or a score is the number in the text, and a token each. The best comes first, as llama.cpp sorts them."""

    bodies: list[dict[str, Any]] = field(default_factory=list)
    fewer: int = 0

    async def compute_vectors(self, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        rows = [{"index": at, "embedding": [float(text.split()[-1]), 1.0]} for at, text in enumerate(body["input"])]
        return self._answer("data", rows, len(rows))

    async def compute_scores(self, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        numbers = [float(text.split()[-1]) for text in body["documents"]]
        rows = [{"index": at, "relevance_score": number} for at, number in enumerate(numbers)]
        return self._answer("results", rows, len(rows))

    def _answer(self, name: str, rows: list[dict[str, Any]], tokens: int) -> dict[str, Any]:
        rows = list(reversed(rows))[self.fewer :]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"model": "/srv/models/canary.gguf", name: rows, "usage": usage}


class FullRuntime:
    async def compute_vectors(self, body: dict[str, Any]) -> dict[str, Any]:
        raise find_problem(TOO_LARGE)

    compute_scores = compute_vectors


def build_file(name: str = "mine", title: str = "") -> ModelFile:
    return ModelFile(name, Path("/nowhere.gguf"), (0, 0, 0, 0), title, "mean", is_encoder=True, context_tokens=64)


def embedder(runtime: Any, **given: str) -> FileEmbedder:
    return FileEmbedder(runtime, build_file(**given), context_tokens=64)


def ranker(runtime: Any) -> FileRanker:
    return FileRanker(runtime, build_file(), context_tokens=64)


NUMBERS = tuple(f"text {n}" for n in range(40))
EMBED = EmbedRequest(model="mine:m", items=NUMBERS, normalize=False)
RERANK = RerankRequest(model="mine:m", query="q\0r", candidates=NUMBERS)


@pytest.mark.req("LLM-5", "LLM-6")
def test_vectors_come_in_the_order_of_their_texts_and_are_named_and_counted() -> None:
    runtime = CountingRuntime()

    answer = anyio.run(embedder(runtime).embed, EMBED)

    assert answer.vectors == tuple((float(n), 1.0) for n in range(40))
    assert (answer.model, answer.usage) == ("mine", Usage(40))
    assert [len(body["input"]) for body in runtime.bodies] == [16, 16, 8]
    assert {body["embd_normalize"] for body in runtime.bodies} == {-1}
    scaled = anyio.run(embedder(runtime).embed, EmbedRequest(model="mine:m", items=NUMBERS))
    assert {round(math.hypot(*vector), 9) for vector in scaled.vectors} == {1.0}


@pytest.mark.req("LLM-5", "LLM-6")
def test_scores_come_in_the_order_of_the_candidates_and_are_named_and_counted() -> None:
    runtime = CountingRuntime()

    answer = anyio.run(ranker(runtime).rerank, RERANK)

    assert answer.scores == tuple(map(float, range(40)))
    assert (answer.ordering[0], answer.encoder, answer.model, answer.usage) == (39, "cross", "mine", Usage(40))
    assert [len(body["documents"]) for body in runtime.bodies] == [16, 16, 8]
    assert {body["query"] for body in runtime.bodies} == {"q r"}


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize("given", [{"name": "nomic-embed-text-v1.5.Q4"}, {"title": "Nomic Embed Text v1.5"}])
def test_the_words_that_a_model_wants_are_known_by_either_of_its_names(given: dict[str, str]) -> None:
    runtime = CountingRuntime()
    model = embedder(runtime, **given)

    anyio.run(model.embed, EmbedRequest(model="mine:m", items=("text 1",), kind="query"))

    assert [body["input"] for body in runtime.bodies] == [("search_query: text 1",)]


@pytest.mark.req("LLM-9")
def test_a_text_that_is_too_long_is_said_with_how_much_the_model_reads() -> None:
    for ask in (lambda: embedder(FullRuntime()).embed(EMBED), lambda: ranker(FullRuntime()).rerank(RERANK)):
        with pytest.raises(ContextOverflow, match="which are 64") as refused:
            anyio.run(ask)
        assert "canary" not in str(refused.value)


@pytest.mark.req("LLM-9")
def test_an_answer_that_leaves_one_out_is_none() -> None:
    for ask in (
        lambda: embedder(CountingRuntime(fewer=1)).embed(EMBED),
        lambda: ranker(CountingRuntime(fewer=1)).rerank(RERANK),
    ):
        with pytest.raises(ProviderAnswerUnreadable):
            anyio.run(ask)
