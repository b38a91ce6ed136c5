"""Interfaces: what a model is to whoever uses it, and the one thing that each provider writes for it.

Callers use ``stream``, ``generate``, ``embed`` and ``rerank``; providers write ``open_stream``, ``compute_vectors`` and
``compute_scores``, and get requests with nothing in them that the model does not take. What providers could do differently is
done here, once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from llm.agent_loop import run_agent
from llm.model_features import ModelFeatures, adapt_chat_request, adapt_embed_request
from llm.problems import ProviderAnswerUnreadable
from llm.streams import collect_answer, normalize_stream
from llm.structured_output import obtain_output
from unitools.dialects import ReadOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from llm.agent_loop import AgentAnswer
    from llm.answers import ChatAnswer, ChatDelta, EmbedAnswer, RerankAnswer
    from llm.messages import Message
    from llm.requests import ChatRequest, EmbedRequest, RerankRequest
    from unitools.universe import Universe


LARGEST = 3.4e38  # of 32 bits, which vectors are kept in


class ChatModel(ABC):
    """A model that goes on with a conversation."""

    features: ModelFeatures

    @abstractmethod
    def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The provider's answer, piece by piece; calls have the names of the request's tools. Every failure is a Problem."""

    @final
    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The answer, piece by piece; the last one alone says why it ended. Close it to leave early.

        Raises:
            ParameterUnsupported: before anything is sent.
            StreamTruncated: the provider's stream broke off.
            ProviderAnswerUnreadable: what came contradicts itself or is too large.
        """
        adapted, warnings = adapt_chat_request(request, self.features)
        return normalize_stream(self.open_stream(adapted), find_exact_tools(request), warnings)

    @final
    async def generate(self, request: ChatRequest) -> ChatAnswer:
        """The answer as a whole, put together from :meth:`stream`; where JSON is asked for, with its value.

        Raises:
            SchemaInvalid, OutputTruncated, SafetyBlocked: there is no such value.
        """
        return await obtain_output(request, self._collect)

    @final
    async def run_agent(self, universe: Universe, messages: Iterable[Message], **options: Any) -> AgentAnswer:
        """As :meth:`unitools.Universe.run`, which calls this; ``options`` are those of :func:`llm.agent_loop.run_agent`."""
        return await run_agent(universe, self, messages, **options)

    async def _collect(self, request: ChatRequest) -> ChatAnswer:
        async with aclosing(self.stream(request)) as deltas:
            return await collect_answer(deltas, find_exact_tools(request))


def find_exact_tools(request: ChatRequest) -> ReadOptions:
    """How the calls of an answer are read: the arguments of tools that can destroy things are never repaired."""
    return ReadOptions(destructive=frozenset(tool.name for tool in request.tools if tool.annotations.destructive))


class EmbedModel(ABC):
    """A model that turns texts into vectors."""

    features: ModelFeatures

    @abstractmethod
    async def compute_vectors(self, request: EmbedRequest) -> EmbedAnswer:
        """The provider's vectors, as they come."""

    @final
    async def embed(self, request: EmbedRequest) -> EmbedAnswer:
        """A vector for each item, of length 1 where the request wants it.

        Raises:
            ParameterUnsupported: before anything is sent.
            ProviderAnswerUnreadable: not one vector for each item, or they do not fit together.
        """
        adapted, warnings = adapt_embed_request(request, self.features)
        answer = await self.compute_vectors(adapted)
        _check_vectors(answer.vectors, len(request.items))
        vectors = tuple(map(_scale_to_one, answer.vectors)) if request.normalize else answer.vectors
        return replace(answer, vectors=vectors, warnings=warnings)


def _check_vectors(vectors: tuple[tuple[float, ...], ...], wanted: int) -> None:
    if len(vectors) != wanted:
        raise ProviderAnswerUnreadable(f"The provider answered {len(vectors)} vectors for {wanted} items.")
    if len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise ProviderAnswerUnreadable("The provider's vectors are not of one length.")
    if not all(abs(number) <= LARGEST for vector in vectors for number in vector):
        raise ProviderAnswerUnreadable("A vector of the provider holds something that is no number.")


def _scale_to_one(vector: tuple[float, ...]) -> tuple[float, ...]:
    length = math.hypot(*vector)
    return tuple(number / length for number in vector) if length else vector


class RerankModel(ABC):
    """A model that orders texts by how well they answer a query."""

    @abstractmethod
    async def compute_scores(self, request: RerankRequest) -> RerankAnswer:
        """The provider's scores, in the order of the candidates."""

    @final
    async def rerank(self, request: RerankRequest) -> RerankAnswer:
        """A score for each candidate. Raises ProviderAnswerUnreadable if there is not one for each."""
        answer = await self.compute_scores(request)
        if len(answer.scores) != len(request.candidates):
            found, wanted = len(answer.scores), len(request.candidates)
            raise ProviderAnswerUnreadable(f"The provider answered {found} scores for {wanted} candidates.")
        if not all(math.isfinite(score) for score in answer.scores):
            raise ProviderAnswerUnreadable("A score of the provider is no number.")
        return answer
