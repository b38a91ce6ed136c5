"""OpenAI Responses: the same models as behind Chat Completions, with their reasoning. Nothing is kept by the provider."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile

from llm.model_features import ModelFeatures
from llm.providers.carried_models import CarriedChat
from llm.providers.openai_chat import (
    ADDRESS,
    REASONING,
    UNTOUCHED,
    build_openai_provider,
    build_schema,
    write_effort,
)
from llm.providers.openai_like import OpenAILikeProvider
from llm.providers.wire_watches import ResponseWatch
from llm.requests import SchemaFormat, TextFormat

if TYPE_CHECKING:
    from llm.provider_factory import Provider, ProviderConfig
    from llm.providers.http_client import Exchange
    from llm.requests import ChatRequest

import_module("openai.resources.responses")  # the library would do it when the first request waits


class ResponsesChat(CarriedChat):
    dialect: ClassVar = "openai-responses"
    provider: ClassVar = "openai_responses"

    def build_watch(self) -> ResponseWatch:
        return ResponseWatch()

    def build_model(self, exchange: Exchange) -> OpenAIResponsesModel:
        reasons = OpenAIModelProfile(openai_supports_encrypted_reasoning_content=bool(REASONING.match(self.name)))
        provider = build_openai_provider(self, exchange)
        return OpenAIResponsesModel(self.name, provider=provider, profile=UNTOUCHED | reasons)

    def build_format(self, request: ChatRequest) -> dict[str, Any]:
        wanted = request.response_format
        if isinstance(wanted, TextFormat):
            return {}
        if not isinstance(wanted, SchemaFormat):
            return {"text": {"format": {"type": "json_object"}}}
        return {"text": {"format": {"type": "json_schema", **build_schema(wanted)}}}

    def build_extra_body(self, request: ChatRequest) -> dict[str, Any]:
        effort = write_effort(request)
        return {"store": False} | ({} if effort is None else {"reasoning": {"effort": effort}})


class ResponsesModels(OpenAILikeProvider):
    chat: ClassVar = ResponsesChat
    address: ClassVar = ADDRESS

    def find_features(self, name: str) -> ModelFeatures:
        content = ("tools", "json", "schema", "image_ref", "attachment_ref")
        chosen = ("reasoning_effort",) if REASONING.match(name) else ("temperature", "top_p")
        return ModelFeatures.passing("max_tokens", "tool_choice", "parallel_calls", *chosen, *content)


def build_provider(cfg: ProviderConfig) -> Provider:
    return ResponsesModels(cfg)
