"""Anthropic: models behind Messages."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles.anthropic import AnthropicModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider

from llm.model_features import ModelFeatures
from llm.providers.carried_models import CarriedChat, CarriedProvider
from llm.providers.wire_watches import MessageWatch
from llm.requests import SchemaFormat

if TYPE_CHECKING:
    from llm.provider_factory import Provider, ProviderConfig
    from llm.providers.http_client import Exchange
    from llm.requests import ChatRequest

import_module("anthropic.resources.beta.messages")  # the library would do it when the first request waits
ADDRESS = "https://api.anthropic.com"
UNTOUCHED = AnthropicModelProfile(may_tokenize_special_tokens_in_content=False, thinking_tags=("\0", "\0"))


class AnthropicChat(CarriedChat):
    dialect: ClassVar = "anthropic"
    provider: ClassVar = "anthropic"

    def build_watch(self) -> MessageWatch:
        return MessageWatch()

    def build_model(self, exchange: Exchange) -> AnthropicModel:
        client = AsyncAnthropic(
            api_key=self.key or "none",
            base_url=str(self.http.base_url),
            http_client=self.http.build_client(exchange),
            max_retries=0,
        )
        client.auth_token = None  # of the environment
        provider = AnthropicProvider(anthropic_client=client)
        return AnthropicModel(self.name, provider=provider, profile=UNTOUCHED)

    def build_format(self, request: ChatRequest) -> dict[str, Any]:
        wanted = request.response_format
        if not isinstance(wanted, SchemaFormat):
            return {}
        return {"output_config": {"format": {"type": "json_schema", "schema": wanted.json_schema}}}


class AnthropicModels(CarriedProvider):
    chat: ClassVar = AnthropicChat
    address: ClassVar = ADDRESS

    def __init__(self, cfg: ProviderConfig) -> None:
        """The library appends /v1 itself, which addresses of other providers have."""
        super().__init__(replace(cfg, base_url=cfg.base_url.rstrip("/").removesuffix("/v1")))

    def find_features(self, name: str) -> ModelFeatures:
        content = ("tools", "schema", "image_ref", "attachment_ref")
        return ModelFeatures.passing(
            "max_tokens", "stop", "temperature", "top_p", "tool_choice", "parallel_calls", *content
        )


def build_provider(cfg: ProviderConfig) -> Provider:
    return AnthropicModels(cfg)
