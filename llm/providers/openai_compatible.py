"""OpenAI-compatible servers: whatever speaks Chat Completions at an address of its own, and how each differs from OpenAI.

The option ``flavour`` names a row of the table; ``features`` names what a model can do where the table does not know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kernel.problems import SchemaInvalid
from llm.model_features import ModelFeatures
from llm.providers.openai_chat import SAMPLING, OpenAIChat
from llm.providers.openai_like import OpenAILikeProvider

if TYPE_CHECKING:
    from llm.interfaces import ChatModel
    from llm.provider_factory import Provider, ProviderConfig

BASIC = ("max_tokens", "stop", "temperature", "top_p")
PENALTIES = ("frequency_penalty", "presence_penalty")
ALL = ("max_tokens", "stop", "seed", *SAMPLING, "tools", "tool_choice", "parallel_calls", "json", "schema", "image_ref")


@dataclass(frozen=True, slots=True)
class Flavour:
    """One server. ``needs_mark``: its streams end with ``[DONE]``."""

    features: tuple[str, ...] = ALL
    needs_mark: bool = True


FLAVOURS = {
    "": Flavour(),
    "deepseek": Flavour((*BASIC, *PENALTIES, "tools", "tool_choice", "json")),
    "llama.cpp": Flavour((*ALL, "top_k")),
    "ollama": Flavour((*BASIC, *PENALTIES, "seed", "reasoning_effort", "tools", "json", "schema", "image_ref")),
    "openrouter": Flavour((*ALL, "top_k", "reasoning_effort")),
    "qwen": Flavour((*BASIC, "presence_penalty", "top_k", "seed", "tools", "json", "image_ref")),
    "vllm": Flavour((*ALL, "top_k", "reasoning_effort")),
}


class CompatibleChat(OpenAIChat):
    provider: ClassVar = "openai_compatible"
    limit: ClassVar = "max_tokens"


class CompatibleModels(OpenAILikeProvider):
    chat: ClassVar = CompatibleChat

    def __init__(self, cfg: ProviderConfig) -> None:
        super().__init__(cfg)
        name = cfg.options.get("flavour", "")
        if name not in FLAVOURS:
            known = ", ".join(filter(None, FLAVOURS))
            raise SchemaInvalid.at("/options/flavour", f"Leave out the flavour, or name one of {known}.")
        self.flavour = FLAVOURS[name]
        self.features = ModelFeatures.passing(*cfg.options.get("features", self.flavour.features))

    def find_features(self, name: str) -> ModelFeatures:
        return self.features

    def get_chat_model(self, name: str) -> ChatModel:
        model = super().get_chat_model(name)
        assert isinstance(model, CompatibleChat)
        model.needs_mark = self.flavour.needs_mark
        return model


def build_provider(cfg: ProviderConfig) -> Provider:
    return CompatibleModels(cfg)
