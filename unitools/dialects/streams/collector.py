"""Collector of a stream: which dialect it is in, whether it ended, and the response that it makes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.dialects.errors import NotJson, ResponseTooLarge, UnknownResponse, UnreadableResponse
from unitools.dialects.model_json import MAX_RESPONSE, load_response
from unitools.dialects.streams.anthropic import MessageCollector
from unitools.dialects.streams.base import get_chunk
from unitools.dialects.streams.bedrock import ConverseCollector
from unitools.dialects.streams.gemini import ContentCollector
from unitools.dialects.streams.langchain import MessageChunkCollector
from unitools.dialects.streams.openai import ChatCollector
from unitools.dialects.streams.openai_responses import ResponseCollector
from unitools.server_sent_events import EventReader, EventTooLong

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unitools.dialects.streams.base import Chunk, ChunkCollector

COLLECTORS: tuple[type[ChunkCollector], ...] = (
    *(ResponseCollector, MessageCollector, ChatCollector, ContentCollector),
    *(ConverseCollector, MessageChunkCollector),
)
DONE = "[DONE]"  # behind the last chunk, in the dialect of OpenAI
MAX_STREAM = 16 * MAX_RESPONSE  # most of a stream is what stands around each word
MAX_CHUNKS = 1_000_000

EMPTY = "The stream holds nothing of a model's answer."
UNKNOWN = "The stream is of none of the known dialects."
CUT = "The stream ended before the answer did, so nothing in it is used. Ask the model again."
TOO_LARGE = f"The stream cannot be read: it is larger than {MAX_STREAM} bytes, or an event of it than {MAX_RESPONSE}."
_KIND = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class StreamCollector:
    """A streamed answer, put together while it arrives.

    Feed it each piece, be it text of server-sent events cut anywhere (bytes or str, with its line ends: `iter_bytes`, not
    `iter_lines`) or a chunk as an SDK gives it. Then :meth:`build_response` is the response that would have come without streaming.
    """

    def __init__(self) -> None:
        self._events = EventReader(max_chars=MAX_RESPONSE)
        self._collector: ChunkCollector | None = None
        self._size = self._chunks = 0

    @property
    def dialect(self) -> str:
        """The dialect; empty before the first chunk."""
        return self._collector.dialect if self._collector else ""

    @property
    def is_complete(self) -> bool:
        """Whether the provider has said that the answer is at its end."""
        return self._collector is not None and self._collector.is_complete

    def feed(self, piece: object) -> None:
        """Take the next piece.

        Raises:
            UnknownResponse: the first chunk is of no known dialect.
            UnreadableResponse: the provider sent an error in the place of the answer's rest.
            NotJson: the data of an event are no JSON, or not as every reader understands it.
            ResponseTooLarge: the stream is larger than is read.
        """
        if isinstance(piece, (str, bytes, bytearray)):
            self._read_events(piece if isinstance(piece, str) else bytes(piece))
        else:
            self._add(_to_plain(piece))

    def _read_events(self, piece: str | bytes, *, last: bool = False) -> None:
        self._size += len(piece)
        if self._size > MAX_STREAM:
            raise ResponseTooLarge(TOO_LARGE)
        try:
            events = self._events.read(piece, last=last)
        except UnicodeDecodeError:
            raise NotJson("The stream is no text in UTF-8.") from None
        except EventTooLong:
            raise ResponseTooLarge(TOO_LARGE) from None
        for event in events:
            if event.data.strip() not in {"", DONE}:
                self._add(load_response(event.data, "An event of the stream"))

    def _add(self, chunk: object) -> None:
        if not isinstance(chunk, dict):
            raise UnknownResponse(UNKNOWN)
        self._chunks += 1
        if self._chunks > MAX_CHUNKS:
            raise ResponseTooLarge(f"The stream cannot be read: it has more than {MAX_CHUNKS} chunks.")
        if chunk.get("error") or chunk.get("type") == "error":
            raise UnreadableResponse(
                f"The stream ended with an error of the provider{_describe_error(chunk)}. Ask the model again."
            )
        self._collector = self._collector or find_collector(chunk)
        if self._collector is None:
            raise UnknownResponse(UNKNOWN)
        self._collector.add(chunk)

    def build_response(self) -> dict[str, Any]:
        """The response, in the provider's own form; to be asked for once the stream has ended.

        Raises:
            UnknownResponse: there was no chunk.
            UnreadableResponse: the stream ended before the answer did.
        """
        try:
            self._read_events(b"", last=True)
        except NotJson:  # it broke off within an event
            raise UnreadableResponse(CUT) from None
        if self._collector is None:
            raise UnknownResponse(EMPTY)
        if not self._collector.is_complete:
            raise UnreadableResponse(CUT)
        return self._collector.build_response()


def find_collector(first: Chunk) -> ChunkCollector | None:
    """The collector of the dialect that a first chunk is of."""
    return next((each() for each in COLLECTORS if each.may_begin(first)), None)


def is_chunk(thing: object) -> bool:
    """Whether a stream of a known dialect may begin with this."""
    try:
        chunk = _to_plain(thing)
    except UnknownResponse:
        return False
    return isinstance(chunk, dict) and find_collector(chunk) is not None


def collect_response(pieces: Iterable[object]) -> dict[str, Any]:
    """The response that the pieces of a whole stream make. Raises what :class:`StreamCollector` does."""
    collector = StreamCollector()
    for piece in pieces:
        collector.feed(piece)
    return collector.build_response()


def _to_plain(chunk: object) -> object:
    """A chunk of an SDK as the JSON that it was read from."""
    if isinstance(chunk, dict) or not hasattr(chunk, "model_dump"):
        return chunk
    try:
        return chunk.model_dump(mode="json", by_alias=True, exclude_none=True)
    except Exception as error:  # noqa: BLE001 - what only looks like a chunk may raise anything
        raise UnknownResponse(f"A chunk of the stream raises {type(error).__name__}.") from None


def _describe_error(chunk: Chunk) -> str:
    """The error's kind, never its text: that may quote the prompt."""
    said = get_chunk(chunk, "error") or chunk
    kind = next((said[name] for name in ("code", "type", "status") if isinstance(said.get(name), str)), "")
    return f" ({kind})" if _KIND.fullmatch(kind) and kind != "error" else ""
