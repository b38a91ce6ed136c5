"""Gemini streams: the chunks of streamGenerateContent as pieces of this layer.

Each chunk is a response with the next parts of the answer. Nothing says that the stream is whole but the reason for which the answer
ended, and that may stand in every chunk, so the one of the last chunk with content counts. Calls come whole, with their arguments as
an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.messages import ProviderState
from llm.problems import ProviderAnswerUnreadable, StreamTruncated
from llm.providers.failures import NOT_JSON
from llm.providers.gemini_requests import PROVIDER
from llm.providers.http_client import TOO_LARGE, read_events
from llm.usage import Usage, read_figures
from unitools.calls import to_json
from unitools.dialects import NotJson, ResponseTooLarge
from unitools.dialects.model_json import load_response
from unitools.dialects.streams.base import get_chunk, get_chunks, get_index, get_word

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    import httpx2

    from unitools.dialects.streams.base import Chunk

BLOCKED = dict.fromkeys(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"),
    FinishReason.SAFETY,
)
# FUNCTION_CALL is none of Gemini's own, but of servers that stand in for it.
REASONS = {
    "STOP": FinishReason.STOP,
    "FUNCTION_CALL": FinishReason.TOOL,
    "MAX_TOKENS": FinishReason.LENGTH,
    **BLOCKED,
}
IN_PIECES = "The provider sent a call in pieces, which was not asked for."
MANY_ANSWERS = "The provider sent several answers to one request."


async def read_chunks(response: httpx2.Response) -> AsyncGenerator[Chunk, None]:
    """The chunks of a stream.

    Raises:
        StreamTruncated: it broke off within a chunk.
        ProviderAnswerUnreadable: a chunk is no JSON object.
    """
    is_broken = False
    async for text in read_events(response):
        if is_broken:  # and not the last, which a line that breaks off leaves so
            raise ProviderAnswerUnreadable(NOT_JSON)
        try:
            chunk = load_response(text, "A chunk of the stream")
        except ResponseTooLarge:
            raise ProviderAnswerUnreadable(TOO_LARGE) from None
        except NotJson:
            is_broken = True
            continue
        if not isinstance(chunk, dict):
            raise ProviderAnswerUnreadable(NOT_JSON)
        yield chunk
    if is_broken:
        raise StreamTruncated


class ContentReader:
    """One answer. ``names``: those that the provider knows the tools by, and ours."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._calls = 0
        self._signatures: dict[str, str] = {}
        self._reason = ""
        self._usage: Usage | None = None

    def read(self, chunk: Chunk) -> Iterator[ChatDelta]:
        """The pieces of a chunk. Raises ProviderAnswerUnreadable."""
        self._usage = read_usage(get_chunk(chunk, "usageMetadata")) or self._usage
        if get_word(get_chunk(chunk, "promptFeedback"), "blockReason"):
            self._reason = "SAFETY"
        for candidate in get_chunks(chunk, "candidates"):
            if get_index(candidate):
                raise ProviderAnswerUnreadable(MANY_ANSWERS)
            parts = get_chunks(get_chunk(candidate, "content"), "parts")
            # What counts the tokens may come behind the end, with an answer that says nothing more.
            if (reason := get_word(candidate, "finishReason")) or parts:
                self._reason = reason
            for part in parts:
                yield from self._read_part(part)
        yield ChatDelta(usage=self._usage, model=get_word(chunk, "modelVersion"))

    def _read_part(self, part: Chunk) -> Iterator[ChatDelta]:
        signature = get_word(part, "thoughtSignature")
        if isinstance(part.get("functionCall"), dict):
            if signature:
                self._signatures[str(self._calls)] = signature
            yield ChatDelta(tool_call=self._read_call(part["functionCall"]))
            self._calls += 1
        elif not part.get("thought"):
            if signature:
                self._signatures["text"] = signature
            if text := get_word(part, "text"):
                yield ChatDelta(text=text)

    def _read_call(self, call: Chunk) -> ToolCallDelta:
        if call.get("willContinue") or call.get("partialArgs") is not None:
            raise ProviderAnswerUnreadable(IN_PIECES)
        name, arguments = get_word(call, "name"), call.get("args")
        return ToolCallDelta(
            self._calls,
            call_id=get_word(call, "id"),
            name=self._names.get(name, name),
            arguments=to_json({} if arguments is None else arguments),
        )

    def finish(self) -> ChatDelta:
        """The last piece, once the stream is at its end; without a reason where Gemini gave none, and then it broke off."""
        state = ProviderState(PROVIDER, self._signatures) if self._signatures else None
        reason = REASONS.get(self._reason, FinishReason.OTHER) if self._reason else None
        return ChatDelta(finish_reason=reason, usage=self._usage, provider_state=state)


def read_usage(counts: Chunk) -> Usage | None:
    """What was counted so far. Thoughts are charged as output; they are not among the tokens of the candidates."""
    if not counts:
        return None
    given = _get_count(counts, "promptTokenCount") + _get_count(counts, "toolUsePromptTokenCount")
    written = _get_count(counts, "candidatesTokenCount") + _get_count(counts, "thoughtsTokenCount")
    return read_figures(given, written, _get_count(counts, "cachedContentTokenCount"))


def _get_count(counts: dict[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if type(value) is int and value > 0 else 0
