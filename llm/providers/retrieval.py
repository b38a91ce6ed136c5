"""Retrieval provider: vectors and rankings over HTTP, for who offers no conversation.

Vectors are asked for as OpenAI's are. For rankings the option ``rerank`` names a shape (cohere, jina, tei, llamacpp), or ``bi`` where
there is no such model and vectors are compared instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.problems import NotFound, SchemaInvalid
from llm.providers.batches import BatchLimits
from llm.providers.bi_encoder import BiEncoder
from llm.providers.connections import build_http_client
from llm.providers.http_ranker import HttpRanker
from llm.providers.openai_embeddings import LIMITS, OpenAIEmbedder
from llm.providers.rerank_shapes import SHAPES

if TYPE_CHECKING:
    from llm.interfaces import ChatModel, EmbedModel, RerankModel
    from llm.provider_factory import Provider, ProviderConfig

BI = "bi"
MOST = 100_000  # of what options count


class RetrievalProvider:
    """Options: ``rerank``; ``dimensions``, the length of vectors; ``batch_items``, texts of one request; those of all connections."""

    def __init__(self, cfg: ProviderConfig) -> None:
        self._rerank = cfg.options.get("rerank", BI)
        if self._rerank not in {BI, *SHAPES}:
            raise SchemaInvalid.at("/options/rerank", f"This is one of: {', '.join([BI, *SHAPES])}.")
        self._dimensions = _read_count(cfg, "dimensions", None)
        self._limits = BatchLimits(_read_count(cfg, "batch_items", LIMITS.max_items) or LIMITS.max_items)
        address = SHAPES[self._rerank].address if self._rerank in SHAPES else ""
        self._client = build_http_client(cfg, address, {"Authorization": f"Bearer {cfg.key}"} if cfg.key else None)

    def get_chat_model(self, name: str) -> ChatModel:
        raise NotFound("The provider has no model that goes on with a conversation.")

    def get_embed_model(self, name: str) -> EmbedModel:
        return OpenAIEmbedder(self._client, name, dimensions=self._dimensions, limits=self._limits)

    def get_rerank_model(self, name: str) -> RerankModel:
        if self._rerank == BI:
            return BiEncoder(self.get_embed_model(name))
        return HttpRanker(self._client, SHAPES[self._rerank], name)

    async def aclose(self) -> None:
        await self._client.aclose()


def build_provider(cfg: ProviderConfig) -> Provider:
    return RetrievalProvider(cfg)


def _read_count(cfg: ProviderConfig, name: str, usual: int | None) -> int | None:
    value: Any = cfg.options.get(name, usual)
    if value is not None and (type(value) is not int or not 0 < value <= MOST):
        raise SchemaInvalid.at(f"/options/{name}", f"This is a whole number from 1 to {MOST}.")
    return value
