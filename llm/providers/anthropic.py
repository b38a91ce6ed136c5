"""Anthropic: models behind Messages."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles.anthropic import AnthropicModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider

from llm.model_features import ModelFeatures
from llm.providers.carried_models import CarriedChat
from llm.providers.http_chats import HttpChatProvider
from llm.providers.wire_watches import MessageWatch
from llm.requests import SchemaFormat

if TYPE_CHECKING:
    from llm.provider_factory import Provider, ProviderConfig
    from llm.providers.http_client import Exchange
    from llm.requests import ChatRequest

import_module("anthropic.resources.beta.messages")  # the library would do it when the first request waits
ADDRESS = "https://api.anthropic.com"
# Models that decide by themselves how much they reason, within an effort. The newest take neither a number of tokens for that, nor
# what chooses among tokens.
NEWEST = re.compile(r"claude-((opus|sonnet)-4-[7-9]|haiku-5-5|(?!haiku)[a-z]+-[5-9](?!\d))")
ADAPTIVE = re.compile(rf"{NEWEST.pattern}|claude-(opus|sonnet)-4-6")
REASONING = re.compile(r"claude-(3-7|[a-z]+-[4-9](?!\d))")
TAKEN = ("tools", "schema", "image_ref", "attachment_ref", "max_tokens", "stop", "tool_choice", "parallel_calls")
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
        wanted, effort = request.response_format, request.reasoning_effort
        output: dict[str, Any] = {}
        if isinstance(wanted, SchemaFormat):
            output["format"] = {"type": "json_schema", "schema": wanted.json_schema}
        if effort not in (None, "auto", "none"):
            output["effort"] = effort
        return {"output_config": output} if output else {}

    def build_extra_body(self, request: ChatRequest) -> dict[str, Any]:
        body: dict[str, Any] = {} if request.top_k is None else {"top_k": request.top_k}
        if request.reasoning_tokens is not None:
            return body | {"thinking": {"type": "enabled", "budget_tokens": request.reasoning_tokens}}
        if request.reasoning_effort is None:
            return body
        return body | {"thinking": {"type": "disabled" if request.reasoning_effort == "none" else "adaptive"}}


class AnthropicModels(HttpChatProvider):
    chat: ClassVar = AnthropicChat
    address: ClassVar = ADDRESS

    def __init__(self, cfg: ProviderConfig) -> None:
        """The library appends /v1 itself, which addresses of other providers have."""
        super().__init__(replace(cfg, base_url=cfg.base_url.rstrip("/").removesuffix("/v1")))

    def find_features(self, name: str) -> ModelFeatures:
        chosen = () if NEWEST.match(name) else ("temperature", "top_p", "top_k")
        tokens = ("reasoning_tokens",) if REASONING.match(name) and not NEWEST.match(name) else ()
        effort = ("reasoning_effort",) if ADAPTIVE.match(name) else ()
        return ModelFeatures.passing(*TAKEN, *chosen, *tokens, *effort)


def build_provider(cfg: ProviderConfig) -> Provider:
    return AnthropicModels(cfg)
