"""OpenAI: models behind Chat Completions, which many servers speak as well."""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING, ClassVar

from kernel.problems import Problem
from llm.model_features import ModelFeatures
from llm.providers.failures import classify_exception
from llm.providers.http_chats import HttpChat
from llm.providers.openai_like import OpenAILikeProvider
from llm.providers.openai_requests import DIALECT, OpenAIRequest
from llm.providers.openai_streams import ChatReader
from unitools.dialects import render

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from llm.answers import ChatDelta
    from llm.provider_factory import Provider, ProviderConfig
    from llm.requests import ChatRequest

ADDRESS = "https://api.openai.com/v1"
PATH = "/chat/completions"
CONTENT = ("tools", "json", "schema", "image_ref", "audio_ref", "attachment_ref")
ALWAYS = ("max_tokens", "tool_choice", "parallel_calls", "cache_hint")
SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias")
# Models that reason refuse what chooses among tokens; the seed and words to stop at are refused by most of them.
REASONING = re.compile(r"(o[1-9]|gpt-[5-9])(?!.*chat)")


class OpenAIChat(HttpChat):
    """One of its models. ``limit``: what the server calls the limit of tokens; ``needs_mark``: its streams end with ``[DONE]``."""

    dialect: ClassVar = DIALECT
    provider: ClassVar = "openai"
    limit: ClassVar = "max_completion_tokens"
    needs_mark = True

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        rendered = render(request.tools, self.dialect)
        asked = OpenAIRequest(request, self.provider, self.resolve)
        body = await asked.build_body(self.name, rendered.payload, limit=self.limit)
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if request.idempotency_key:
            headers["Idempotency-Key"] = request.idempotency_key
        reader = ChatReader(rendered.names, provider=self.provider, needs_mark=self.needs_mark)
        try:
            async with (
                self.http.open_stream(PATH, body=body, headers=headers, watch=reader) as response,
                aclosing(response.aiter_raw()) as read,
            ):
                async for _ in read:
                    for piece in reader.take_pieces():
                        yield piece
            yield reader.build_end()
        except Problem:
            raise
        except Exception as error:
            raise classify_exception(error) from error


class OpenAIModels(OpenAILikeProvider):
    chat: ClassVar = OpenAIChat
    address: ClassVar = ADDRESS

    def find_features(self, name: str) -> ModelFeatures:
        if REASONING.match(name):
            return ModelFeatures.passing("reasoning_effort", *ALWAYS, *CONTENT)
        return ModelFeatures.passing("stop", "seed", *ALWAYS, *SAMPLING, *CONTENT)


def build_provider(cfg: ProviderConfig) -> Provider:
    return OpenAIModels(cfg)
