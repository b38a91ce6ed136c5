"""HTTP ranker: texts ordered by a model that reads query and candidate together, at an address of one of the known shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm.answers import RerankAnswer
from llm.interfaces import RerankModel
from llm.providers.batches import BatchLimits, ask_in_batches, find_one_model, sum_usages
from llm.providers.rerank_shapes import read_usage
from unitools.dialects.streams.base import get_word

if TYPE_CHECKING:
    from llm.providers.http_client import HttpClient
    from llm.providers.rerank_shapes import RerankShape
    from llm.requests import RerankRequest


class HttpRanker(RerankModel):
    """One model. Each candidate is scored by itself, so scores of several requests can be compared."""

    def __init__(self, client: HttpClient, shape: RerankShape, name: str) -> None:
        self._client = client
        self._shape = shape
        self._name = name

    async def compute_scores(self, request: RerankRequest) -> RerankAnswer:
        async def ask(number: int, documents: tuple[str, ...]) -> RerankAnswer:
            key = request.idempotency_key
            headers = {"Idempotency-Key": f"{key}:{number}"} if key else None
            body = self._shape.build_body(self._name, request.query, documents)
            answer = await self._client.fetch_json("/rerank", body=body, headers=headers)
            model = get_word(answer, "model") if isinstance(answer, dict) else ""
            return RerankAnswer(self._shape.read_scores(answer, len(documents)), model=model, usage=read_usage(answer))

        answers = await ask_in_batches(request.candidates, BatchLimits(self._shape.max_items), ask)
        return RerankAnswer(
            tuple(score for answer in answers for score in answer.scores),
            model=find_one_model(answer.model for answer in answers),
            usage=sum_usages([answer.usage for answer in answers]),
        )
