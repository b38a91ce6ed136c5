"""OpenAI embeddings: vectors of texts from OpenAI, or from any address that speaks as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm.answers import EmbedAnswer
from llm.interfaces import EmbedModel
from llm.problems import ProviderAnswerUnreadable
from llm.providers.batches import BatchLimits, ask_in_batches, find_one_model, sum_usages
from llm.providers.embed_profiles import EmbedProfile
from llm.usage import Usage, read_figures
from unitools.dialects.streams.base import get_chunk, get_word

if TYPE_CHECKING:
    from llm.providers.http_client import HttpClient
    from llm.requests import EmbedRequest

# OpenAI takes 2,048 texts and 300,000 tokens at once. Fewer are sent here, so that one slow or refused request costs less.
LIMITS = BatchLimits(max_items=100)

NO_VECTORS = "The provider answered a request for vectors with something else."
NO_PLACE = "The provider answered a vector for a text that was not sent, or two for one."


class OpenAIEmbedder(EmbedModel):
    """One of its models. ``dimensions``: the length of the vectors, for models that can shorten them."""

    def __init__(
        self, client: HttpClient, name: str, *, dimensions: int | None = None, limits: BatchLimits = LIMITS
    ) -> None:
        self._client = client
        self._name = name
        self._dimensions = dimensions
        self._limits = limits
        self._profile = EmbedProfile.from_name(name)
        self.features = self._profile.build_features()

    async def compute_vectors(self, request: EmbedRequest) -> EmbedAnswer:
        shortened = {} if self._dimensions is None else {"dimensions": self._dimensions}

        async def ask(number: int, texts: tuple[str, ...]) -> EmbedAnswer:
            key = request.idempotency_key
            headers = {"Idempotency-Key": f"{key}:{number}"} if key else None
            body = {"model": self._name, "input": texts, "encoding_format": "float", **shortened}
            return read_answer(await self._client.fetch_json("/embeddings", body=body, headers=headers), len(texts))

        answers = await ask_in_batches(self._profile.prefix_items(request.items, request.kind), self._limits, ask)
        joined = EmbedAnswer(
            tuple(vector for answer in answers for vector in answer.vectors),
            model=find_one_model(answer.model for answer in answers),
            usage=sum_usages([answer.usage for answer in answers]),
        )
        if self._dimensions not in {None, joined.dim}:
            raise ProviderAnswerUnreadable(f"The vectors have {joined.dim} dimensions, not {self._dimensions}.")
        return joined


def read_answer(answer: object, wanted: int) -> EmbedAnswer:
    """A vector for each of as many texts as were sent, in their order. Raises ProviderAnswerUnreadable."""
    document = answer if isinstance(answer, dict) else {}
    rows = document.get("data")
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
    ordered = tuple(vectors[place] for place in range(wanted))
    return EmbedAnswer(ordered, model=get_word(document, "model"), usage=read_usage(document))


def _read_vector(numbers: object) -> tuple[float, ...]:
    if not isinstance(numbers, list) or not {type(number) for number in numbers} <= {int, float}:
        raise ProviderAnswerUnreadable(NO_VECTORS)
    try:
        return tuple(map(float, numbers))
    except OverflowError:
        raise ProviderAnswerUnreadable(NO_VECTORS) from None


def read_usage(answer: dict[str, Any]) -> Usage | None:
    """What the provider says it counted; None where it says nothing."""
    return read_figures(get_chunk(answer, "usage").get("prompt_tokens"))
