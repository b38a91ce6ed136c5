"""Scripted models: a provider in the process that answers what a test has written down, and remembers what it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel.problems import NotFound
from llm.answers import ChatDelta, EmbedAnswer, FinishReason, RerankAnswer
from llm.interfaces import ChatModel, EmbedModel, RerankModel
from llm.model_features import CHAT_PARAMETERS, CONTENT, EMBED_PARAMETERS, ModelFeatures
from llm.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from llm.provider_factory import ProviderConfig
    from llm.requests import ChatRequest, EmbedRequest, RerankRequest

EVERYTHING = ModelFeatures.passing(*CHAT_PARAMETERS, *EMBED_PARAMETERS, *CONTENT)
Script = tuple["ChatDelta | Exception", ...]


def text_answer(text: str, finish_reason: FinishReason = FinishReason.STOP) -> Script:
    """Pieces of five characters, and behind them the end with its usage."""
    pieces = [ChatDelta(text=text[at : at + 5], model="script-001") for at in range(0, len(text), 5)]
    return (*pieces, ChatDelta(finish_reason=finish_reason, usage=Usage(10, len(pieces))))


@dataclass
class ScriptedChat(ChatModel):
    """Plays its scripts one after the other; an exception in one is raised where it stands."""

    scripts: Sequence[Script]
    features: ModelFeatures = EVERYTHING
    requests: list[ChatRequest] = field(default_factory=list)
    closed: int = 0

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.requests.append(request)
        try:
            for each in self.scripts[len(self.requests) - 1]:
                if isinstance(each, Exception):
                    raise each
                yield each
        finally:
            self.closed += 1


@dataclass
class ScriptedEmbedder(EmbedModel):
    vectors: tuple[tuple[float, ...], ...]
    features: ModelFeatures = EVERYTHING
    requests: list[EmbedRequest] = field(default_factory=list)

    async def compute_vectors(self, request: EmbedRequest) -> EmbedAnswer:
        self.requests.append(request)
        return EmbedAnswer(self.vectors, model="script-001", usage=Usage(len(request.items)))


@dataclass
class ScriptedRanker(RerankModel):
    scores: tuple[float, ...]
    requests: list[RerankRequest] = field(default_factory=list)

    async def compute_scores(self, request: RerankRequest) -> RerankAnswer:
        self.requests.append(request)
        return RerankAnswer(self.scores, encoder="bi", usage=Usage(len(request.candidates)))


class ScriptedProvider:
    """A provider with one model of each kind, all of them called ``script``. ``options`` are what they say."""

    def __init__(self, cfg: ProviderConfig) -> None:
        self.cfg = cfg
        self.chat = ScriptedChat([text_answer(cfg.options.get("says", "Hi"))] * 10)
        self.embedder = ScriptedEmbedder(((3.0, 4.0),))
        self.ranker = ScriptedRanker((0.5,))

    def get_chat_model(self, name: str) -> ChatModel:
        self._check_name(name)
        return self.chat

    def get_embed_model(self, name: str) -> EmbedModel:
        self._check_name(name)
        return self.embedder

    def get_rerank_model(self, name: str) -> RerankModel:
        self._check_name(name)
        return self.ranker

    def _check_name(self, name: str) -> None:
        if name != "script":
            raise NotFound("The provider has no such model.")
