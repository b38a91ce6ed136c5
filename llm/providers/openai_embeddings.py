"""OpenAI embeddings: vectors of texts from OpenAI, or from any address that speaks as it does."""

from __future__ import annotations

from typing import Any

from llm.problems import ProviderAnswerUnreadable
from llm.providers.batches import BatchLimits
from llm.usage import Usage
from unitools.dialects.streams.base import get_chunk

# OpenAI takes 2,048 texts and 300,000 tokens at once. Fewer are taken here, so that an answer with long vectors is not too large.
LIMITS = BatchLimits(max_items=100)

NO_VECTORS = "The provider answered a request for vectors with something else."
NO_PLACE = "The provider answered a vector for a text that was not sent, or two for one."


def read_vectors(answer: object, wanted: int) -> tuple[tuple[float, ...], ...]:
    """A vector for each of as many texts as were sent, in their order. Raises ProviderAnswerUnreadable."""
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ProviderAnswerUnreadable(NO_VECTORS)
    vectors: dict[int, tuple[float, ...]] = {}
    for order, row in enumerate(rows):
        place = row.get("index", order)  # some servers do not number them
        if type(place) is not int or place in vectors or not 0 <= place < wanted:
            raise ProviderAnswerUnreadable(NO_PLACE)
        vectors[place] = _read_vector(row.get("embedding"))
    if len(vectors) != wanted:
        raise ProviderAnswerUnreadable(f"The provider answered {len(vectors)} vectors for {wanted} items.")
    return tuple(vectors[place] for place in range(wanted))


def _read_vector(numbers: object) -> tuple[float, ...]:
    if not isinstance(numbers, list) or not {type(number) for number in numbers} <= {int, float}:
        raise ProviderAnswerUnreadable(NO_VECTORS)
    return tuple(map(float, numbers))


def read_usage(answer: dict[str, Any]) -> Usage | None:
    """What the provider says it counted; None where it says nothing."""
    tokens = get_chunk(answer, "usage").get("prompt_tokens")
    return Usage(tokens) if type(tokens) is int and tokens >= 0 else None
