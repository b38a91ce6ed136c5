"""OpenAI Responses: the same models as behind Chat Completions, with their reasoning. Nothing is kept by the provider."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

from llm.model_features import ModelFeatures
from llm.providers.carried_models import CarriedChat
from llm.providers.openai_chat import ADDRESS, ALWAYS, REASONING
from llm.providers.openai_like import OpenAILikeProvider
from llm.providers.openai_requests import build_schema, write_cache_key, write_effort
from llm.providers.wire_watches import ResponseWatch
from llm.requests import SchemaFormat, TextFormat

if TYPE_CHECKING:
    from llm.provider_factory import Provider, ProviderConfig
    from llm.providers.http_client import Exchange
    from llm.requests import ChatRequest

import_module("openai.resources.responses")  # the library would do it when the first request waits
UNTOUCHED = OpenAIModelProfile(
    # Nothing of a request is dropped or changed because of a model's name: the tables of features decide.
    openai_supports_reasoning=False,
    may_tokenize_special_tokens_in_content=False,
    ignore_streamed_leading_whitespace=False,
    thinking_tags=("\0", "\0"),
)


class ResponsesChat(CarriedChat):
    dialect: ClassVar = "openai-responses"
    provider: ClassVar = "openai_responses"

    def build_watch(self) -> ResponseWatch:
        return ResponseWatch()

    def build_model(self, exchange: Exchange) -> OpenAIResponsesModel:
        reasons = OpenAIModelProfile(openai_supports_encrypted_reasoning_content=bool(REASONING.match(self.name)))
        client = AsyncOpenAI(
            api_key=self.key or "none",
            base_url=str(self.http.base_url),
            http_client=self.http.build_client(exchange),
            max_retries=0,
        )
        client.organization = client.project = None  # of the environment
        provider = OpenAIProvider(openai_client=client)
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
        said = {"store": False} | write_cache_key(request)
        return said if effort is None else said | {"reasoning": {"effort": effort}}


class ResponsesModels(OpenAILikeProvider):
    chat: ClassVar = ResponsesChat
    address: ClassVar = ADDRESS

    def find_features(self, name: str) -> ModelFeatures:
        content = ("tools", "json", "schema", "image_ref", "attachment_ref")
        chosen = ("reasoning_effort",) if REASONING.match(name) else ("temperature", "top_p")
        return ModelFeatures.passing(*ALWAYS, *chosen, *content)


def build_provider(cfg: ProviderConfig) -> Provider:
    return ResponsesModels(cfg)
