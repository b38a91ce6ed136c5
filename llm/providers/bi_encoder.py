"""Bi-encoder: orders texts by a model of vectors, where there is none that reads query and candidate together.

It is weaker than one that does, and its answers say ``encoder: bi``.
"""

from __future__ import annotations

from operator import mul
from typing import TYPE_CHECKING, Literal

from llm.answers import RerankAnswer
from llm.interfaces import EmbedModel, RerankModel
from llm.model_features import Treatment
from llm.providers.batches import find_one_model, sum_usages
from llm.requests import EmbedRequest

if TYPE_CHECKING:
    from llm.answers import EmbedAnswer
    from llm.requests import RerankRequest


class BiEncoder(RerankModel):
    """The nearer a candidate's vector is to the query's, the higher its score: the cosine of the angle between them."""

    def __init__(self, embedder: EmbedModel) -> None:
        self._embedder = embedder

    async def compute_scores(self, request: RerankRequest) -> RerankAnswer:
        query = await self._embed(request, (request.query,), "query")
        candidates = await self._embed(request, request.candidates, "passage")
        (wanted,) = query.vectors
        return RerankAnswer(
            scores=tuple(sum(map(mul, wanted, vector)) for vector in candidates.vectors),
            encoder="bi",
            model=find_one_model([query.model, candidates.model]),
            usage=sum_usages([query.usage, candidates.usage]),
        )

    async def _embed(
        self, request: RerankRequest, items: tuple[str, ...], kind: Literal["query", "passage"]
    ) -> EmbedAnswer:
        takes_kind = self._embedder.features.find_treatment("kind", strict=False) is Treatment.PASSED
        key = request.idempotency_key and f"{request.idempotency_key[:200]}:{kind}"
        return await self._embedder.embed(
            EmbedRequest(model=request.model, items=items, kind=kind if takes_kind else None, idempotency_key=key)
        )
