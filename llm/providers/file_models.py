"""File models: vectors and scores of a model's file of llama.cpp, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm.answers import EmbedAnswer, RerankAnswer
from llm.interfaces import EmbedModel, RerankModel
from llm.problems import ContextOverflow
from llm.providers.batches import BatchLimits, split_items, sum_usages
from llm.providers.embed_profiles import EmbedProfile
from llm.providers.openai_embeddings import read_answer
from llm.providers.rerank_shapes import SHAPES, read_usage
from llm.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from llm.providers.local_runtime import LlamaRuntime
    from llm.providers.model_files import ModelFile
    from llm.requests import EmbedRequest, RerankRequest

LIMITS = BatchLimits(max_items=16)  # between two of them the model can be stopped
RAW = -1  # vectors as they come: to what length they are brought, the request says
SHAPE = SHAPES["llamacpp"]


def refuse_length(tokens: int) -> ContextOverflow:
    said = f"A text is more tokens than this model reads, which are {tokens}. Nothing was cut off."
    return ContextOverflow(said, remedy="Send it in shorter pieces, or choose a model with a larger window.")


def split_texts(items: Iterable[str]) -> list[tuple[str, ...]]:
    """To the runtime a text would end at a zero."""
    return list(split_items((item.replace("\0", " ") for item in items), LIMITS))


def _sum_tokens(usages: Sequence[Usage | None]) -> Usage | None:
    """Batches of this process are no requests that anybody charges for."""
    summed = sum_usages(usages)
    return summed and Usage(summed.input_tokens)


class FileEmbedder(EmbedModel):
    """One model. What it wants before a text is known by its name: that of the file, or the one that the file has within."""

    def __init__(self, runtime: LlamaRuntime, file: ModelFile, *, context_tokens: int) -> None:
        self._runtime, self._name, self._context_tokens = runtime, file.name, context_tokens
        profiles = [EmbedProfile.from_name(each) for each in (file.name, file.title.replace(" ", "-"))]
        self._profile = next((each for each in profiles if each.known), profiles[0])
        self.features = self._profile.build_features()

    async def compute_vectors(self, request: EmbedRequest) -> EmbedAnswer:
        answers = []
        for batch in split_texts(self._profile.prefix_items(request.items, request.kind)):
            body = {"input": batch, "encoding_format": "float", "embd_normalize": RAW}
            try:
                answers.append(read_answer(await self._runtime.compute_vectors(body), len(batch)))
            except ContextOverflow:
                raise refuse_length(self._context_tokens) from None
        vectors = tuple(vector for answer in answers for vector in answer.vectors)
        return EmbedAnswer(vectors, model=self._name, usage=_sum_tokens([answer.usage for answer in answers]))


class FileRanker(RerankModel):
    """One model, that reads query and text together. Its scores have no bounds."""

    def __init__(self, runtime: LlamaRuntime, file: ModelFile, *, context_tokens: int) -> None:
        self._runtime, self._name, self._context_tokens = runtime, file.name, context_tokens

    async def compute_scores(self, request: RerankRequest) -> RerankAnswer:
        scores: list[float] = []
        usages = []
        for batch in split_texts(request.candidates):
            body = SHAPE.build_body(self._name, request.query.replace("\0", " "), batch)
            try:
                answer = await self._runtime.compute_scores(body)
            except ContextOverflow:
                raise refuse_length(self._context_tokens) from None
            scores += SHAPE.read_scores(answer, len(batch))
            usages.append(read_usage(answer))
        return RerankAnswer(tuple(scores), model=self._name, usage=_sum_tokens(usages))
