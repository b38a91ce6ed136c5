"""Rerank shapes: how those who order texts are asked over HTTP, and where their answers hold the scores.

They differ in names only, so a table says them: all are asked at ``/rerank`` behind the provider's address. Answers come in an order
of the provider's own, mostly the best first, and name the place of each text; one that leaves a place out or names it twice is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llm.problems import ProviderAnswerUnreadable
from llm.usage import MOST_TOKENS, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NO_SCORES = "The provider answered a request for scores with something else."
NO_PLACE = "The provider scored a candidate that was not sent, or one of them twice."


@dataclass(frozen=True, slots=True)
class RerankShape:
    """One way of asking. ``results``: the field that lists the scores; empty where the answer is the list itself."""

    address: str = ""  # where no other is given
    documents: str = "documents"
    score: str = "relevance_score"
    results: str = "results"
    names_model: bool = True
    counts: str = ""  # the field of all documents that the answer shall be about, where it would leave some out
    constants: Mapping[str, Any] = field(default_factory=dict)
    max_items: int = 1000  # of one request

    def build_body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"query": query, self.documents: list(documents), **self.constants}
        if self.names_model:
            body["model"] = model
        if self.counts:
            body[self.counts] = len(documents)
        return body

    def read_scores(self, answer: object, wanted: int) -> tuple[float, ...]:
        """A score for each of as many documents as were sent, in their order. Raises ProviderAnswerUnreadable."""
        rows = answer.get(self.results) if self.results and isinstance(answer, dict) else answer
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ProviderAnswerUnreadable(NO_SCORES)
        scores: dict[int, float] = {}
        for row in rows:
            place, score = row.get("index"), row.get(self.score)
            if type(place) is not int or place in scores or not 0 <= place < wanted:
                raise ProviderAnswerUnreadable(NO_PLACE)
            if type(score) not in {int, float} or not math.isfinite(score):
                raise ProviderAnswerUnreadable(NO_SCORES)
            scores[place] = float(score)
        if len(scores) != wanted:
            raise ProviderAnswerUnreadable(f"The provider answered {len(scores)} scores for {wanted} candidates.")
        return tuple(scores[place] for place in range(wanted))


SHAPES: Mapping[str, RerankShape] = {
    "cohere": RerankShape("https://api.cohere.com/v2", counts="top_n"),
    "jina": RerankShape("https://api.jina.ai/v1", counts="top_n", constants={"return_documents": False}),
    # Its raw scores have no bounds; those that it is asked for are between 0 and 1, like those of the others.
    "tei": RerankShape(
        documents="texts",
        score="score",
        results="",
        names_model=False,
        constants={"raw_scores": False},
        max_items=32,
    ),
    "llamacpp": RerankShape(counts="top_n"),
}


def read_usage(answer: object) -> Usage | None:
    """What the provider says it counted: tokens, or searches, which some charge for instead. None where it says nothing."""
    fields = answer if isinstance(answer, dict) else {}
    tokens = _find_count(fields, "usage", "total_tokens")
    if tokens is None:
        tokens = _find_count(fields, "meta", "billed_units", "input_tokens")
    searches = _find_count(fields, "meta", "billed_units", "search_units")
    if tokens is None and searches is None:
        return None
    return Usage(input_tokens=tokens or 0, requests=1 if searches is None else searches)


def _find_count(fields: dict[str, Any], *names: str) -> int | None:
    value: Any = fields
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
