"""Drivers: each joins the rendering and the reading of one dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from unitools.dialects.base import AS_USUAL, ReadOptions, Rendered, RenderOptions
from unitools.dialects.parsers import anthropic as read_anthropic
from unitools.dialects.parsers import bedrock as read_bedrock
from unitools.dialects.parsers import gemini as read_gemini
from unitools.dialects.parsers import langchain as read_langchain
from unitools.dialects.parsers import mcp as read_mcp
from unitools.dialects.parsers import openai as read_openai
from unitools.dialects.parsers import openai_responses as read_responses
from unitools.dialects.parsers import xml as read_xml
from unitools.dialects.renderers import anthropic as render_anthropic
from unitools.dialects.renderers import bedrock as render_bedrock
from unitools.dialects.renderers import gemini as render_gemini
from unitools.dialects.renderers import langchain as render_langchain
from unitools.dialects.renderers import mcp as render_mcp
from unitools.dialects.renderers import openai as render_openai
from unitools.dialects.renderers import openai_responses as render_responses
from unitools.dialects.renderers import xml as render_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult, ToolSpec
    from unitools.dialects.base import Driver
    from unitools.dialects.model_profiles import ModelProfile

_BEST, _NEXT = 100, 10  # the first of a profile's dialects; how much less each further one is


class _Renderer(Protocol):
    def render(self, tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered: ...


class _Parser(Protocol):
    def detect(self, response: object) -> int: ...
    def parse(self, response: object, reading: ReadOptions) -> list[ToolCall]: ...
    def reply(self, results: Sequence[ToolResult]) -> Any: ...


class _DialectDriver:
    """A driver of two modules: what renders, and what reads."""

    dialect: ClassVar[str]
    _rendering: _Renderer
    _reading: _Parser

    def can_handle(self, profile: ModelProfile) -> int:
        if self.dialect not in profile.dialects:
            return 0
        return max(1, _BEST - _NEXT * profile.dialects.index(self.dialect))

    def render(self, tools: Sequence[ToolSpec], options: RenderOptions = AS_USUAL) -> Rendered:
        return self._rendering.render(tools, options)

    def detect(self, response: object) -> int:
        return self._reading.detect(response)

    def parse(self, response: object, reading: ReadOptions) -> list[ToolCall]:
        return self._reading.parse(response, reading)

    def reply(self, results: Sequence[ToolResult]) -> Any:
        return self._reading.reply(results)


class OpenAIDriver(_DialectDriver):
    """OpenAI Chat Completions, which most servers of open models speak too."""

    dialect: ClassVar[str] = "openai"
    _rendering, _reading = render_openai, read_openai


class OpenAIResponsesDriver(_DialectDriver):
    """OpenAI Responses."""

    dialect: ClassVar[str] = "openai-responses"
    _rendering, _reading = render_responses, read_responses


class AnthropicDriver(_DialectDriver):
    """Anthropic Messages."""

    dialect: ClassVar[str] = "anthropic"
    _rendering, _reading = render_anthropic, read_anthropic


class GeminiDriver(_DialectDriver):
    """Gemini's generateContent."""

    dialect: ClassVar[str] = "gemini"
    _rendering, _reading = render_gemini, read_gemini


class BedrockDriver(_DialectDriver):
    """Amazon Bedrock's Converse, whichever model answers behind it."""

    dialect: ClassVar[str] = "bedrock"
    _rendering, _reading = render_bedrock, read_bedrock


class LangChainDriver(_DialectDriver):
    """Messages of LangChain, whichever provider stands behind them."""

    dialect: ClassVar[str] = "langchain"
    _rendering, _reading = render_langchain, read_langchain


class MCPDriver(_DialectDriver):
    """The tools/list and tools/call of the Model Context Protocol."""

    dialect: ClassVar[str] = "mcp"
    _rendering, _reading = render_mcp, read_mcp


class XMLDriver(_DialectDriver):
    """Text for a prompt, for models that only read and write text."""

    dialect: ClassVar[str] = "xml"
    _rendering, _reading = render_xml, read_xml


DRIVERS: tuple[Driver, ...] = (
    OpenAIDriver(),
    OpenAIResponsesDriver(),
    AnthropicDriver(),
    GeminiDriver(),
    BedrockDriver(),
    LangChainDriver(),
    MCPDriver(),
    XMLDriver(),
)
