"""Gemini: Google's models, over generateContent.

The key goes in a header, never in the address, for addresses end up in logs.
"""

from __future__ import annotations

import base64
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kernel.problems import NotFound
from llm.interfaces import ChatModel
from llm.messages import Text, ToolMessage, UserMessage
from llm.model_features import ModelFeatures
from llm.problems import ParameterUnsupported
from llm.providers.connections import build_http_client
from llm.providers.failures import classify_frame
from llm.providers.gemini_requests import build_body, list_reasoning, render_tools
from llm.providers.gemini_streams import ContentReader, read_chunks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from llm.answers import ChatDelta
    from llm.interfaces import EmbedModel, RerankModel
    from llm.messages import AttachmentRef, AudioRef, ImageRef, Segment
    from llm.provider_factory import Provider, ProviderConfig
    from llm.providers.http_client import HttpClient
    from llm.requests import ChatRequest

    Resolver = Callable[[ImageRef | AudioRef | AttachmentRef], Awaitable[bytes]]

ADDRESS = "https://generativelanguage.googleapis.com/v1beta"
# Most of its models refuse penalties, and none knows biases of tokens.
PARAMETERS = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "tools", "tool_choice", "json", "schema")
FILES = ("image_ref", "audio_ref", "attachment_ref")


class GeminiProvider:
    """Google, or an address that speaks as it does. Option ``resolve``: gives the bytes of what the hub holds."""

    def __init__(self, cfg: ProviderConfig) -> None:
        self._resolve: Resolver | None = cfg.options.get("resolve")
        self._client = build_http_client(cfg, ADDRESS, {"x-goog-api-key": cfg.key})

    def get_chat_model(self, name: str) -> ChatModel:
        return GeminiChat(self._client, name, self._resolve)

    def get_embed_model(self, name: str) -> EmbedModel:
        raise NotFound("The provider has no model here that makes vectors.")

    def get_rerank_model(self, name: str) -> RerankModel:
        raise NotFound("The provider has no model that orders texts.")

    async def aclose(self) -> None:
        await self._client.aclose()


def build_provider(cfg: ProviderConfig) -> Provider:
    return GeminiProvider(cfg)


class GeminiChat(ChatModel):
    """One of its models. Without a way to read files it takes none."""

    def __init__(self, http: HttpClient, name: str, resolve: Resolver | None = None) -> None:
        self.http = http
        self._name = name
        self._resolve = resolve
        self.features = ModelFeatures.passing(*PARAMETERS, *list_reasoning(name), *(FILES if resolve else ()))

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        tools = render_tools(request.tools, self._name)
        files = await self._read_files(request)
        body = build_body(request, tools, lambda segment: files[_get_id(segment)])
        reader = ContentReader(tools.names)
        path = f"/models/{quote(self._name.removeprefix('models/'), safe='')}:streamGenerateContent"
        async with (
            self.http.open_stream(path, body=body, params={"alt": "sse"}) as response,
            aclosing(read_chunks(response)) as chunks,
        ):
            async for chunk in chunks:
                if chunk.get("error"):
                    raise classify_frame(chunk)
                for delta in reader.read(chunk):
                    yield delta
        yield reader.finish()

    async def _read_files(self, request: ChatRequest) -> dict[str, dict[str, Any]]:
        """The part of each file that the request names, by its id."""
        parts: dict[str, dict[str, Any]] = {}
        for message in request.messages:
            for segment in message.segments if isinstance(message, (UserMessage, ToolMessage)) else ():
                if isinstance(segment, Text) or segment.id in parts:
                    continue
                if self._resolve is None:
                    raise ParameterUnsupported
                data = base64.b64encode(await self._resolve(segment)).decode()
                parts[segment.id] = {"inlineData": {"mimeType": segment.media_type, "data": data}}
        return parts


def _get_id(segment: Segment) -> str:
    return "" if isinstance(segment, Text) else segment.id
