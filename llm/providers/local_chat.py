"""Local chat: a small model in this process, for a hub without a network.

It shows that everything around a model works, and is no measure of what models can do. Its runtime takes descriptions of tools and
ignores them, so they are told to the model in words, and a grammar holds its answer to either calls or a text. Templates of small
models know no calls and no answers to them: both are put into the conversation as text.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.interfaces import ChatModel
from llm.messages import AssistantMessage, SystemMessage, Text, ToolMessage
from llm.model_features import ModelFeatures
from llm.requests import SchemaFormat
from llm.untrusted_texts import delimit_result
from llm.usage import read_figures
from unitools.calls import to_json
from unitools.dialects.model_json import load_json
from unitools.dialects.streams.base import CollectedText, get_chunk, get_chunks, get_word
from unitools.strict_json import JsonRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    from llm.messages import Message
    from llm.providers.local_runtime import LlamaRuntime
    from llm.requests import ChatRequest
    from llm.usage import Usage
    from unitools.calls import ToolSpec

MAX_OUTPUT_TOKENS = 1024
MAX_CALLS = 1  # at once: where they may, models of this size repeat themselves up to the limit
FEATURES = ModelFeatures.passing(
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "stop",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "tools",
    "schema",
    max_output_tokens=MAX_OUTPUT_TOKENS,
)
# Without any system message, models of this size answer in other languages, or nonsense.
SYSTEM = "You are a helpful assistant."
REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class LocalChat(ChatModel):
    """One model of a runtime."""

    features = FEATURES

    def __init__(self, runtime: LlamaRuntime, name: str) -> None:
        self._runtime = runtime
        self._name = name

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        framed, is_framed = CollectedText(), bool(request.tools)
        async with aclosing(self._runtime.stream(build_body(request))) as chunks:
            async for chunk in chunks:
                for choice in get_chunks(chunk, "choices"):
                    text = get_word(get_chunk(choice, "delta"), "content")
                    if is_framed:
                        framed.add(text)
                    elif text:
                        yield ChatDelta(text=text, model=self._name)
                    if reason := get_word(choice, "finish_reason"):
                        finish = REASONS.get(reason, FinishReason.OTHER)
                        for delta in read_frame(str(framed), finish) if is_framed else [_end(finish)]:
                            yield replace(delta, model=self._name)
                if usage := read_usage(get_chunk(chunk, "usage")):
                    yield ChatDelta(usage=usage)


def _end(finish: FinishReason) -> ChatDelta:
    return ChatDelta(finish_reason=finish)


def build_body(request: ChatRequest) -> dict[str, Any]:
    """A request as llama.cpp takes it."""
    body: dict[str, Any] = {
        "messages": list(_build_messages(request.messages, request.tools)),
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": request.max_tokens or MAX_OUTPUT_TOKENS,
    }
    for name in ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"):
        if (value := getattr(request, name)) is not None:
            body[name] = value
    if request.stop:
        body["stop"] = list(request.stop)
    wanted = request.response_format.json_schema if isinstance(request.response_format, SchemaFormat) else None
    schema = build_frame(request.tools, wanted) if request.tools else wanted
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    return body


def build_frame(tools: Sequence[ToolSpec], wanted: dict[str, Any] | None) -> dict[str, Any]:
    """The schema of an answer that is either calls, or a text (or the document that was asked for)."""
    calls = [_build_object(name={"const": tool.name}, arguments=dict(tool.parameters)) for tool in tools]
    listed = {"type": "array", "minItems": 1, "maxItems": MAX_CALLS, "items": {"anyOf": calls}}
    answer = {"text": {"type": "string"}} if wanted is None else {"output": wanted}
    return {"anyOf": [_build_object(tool_calls=listed), _build_object(**answer)]}


def _build_object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_frame(text: str, finish: FinishReason) -> Iterator[ChatDelta]:
    """The pieces of an answer in the form of :func:`build_frame`. Of one that was cut, also by a stop sequence, nothing is used."""
    try:
        answer = load_json(text) if finish is FinishReason.STOP else {}
    except JsonRefused:
        answer, finish = {}, FinishReason.OTHER
    for index, call in enumerate(get_chunks(answer, "tool_calls")):
        arguments = to_json(call.get("arguments"))
        yield ChatDelta(tool_call=ToolCallDelta(index, name=get_word(call, "name"), arguments=arguments))
    if "text" in answer or "output" in answer:
        yield ChatDelta(text=get_word(answer, "text") if "text" in answer else to_json(answer["output"]))
    yield _end(finish)


def _build_messages(messages: Iterable[Message], tools: Sequence[ToolSpec]) -> Iterator[dict[str, str]]:
    messages = list(messages)
    system = [_join(message.segments) for message in messages if isinstance(message, SystemMessage)]
    yield {"role": "system", "content": "\n\n".join([*(system or [SYSTEM]), *_describe_tools(tools)])}
    for message in messages:
        match message:
            case SystemMessage():
                continue
            case AssistantMessage(proposals=proposals) if proposals:
                calls = [{"name": call.name, "arguments": call.arguments or {}} for call in proposals]
                yield {"role": "assistant", "content": _join([*message.segments, Text(to_json({"tool_calls": calls}))])}
            case AssistantMessage():
                text = _join(message.segments)
                # In the form that its next answer is held to: a model of this size goes on as it sees that it has begun.
                yield {"role": "assistant", "content": to_json({"text": text}) if tools else text}
            case ToolMessage():
                yield {"role": "user", "content": delimit_result(message)}
            case _:
                yield {"role": "user", "content": _join(message.segments)}


def _join(segments: Iterable[Any]) -> str:
    return "\n".join(segment.text for segment in segments if isinstance(segment, Text))


def _describe_tools(tools: Sequence[ToolSpec]) -> Iterator[str]:
    if tools:
        listed = "\n".join(f"- {tool.name}: {tool.description} {to_json(dict(tool.parameters))}" for tool in tools)
        yield (
            f'Tools:\n{listed}\nTo use them, answer {{"tool_calls": [{{"name": "…", "arguments": {{…}}}}]}}. '
            'If you need none, answer {"text": "…"}.'
        )


def read_usage(counts: dict[str, Any]) -> Usage | None:
    """What the runtime counted, which is exact."""
    cached = get_chunk(counts, "prompt_tokens_details").get("cached_tokens", 0)
    return read_figures(counts.get("prompt_tokens"), counts.get("completion_tokens"), cached)
