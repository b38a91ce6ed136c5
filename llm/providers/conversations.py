"""Conversations: messages of this layer as the carrier of the providers takes them, and what came back from it.

Pictures, sounds and files are sent as bytes, which whoever connects the provider resolves; no provider is sent an address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from llm.messages import (
    AssistantMessage,
    ProviderState,
    SystemMessage,
    Text,
    ToolMessage,
    UserMessage,
)
from llm.problems import ParameterUnsupported
from llm.untrusted_texts import delimit_result
from unitools.dialects.tool_names import derive_dialect_name

if TYPE_CHECKING:
    from llm.messages import Message, Segment
    from llm.providers.http_chats import Resolver

_THINKING = TypeAdapter(list[ThinkingPart])


class Conversation:
    """The messages of one request. ``provider``: whose own state is sent back to it; ``carrier``: what the carrier calls that one."""

    def __init__(self, provider: str, carrier: str, dialect: str, resolve: Resolver) -> None:
        self._provider = provider
        self._carrier = carrier
        self._dialect = dialect
        self._resolve = resolve
        self._names: dict[str, str] = {}  # of the tools, by the ids of the calls

    async def build_messages(self, messages: tuple[Message, ...]) -> list[ModelMessage]:
        built: list[ModelMessage] = []
        for each in messages:
            if isinstance(each, AssistantMessage):
                built.append(self._build_response(each))
                continue
            part = await self._build_part(each)
            last = built[-1] if built else None
            if isinstance(last, ModelRequest):
                last.parts = [*last.parts, part]
            else:
                built.append(ModelRequest(parts=[part]))
        return built

    async def _build_part(self, message: SystemMessage | UserMessage | ToolMessage) -> ModelRequestPart:
        if isinstance(message, SystemMessage):
            return SystemPromptPart("\n\n".join(each.text for each in message.segments))
        content = [await self._build_content(each) for each in message.segments]
        if isinstance(message, UserMessage):
            return UserPromptPart(content[0] if len(content) == 1 and isinstance(content[0], str) else content)
        files = [each for each in content if not isinstance(each, str)]
        told = delimit_result(message)
        name = self._names.get(message.call_id, "")
        return ToolReturnPart(name, [told, *files] if files else told, tool_call_id=message.call_id)

    async def _build_content(self, segment: Segment) -> UserContent:
        if isinstance(segment, Text):
            return segment.text
        return BinaryContent(await self._resolve(segment), media_type=segment.media_type)

    def _build_response(self, message: AssistantMessage) -> ModelResponse:
        parts: list[ModelResponsePart] = [*self._read_state(message.provider_state)]
        parts += [TextPart(each.text) for each in message.segments]
        for call in message.proposals:
            name = self._names[call.id] = derive_dialect_name(self._dialect, call.name)
            # What could not be read goes back as it was written: the answer of the tool says what was wrong with it.
            given = call.arguments if call.arguments is not None else {}
            parts.append(ToolCallPart(name, given, tool_call_id=call.id))
        return ModelResponse(parts=parts, provider_name=self._carrier)

    def _read_state(self, state: ProviderState | None) -> list[ThinkingPart]:
        if state is None or state.provider != self._provider:
            return []
        try:
            parts = _THINKING.validate_python(state.data)
        except ValidationError:
            raise ParameterUnsupported("A provider's state is not what this provider once answered.") from None
        for part in parts:
            part.provider_name = self._carrier
        return parts

    def keep_state(self, parts: list[Any]) -> ProviderState | None:
        """What the provider wants back of an answer: its reasoning, which is signed or encrypted."""
        thinking = [part for part in parts if isinstance(part, ThinkingPart)]
        kept = [part for part in thinking if part.signature or part.provider_details or part.id]
        return ProviderState(self._provider, _THINKING.dump_python(kept, mode="json")) if kept else None
