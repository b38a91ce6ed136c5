"""OpenAI-like: one address with chat, vectors and rankings, as OpenAI and the servers have it that speak as it does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from llm.providers.http_chats import HttpChatProvider
from llm.providers.retrieval import RetrievalProvider

if TYPE_CHECKING:
    from llm.interfaces import EmbedModel, RerankModel
    from llm.provider_factory import ProviderConfig


class OpenAILikeProvider(HttpChatProvider):
    """Conversations, vectors and rankings. Takes the options of both."""

    def __init__(self, cfg: ProviderConfig) -> None:
        super().__init__(cfg)
        self._retrieval = RetrievalProvider(replace(cfg, base_url=cfg.base_url or self.address))

    def get_embed_model(self, name: str) -> EmbedModel:
        return self._retrieval.get_embed_model(name)

    def get_rerank_model(self, name: str) -> RerankModel:
        return self._retrieval.get_rerank_model(name)

    async def aclose(self) -> None:
        await super().aclose()
        await self._retrieval.aclose()
