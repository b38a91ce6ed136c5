"""Model profiles: what a model understands, as far as its name tells.

``dialect:model`` names both; a gateway's prefixes and suffixes (``openai/gpt-4o``, ``us.anthropic.claude-…``, ``models/gemini-…``) do
not matter. A name that tells nothing is taken for a model behind OpenAI Chat, which most servers of models speak, and the rendering
says so; where such a model has no function calling, the dialect ``xml`` is the one to name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from unitools.dialects.base import Diagnostic

DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock", "langchain", "mcp", "xml")


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How a model is told of tools."""

    name: str
    capability: Literal["FC_NATIVE", "TEXT"]  # its API takes tools; or it only reads text
    dialects: tuple[str, ...]  # that serve it, the best first
    strict: bool = False  # its API can hold it to a schema
    json_schema: bool = False  # Gemini: its API takes JSON Schema beside its own subset
    known: bool = True

    @classmethod
    def from_name(cls, name: str) -> ModelProfile:
        """Never raises: every name has a profile."""
        dialect, _, model = name.partition(":")
        if dialect in DIALECTS:
            return replace(_of(model or name), name=name, dialects=(dialect,), known=True)
        return _of(name)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the caller should know about how the name was read."""
        if self.known:
            return ()
        said = f"The model {self.name!r} is not known: rendered for {self.dialects[0]}. Name a dialect if it needs another one."
        return (Diagnostic("", "", said, "info"),)


_OPENAI, _RESPONSES = ("openai", "openai-responses", "xml"), ("openai-responses", "xml")
_START = r"(?:^|[^a-z0-9])"
# The first that is found in the name tells.
_FAMILIES: tuple[tuple[str, ModelProfile], ...] = (
    # read and write text only
    (r"claude-(?:instant|v?[12](?![0-9]))", ModelProfile("", "TEXT", ("xml",))),
    (
        r"(?:gpt-3\.5-turbo-(?:instruct|0301)|gpt-4-0314|chatgpt-4o|o1-mini|o1-preview)",
        ModelProfile("", "TEXT", ("xml",)),
    ),
    (r"(?:text-)?(?:davinci|curie|babbage|ada)(?![a-z])", ModelProfile("", "TEXT", ("xml",))),
    (r"(?:llama-?2(?![0-9])|codellama|tinyllama|vicuna|alpaca|falcon)", ModelProfile("", "TEXT", ("xml",))),
    (r"(?:gemma-?[123]?(?![0-9a-z])|phi-?[123](?![0-9])|smollm|deepseek-r1)", ModelProfile("", "TEXT", ("xml",))),
    # have function calling
    (r"claude", ModelProfile("", "FC_NATIVE", ("anthropic", "xml"), strict=True)),
    (r"gemini-1(?![0-9])", ModelProfile("", "FC_NATIVE", ("gemini", "xml"))),
    (r"gemini", ModelProfile("", "FC_NATIVE", ("gemini", "xml"), json_schema=True)),
    (
        r"(?:o[13]-pro|gpt-5[0-9.]*-pro|codex|deep-research|computer-use)",
        ModelProfile("", "FC_NATIVE", _RESPONSES, strict=True),
    ),
    (r"(?:amazon[.]nova|nova-(?:micro|lite|pro|premier))", ModelProfile("", "FC_NATIVE", ("bedrock", "xml"))),
    (r"gpt-oss", ModelProfile("", "FC_NATIVE", _OPENAI)),
    (r"(?:gpt-4o|gpt-4\.[0-9]|gpt-[5-9]|o[1-9](?![0-9a-z]))", ModelProfile("", "FC_NATIVE", _OPENAI, strict=True)),
    (r"gpt-(?:3\.5|4)", ModelProfile("", "FC_NATIVE", _OPENAI)),
    (
        r"(?:llama|qwen|qwq|(?:mi|mini|magi|code|dev)stral|mixtral|deepseek|grok|command|kimi|glm|minimax|granite|hermes|jamba|nemotron)",
        ModelProfile("", "FC_NATIVE", ("openai", "xml")),
    ),
)
_PATTERNS = tuple((re.compile(_START + pattern), profile) for pattern, profile in _FAMILIES)
_UNKNOWN = ModelProfile("", "FC_NATIVE", ("openai", "xml"), known=False)


def _of(name: str) -> ModelProfile:
    said = name.lower()
    found = next((profile for pattern, profile in _PATTERNS if pattern.search(said)), _UNKNOWN)
    return replace(found, name=name)
