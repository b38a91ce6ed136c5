"""Prefixed models: a text before every conversation, which those who talk do not see."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from llm.interfaces import ChatModel
from llm.messages import SystemMessage, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from llm.answers import ChatDelta
    from llm.requests import ChatRequest


class PrefixedChat(ChatModel):
    """A model that is sent a system message before all others. What is said of a request counts its messages without it."""

    def __init__(self, model: ChatModel, prefix: str) -> None:
        self.features = model.features
        self._model = model
        self._first = SystemMessage((Text(prefix),))

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        whole = replace(request, messages=(self._first, *request.messages))
        async with aclosing(self._model.open_stream(whole)) as deltas:
            async for delta in deltas:
                yield delta
