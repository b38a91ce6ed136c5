"""OpenAI requests: a request of this layer as Chat Completions takes it.

Pictures, sounds and files are sent as bytes, which whoever connects the provider resolves; no provider is sent an address. What a
model has thought goes back to a provider that wants it, in the field in which it came.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from llm.messages import AssistantMessage, AudioRef, ImageRef, SystemMessage, Text, ToolMessage
from llm.problems import ParameterUnsupported
from llm.providers.tool_choices import write_single_call, write_tool_choice
from llm.requests import SchemaFormat, TextFormat
from llm.untrusted_texts import delimit_result
from unitools.calls import to_json
from unitools.dialects.schemas import CannotSay
from unitools.dialects.strict_schemas import OPENAI, make_strict
from unitools.dialects.tool_names import derive_dialect_name

if TYPE_CHECKING:
    from llm.messages import AttachmentRef, ProviderState, Segment, UserMessage
    from llm.providers.http_chats import Resolver
    from llm.requests import ChatRequest

DIALECT = "openai"
REASONING_FIELDS = ("reasoning", "reasoning_content")  # of servers that say what their models think
FOREIGN_STATE = "A provider's state is not what this provider once answered."
# Parameters that have one name on either side.
SAME = ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "top_k")
SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
UNKNOWN_SOUND = "The provider takes sounds as audio/wav and audio/mpeg."
PDF = "application/pdf"
TEXTS = frozenset({"json", "xml", "yaml", "x-yaml", "toml"})
UNKNOWN_FILE = "The provider takes files as application/pdf, and texts."
RESULT_FILES = "Files that the tool of call {id} has returned:"


class OpenAIRequest:
    """One request. ``provider``: whose state goes back."""

    def __init__(self, request: ChatRequest, provider: str, resolve: Resolver) -> None:
        self._request = request
        self._provider = provider
        self._resolve = resolve

    async def build_body(self, model: str, tools: list[dict[str, Any]], *, limit: str) -> dict[str, Any]:
        """The document that is posted. ``limit``: what the server calls the limit of tokens."""
        request = self._request
        body: dict[str, Any] = {
            "model": model,
            "messages": await self.build_messages(),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        body |= {name: value for name in SAME if (value := getattr(request, name)) is not None}
        if request.max_tokens is not None:
            body[limit] = request.max_tokens
        if request.stop:
            body["stop"] = list(request.stop)
        if request.logit_bias:
            body["logit_bias"] = dict(request.logit_bias)
        if (effort := write_effort(request)) is not None:
            body["reasoning_effort"] = effort
        body |= build_format(request) | write_cache_key(request)
        if tools:
            body["tools"] = tools
        if request.tool_choice is not None:
            body["tool_choice"] = write_tool_choice(request.tool_choice, DIALECT)
        if request.tools and not request.parallel_calls:
            body |= write_single_call(body.get("tool_choice"), DIALECT)
        return body

    async def build_messages(self) -> list[dict[str, Any]]:
        built: list[dict[str, Any]] = []
        files: list[dict[str, Any]] = []  # of results: a message of a tool takes texts only
        for message in self._request.messages:
            if files and not isinstance(message, ToolMessage):
                built.append({"role": "user", "content": files})
                files = []
            match message:
                case SystemMessage():
                    built.append({"role": "system", "content": join_texts(message)})
                case AssistantMessage():
                    built.append(self._build_answer(message))
                case ToolMessage():
                    built.append({"role": "tool", "tool_call_id": message.call_id, "content": delimit_result(message)})
                    files += await self._build_result_files(message)
                case _:
                    built.append({"role": "user", "content": await self._build_content(message)})
        if files:
            built.append({"role": "user", "content": files})
        add_missing_reasoning(built)
        return built

    async def _build_content(self, message: UserMessage) -> str | list[dict[str, Any]]:
        parts = [await self._build_part(each) for each in message.segments]
        return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts

    async def _build_result_files(self, message: ToolMessage) -> list[dict[str, Any]]:
        parts = [await self._build_part(each) for each in message.segments if not isinstance(each, Text)]
        return [{"type": "text", "text": RESULT_FILES.format(id=message.call_id)}, *parts] if parts else []

    async def _build_part(self, segment: Segment) -> dict[str, Any]:
        if isinstance(segment, Text):
            return {"type": "text", "text": segment.text}
        content = await self._resolve(segment)
        if is_text(segment.media_type):
            return {"type": "text", "text": content.decode(errors="replace")}
        return build_file_part(segment, base64.b64encode(content).decode())

    def _build_answer(self, message: AssistantMessage) -> dict[str, Any]:
        said: dict[str, Any] = {"role": "assistant", "content": join_texts(message) or None}
        if message.proposals:
            said["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    # What could not be read goes back empty: the answer of the tool says what was wrong with it.
                    "function": {
                        "name": derive_dialect_name(DIALECT, call.name),
                        "arguments": to_json(call.arguments or {}),
                    },
                }
                for call in message.proposals
            ]
        return said | self._read_state(message.provider_state)

    def _read_state(self, state: ProviderState | None) -> dict[str, str]:
        if state is None or state.provider != self._provider:
            return {}
        data = state.data
        if not isinstance(data, dict) or not all(
            name in REASONING_FIELDS and isinstance(text, str) for name, text in data.items()
        ):
            raise ParameterUnsupported(FOREIGN_STATE)
        return data


def join_texts(message: SystemMessage | AssistantMessage) -> str:
    return "\n\n".join(each.text for each in message.segments)


def add_missing_reasoning(messages: list[dict[str, Any]]) -> None:
    """Since the last question: a server that has said once what its model thinks refuses a call beside which that is missing."""
    fields = {name for each in messages for name in REASONING_FIELDS if name in each}
    if len(fields) != 1:
        return
    (field,) = fields
    for message in reversed(messages):
        if message["role"] == "user":
            return
        if "tool_calls" in message:
            message.setdefault(field, "")


def is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.rpartition("/")[2].rpartition("+")[2] in TEXTS


def build_file_part(segment: ImageRef | AudioRef | AttachmentRef, data: str) -> dict[str, Any]:
    """``data``: the bytes, in base64."""
    address = f"data:{segment.media_type};base64,{data}"
    if isinstance(segment, ImageRef):
        return {"type": "image_url", "image_url": {"url": address}}
    if not isinstance(segment, AudioRef):
        if segment.media_type != PDF:
            raise ParameterUnsupported(UNKNOWN_FILE)
        # Never the file's own name, which may say who somebody is and is not looked through.
        return {"type": "file", "file": {"file_data": address, "filename": "file.pdf"}}
    if segment.media_type not in SOUNDS:
        raise ParameterUnsupported(UNKNOWN_SOUND)
    return {"type": "input_audio", "input_audio": {"data": data, "format": SOUNDS[segment.media_type]}}


def build_format(request: ChatRequest) -> dict[str, Any]:
    """The part of the body that asks for JSON."""
    wanted = request.response_format
    if isinstance(wanted, TextFormat):
        return {}
    if not isinstance(wanted, SchemaFormat):
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": "json_schema", "json_schema": build_schema(wanted)}}


def build_schema(wanted: SchemaFormat) -> dict[str, Any]:
    """The schema, and whether the model is held to it: only where it is one of those that the provider takes for that as it stands."""
    try:
        strict = make_strict(wanted.json_schema, OPENAI) == wanted.json_schema
    except CannotSay:
        strict = False
    return {"name": "answer", "schema": wanted.json_schema, "strict": strict}


def write_effort(request: ChatRequest) -> str | None:
    """The effort in OpenAI's words, which has none for leaving it to the model."""
    return None if request.reasoning_effort == "auto" else request.reasoning_effort


def write_cache_key(request: ChatRequest) -> dict[str, str]:
    """The part of the body that says which requests begin alike: a digest, for the hint may name somebody, and has other bounds."""
    if request.cache_hint is None:
        return {}
    return {"prompt_cache_key": hashlib.sha256(request.cache_hint.encode(errors="replace")).hexdigest()}
