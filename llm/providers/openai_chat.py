"""OpenAI: models behind Chat Completions."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

from llm.model_features import ModelFeatures
from llm.providers.carried_models import CarriedChat
from llm.providers.openai_like import OpenAILikeProvider
from llm.providers.wire_watches import ChatWatch
from llm.requests import SchemaFormat, TextFormat
from unitools.dialects.schemas import CannotSay
from unitools.dialects.strict_schemas import OPENAI, make_strict

if TYPE_CHECKING:
    from llm.provider_factory import Provider, ProviderConfig
    from llm.providers.http_client import Exchange
    from llm.requests import ChatRequest

import_module("openai.resources.chat.completions")  # the library would do it when the first request waits
ADDRESS = "https://api.openai.com/v1"
CONTENT = ("tools", "json", "schema", "image_ref", "audio_ref", "attachment_ref")
SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias")
# Models that reason refuse what chooses among tokens; the seed and words to stop at are refused by most of them.
REASONING = re.compile(r"(o[1-9]|gpt-[5-9])(?!.*chat)")
UNTOUCHED = OpenAIModelProfile(
    # Nothing of a request is dropped or changed because of a model's name: the tables of features decide.
    openai_supports_reasoning=False,
    may_tokenize_special_tokens_in_content=False,
    ignore_streamed_leading_whitespace=False,
    thinking_tags=("\0", "\0"),
)


class OpenAIChat(CarriedChat):
    dialect: ClassVar = "openai"
    provider: ClassVar = "openai"
    profile: OpenAIModelProfile = UNTOUCHED

    def build_watch(self) -> ChatWatch:
        return ChatWatch()

    def build_model(self, exchange: Exchange) -> OpenAIChatModel:
        return OpenAIChatModel(self.name, provider=build_openai_provider(self, exchange), profile=self.profile)

    def build_format(self, request: ChatRequest) -> dict[str, Any]:
        wanted = request.response_format
        if isinstance(wanted, TextFormat):
            return {}
        if not isinstance(wanted, SchemaFormat):
            return {"response_format": {"type": "json_object"}}
        return {"response_format": {"type": "json_schema", "json_schema": build_schema(wanted)}}

    def build_extra_body(self, request: ChatRequest) -> dict[str, Any]:
        body: dict[str, Any] = {} if request.top_k is None else {"top_k": request.top_k}
        effort = write_effort(request)
        return body | ({} if effort is None else {"reasoning_effort": effort})


def write_effort(request: ChatRequest) -> str | None:
    """The effort in OpenAI's words, which has none for leaving it to the model."""
    return None if request.reasoning_effort == "auto" else request.reasoning_effort


def build_openai_provider(model: CarriedChat, exchange: Exchange) -> OpenAIProvider:
    client = AsyncOpenAI(
        api_key=model.key or "none",
        base_url=str(model.http.base_url),
        http_client=model.http.build_client(exchange),
        max_retries=0,
    )
    client.organization = client.project = None  # of the environment
    return OpenAIProvider(openai_client=client)


def build_schema(wanted: SchemaFormat) -> dict[str, Any]:
    """The schema, and whether the model is held to it: only where it is one of those that the provider takes for that as it stands."""
    try:
        strict = make_strict(wanted.json_schema, OPENAI) == wanted.json_schema
    except CannotSay:
        strict = False
    return {"name": "answer", "schema": wanted.json_schema, "strict": strict}


class OpenAIModels(OpenAILikeProvider):
    chat: ClassVar = OpenAIChat
    address: ClassVar = ADDRESS

    def find_features(self, name: str) -> ModelFeatures:
        if REASONING.match(name):
            return ModelFeatures.passing("max_tokens", "reasoning_effort", "tool_choice", "parallel_calls", *CONTENT)
        return ModelFeatures.passing("max_tokens", "stop", "seed", "tool_choice", "parallel_calls", *SAMPLING, *CONTENT)


def build_provider(cfg: ProviderConfig) -> Provider:
    return OpenAIModels(cfg)
