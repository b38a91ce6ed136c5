"""Carried models: chat with a provider through pydantic-ai's model classes, of which only those that speak to a provider are used.

The carrier renders messages and reads pieces. What it leaves out, changes or does not notice is done here: tools and formats are
rendered by the dialects of unitools, parameters are sent as given, and the wire itself says when an answer is whole (ADR 0037).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import ModelRequestParameters

from kernel.problems import Problem
from llm.answers import ChatDelta, ToolCallDelta
from llm.providers.conversations import Conversation
from llm.providers.failures import classify_exception
from llm.providers.http_chats import HttpChat
from llm.providers.http_client import Exchange
from llm.providers.tool_choices import write_single_call, write_tool_choice
from unitools.dialects import render

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from pydantic_ai.messages import ModelResponseStreamEvent
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from llm.providers.wire_watches import WireWatch
    from llm.requests import ChatRequest

# Parameters by the carrier's names.
SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}


class CarriedChat(HttpChat):
    """One model of a provider. Each request has a client of the provider's library of its own, and all share the connections."""

    @abstractmethod
    def build_watch(self) -> WireWatch: ...

    @abstractmethod
    def build_model(self, exchange: Exchange) -> Model[Any]: ...

    @abstractmethod
    def build_format(self, request: ChatRequest) -> dict[str, Any]:
        """The part of the body that asks for JSON."""

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        watch = self.build_watch()
        exchange = Exchange(self.http, watch=watch)
        try:
            async with aclosing(self._read_stream(request, exchange, watch)) as deltas:
                async for delta in deltas:
                    yield delta
        except Problem:
            raise
        except Exception as error:
            raise exchange.problem or classify_exception(error) from error

    async def _read_stream(
        self, request: ChatRequest, exchange: Exchange, watch: WireWatch
    ) -> AsyncGenerator[ChatDelta, None]:
        model = self.build_model(exchange)
        conversation = Conversation(self.provider, model.system, self.dialect, self.resolve)
        messages = await conversation.build_messages(request.messages)
        rendered = render(request.tools, self.dialect)
        settings = self.build_settings(request, rendered.payload)
        async with model.request_stream(messages, settings, ModelRequestParameters()) as stream:
            async with aclosing(cast("AsyncGenerator[ModelResponseStreamEvent]", aiter(stream))) as events:
                async for delta in read_deltas(events, rendered.names):
                    yield delta
            watch.finish()
            state = conversation.keep_state(list(stream.get().parts))
        yield ChatDelta(
            model=watch.model,
            usage=watch.usage,
            provider_state=state,
            finish_reason=watch.finish_reason,
        )

    def build_settings(self, request: ChatRequest, tools: list[dict[str, Any]]) -> ModelSettings:
        settings: dict[str, Any] = {
            theirs: value for ours, theirs in SETTINGS.items() if (value := getattr(request, ours)) is not None
        }
        if request.stop:
            settings["stop_sequences"] = list(request.stop)
        if request.logit_bias:
            settings["logit_bias"] = dict(request.logit_bias)
        body = self.build_format(request) | ({"tools": tools} if tools else {}) | self.build_extra_body(request)
        if request.tool_choice is not None:
            body["tool_choice"] = write_tool_choice(request.tool_choice, self.dialect)
        if request.tools and not request.parallel_calls:
            body |= write_single_call(body.get("tool_choice"), self.dialect)
        if body:
            settings["extra_body"] = body
        if request.idempotency_key:
            settings["extra_headers"] = {"Idempotency-Key": request.idempotency_key}
        return cast("ModelSettings", settings)

    def build_extra_body(self, request: ChatRequest) -> dict[str, Any]:
        """What the carrier has no name for."""
        return {}


async def read_deltas(
    events: AsyncIterator[ModelResponseStreamEvent], names: Mapping[str, str]
) -> AsyncIterator[ChatDelta]:
    """The carrier's events as pieces of an answer. ``names``: of the tools, by what the provider calls them."""
    async for event in events:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                if text:
                    yield ChatDelta(text=text)
            case PartStartEvent(index=index, part=ToolCallPart() as part):
                name = names.get(part.tool_name, part.tool_name)
                yield build_call(index, part.tool_call_id, name, part.args)
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta() as delta):
                yield build_call(index, "", delta.tool_name_delta or "", delta.args_delta)


def build_call(index: int, call_id: str, name: str, arguments: str | Mapping[str, Any] | None) -> ChatDelta:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
    return ChatDelta(tool_call=ToolCallDelta(index, call_id, name, text))
