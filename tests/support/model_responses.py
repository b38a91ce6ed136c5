"""Model responses: how does each provider say that its model wants to make these calls?

Every form is what an application holds in its hands: the parsed body, the SDK's object, the body as text. The SDKs' own types build
the objects, so a form that the provider would not send cannot be built.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp.types
from anthropic.types import Message
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from unitools.dialects.base import ReadOptions
from unitools.dialects.nonces import make_nonce
from unitools.dialects.tool_names import map_dialect_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

KEY = b"the key of one rendering"

Said = tuple[str, Any]  # name in the dialect; arguments, or their text where the dialect has text


@dataclass(frozen=True)
class Form:
    """One way in which calls arrive."""

    dialect: str
    build: Callable[[Sequence[Said]], Any]

    def of(self, calls: Iterable[tuple[str, Any]], names: Iterable[str]) -> tuple[Any, ReadOptions]:
        """The response that makes these calls of tools, and what its reader has to know."""
        rendered = map_dialect_names(self.dialect, names)
        said = {tool: name for name, tool in rendered.items()}
        return self.build([(said[name], arguments) for name, arguments in calls]), ReadOptions(rendered, key=KEY)


def text_of(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def chat(calls: Sequence[Said], finish_reason: str = "tool_calls") -> dict[str, Any]:
    """A body of OpenAI Chat Completions."""
    said = [
        {"id": f"call_{at}x", "type": "function", "function": {"name": name, "arguments": text_of(arguments)}}
        for at, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": said}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [choice]}


def responses(calls: Sequence[Said], status: str = "completed") -> dict[str, Any]:
    """A body of OpenAI Responses."""
    said = [
        {
            "type": "function_call",
            "id": f"fc_{at}",
            "call_id": f"call_{at}x",
            "name": name,
            "arguments": text_of(arguments),
            "status": status,
        }
        for at, (name, arguments) in enumerate(calls)
    ]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": status,
        "output": [{"type": "reasoning", "id": "rs_1", "summary": []}, *said],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def messages(calls: Sequence[Said], stop_reason: str = "tool_use") -> dict[str, Any]:
    """A body of Anthropic Messages."""
    said = [
        {"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": arguments}
        for at, (name, arguments) in enumerate(calls)
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "I look it up."}, *said],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def contents(calls: Sequence[Said], finish_reason: str = "STOP") -> dict[str, Any]:
    """A body of Gemini's generateContent. As with older models, no call has an id."""
    parts = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in calls]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish_reason, "index": 0}
    return {"candidates": [candidate], "modelVersion": "gemini-2.5-pro", "responseId": "r"}


def converses(calls: Sequence[Said], stop_reason: str = "tool_use") -> dict[str, Any]:
    """A response of Bedrock Converse."""
    said = [
        {"toolUse": {"toolUseId": f"tooluse_{at}", "name": name, "input": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": [{"text": "I look it up."}, *said]}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return {"output": {"message": message}, "stopReason": stop_reason, "usage": usage, "metrics": {"latencyMs": 7}}


def langchain_messages(calls: Sequence[Said], finish_reason: str = "tool_calls") -> dict[str, Any]:
    """An AIMessage of LangChain, as its ``model_dump()`` gives it."""
    said = [
        {"type": "tool_call", "id": f"call_{at}x", "name": name, "args": arguments}
        for at, (name, arguments) in enumerate(calls)
    ]
    return {
        "type": "ai",
        "id": "run--1",
        "name": None,
        "content": "",
        "additional_kwargs": {},
        "response_metadata": {"finish_reason": finish_reason, "model_name": "gpt-4o"},
        "tool_calls": said,
        "invalid_tool_calls": [],
        "usage_metadata": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    }


def requests(calls: Sequence[Said]) -> list[dict[str, Any]]:
    """What a client of MCP sends."""
    return [
        {"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]


def tagged(calls: Sequence[Said], key: bytes = KEY) -> str:
    """What a model writes that was told of its tools in XML."""
    nonce = make_nonce(key)
    said = [
        f'<tool_call id="c{at}" nonce="{nonce}">{text_of({"name": name, "arguments": arguments})}</tool_call>'
        for at, (name, arguments) in enumerate(calls)
    ]
    return "\n".join(["I look it up: a < b && c.", *said])


WHOLE = {
    "openai": chat,
    "openai-responses": responses,
    "anthropic": messages,
    "gemini": contents,
    "bedrock": converses,
    "langchain": langchain_messages,
}

FORMS = {
    "openai dict": Form("openai", chat),
    "openai object": Form("openai", lambda calls: ChatCompletion.model_validate(chat(calls))),
    "openai text": Form("openai", lambda calls: json.dumps(chat(calls))),
    "responses dict": Form("openai-responses", responses),
    "responses object": Form("openai-responses", lambda calls: Response.model_validate(responses(calls))),
    "anthropic dict": Form("anthropic", messages),
    "anthropic object": Form("anthropic", lambda calls: Message.model_validate(messages(calls))),
    "anthropic blocks": Form("anthropic", lambda calls: Message.model_validate(messages(calls)).content),
    "gemini dict": Form("gemini", contents),
    "gemini object": Form("gemini", lambda calls: GenerateContentResponse.model_validate(contents(calls))),
    "bedrock dict": Form("bedrock", converses),
    "bedrock message": Form("bedrock", lambda calls: converses(calls)["output"]["message"]),
    "langchain dict": Form("langchain", langchain_messages),
    "langchain message_to_dict": Form("langchain", lambda calls: {"type": "ai", "data": langchain_messages(calls)}),
    "langchain calls": Form("langchain", lambda calls: langchain_messages(calls)["tool_calls"]),
    "mcp dict": Form("mcp", requests),
    "mcp object": Form(
        "mcp",
        lambda calls: [mcp.types.JSONRPCRequest.model_validate(request) for request in requests(calls)],
    ),
    "xml text": Form("xml", tagged),
    "xml inside a chat": Form("xml", lambda calls: said_in_chat(tagged(calls))),
}


def said_in_chat(text: str) -> dict[str, Any]:
    """A completion in which the model only said something."""
    body = chat([])
    body["choices"][0] |= {"finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return body
