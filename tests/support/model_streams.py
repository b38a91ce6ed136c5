"""Streams of models' answers: a whole response, cut into the chunks in which its provider would have sent it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from unitools.dialects import ReadOptions, find_driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PIECE = 5  # characters of a text in one chunk


def calls_in(dialect: str, response: Any) -> list[tuple[str, Any, Any]]:
    """Name, arguments and what is wrong with them, of each call that a response or a stream of it holds."""
    calls = find_driver(dialect).parse(response, ReadOptions())
    return [(call.name, call.arguments, call.problem) for call in calls]


def pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def chat_chunks(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """OpenAI Chat Completions."""
    head = {name: whole.get(name) for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}]}

    (choice,) = whole["choices"]
    yield chunk({"role": "assistant", "content": None})
    for text in pieces(choice["message"].get("content") or ""):
        yield chunk({"content": text})
    for index, call in enumerate(choice["message"].get("tool_calls") or ()):
        said = call["function"]
        yield chunk({"tool_calls": [{"index": index, **call, "function": {"name": said["name"], "arguments": ""}}]})
        for text in pieces(said["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    yield chunk({}, choice["finish_reason"])
    yield {**head, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}


def response_events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """OpenAI Responses."""
    number = iter(range(1_000_000))

    def event(kind: str, **said: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "sequence_number": next(number), **said}

    yield event("created", response={**whole, "status": "in_progress", "output": []})
    for at, item in enumerate(whole["output"]):
        yield event("output_item.added", output_index=at, item={**item, "status": "in_progress"})
        for text in pieces(item.get("arguments", "")):
            yield event("function_call_arguments.delta", output_index=at, item_id=item["id"], delta=text)
        yield event("output_item.done", output_index=at, item=item)
    yield event("completed" if whole["status"] == "completed" else "incomplete", response=whole)


def message_events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Anthropic Messages."""
    usage = {"input_tokens": 1, "output_tokens": 0}
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        is_call = block["type"] == "tool_use"
        begun = {**block, "input": {}} if is_call else {**block, "text": ""}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        said = json.dumps(block["input"], ensure_ascii=False) if is_call else block["text"]
        for text in pieces(said):
            delta = (
                {"type": "input_json_delta", "partial_json": text} if is_call else {"type": "text_delta", "text": text}
            )
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {name: whole[name] for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def content_chunks(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Gemini: a part in each chunk, the reason of the end in the last."""
    (candidate,) = whole["candidates"]
    head = {name: value for name, value in whole.items() if name != "candidates"}
    parts = [
        part
        for each in candidate["content"]["parts"]
        for part in ([{**each, "text": text} for text in pieces(each["text"])] if "text" in each else [each])
    ]
    for part in parts:
        yield {**head, "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
    last = {"content": {"role": "model", "parts": []}, "finishReason": candidate["finishReason"], "index": 0}
    yield {**head, "candidates": [last], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4}}


def converse_events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Bedrock's ConverseStream, as boto3 gives it."""
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(whole["output"]["message"]["content"]):
        at = {"contentBlockIndex": index}
        if "toolUse" in block:
            call = block["toolUse"]
            yield {"contentBlockStart": {"start": {"toolUse": {k: call[k] for k in ("toolUseId", "name")}}, **at}}
            for text in pieces(json.dumps(call["input"], ensure_ascii=False)):
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": text}}, **at}}
        else:
            for text in pieces(block["text"]):
                yield {"contentBlockDelta": {"delta": {"text": text}, **at}}
        yield {"contentBlockStop": at}
    yield {"messageStop": {"stopReason": whole["stopReason"]}}
    yield {"metadata": {"usage": whole["usage"], "metrics": whole["metrics"]}}


def langchain_chunks(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """LangChain's AIMessageChunk, as its ``model_dump()`` gives it; the calls that it made of pieces are not to be believed."""

    def chunk(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
        said = {"type": "AIMessageChunk", "id": whole["id"], "content": "", "response_metadata": {}}
        guessed: list[Any] = [{"type": "tool_call", "id": None, "name": "", "args": {}} for _ in calls]
        return said | {"tool_calls": guessed, "invalid_tool_calls": [], "tool_call_chunks": list(calls), **more}

    for index, call in enumerate(whole["tool_calls"]):
        head = {"type": "tool_call_chunk", "index": index}
        yield chunk({**head, "id": call["id"], "name": call["name"], "args": ""})
        for text in pieces(json.dumps(call["args"], ensure_ascii=False)):
            yield chunk({**head, "id": None, "name": None, "args": text})
    yield chunk(response_metadata=whole["response_metadata"])
    yield chunk(usage_metadata=whole["usage_metadata"], chunk_position="last")


STREAMS: dict[str, Callable[[dict[str, Any]], Iterator[dict[str, Any]]]] = {
    "openai": chat_chunks,
    "openai-responses": response_events,
    "anthropic": message_events,
    "gemini": content_chunks,
    "bedrock": converse_events,
    "langchain": langchain_chunks,
}


def event_text(chunks: Sequence[dict[str, Any]], *, dialect: str, line_end: str = "\n") -> str:
    """The chunks as server-sent events, as the provider frames them."""
    lines: list[str] = []
    for chunk in chunks:
        if dialect in {"anthropic", "openai-responses"}:
            lines.append(f"event: {chunk['type']}")
        lines += [f"data: {json.dumps(chunk, ensure_ascii=False)}", ""]
    if dialect == "openai":
        lines += ["data: [DONE]", ""]
    return "".join(line + line_end for line in lines)
