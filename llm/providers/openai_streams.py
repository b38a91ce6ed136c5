"""OpenAI streams: the chunks of Chat Completions as pieces of this layer, each line read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm.answers import ChatDelta, ToolCallDelta
from llm.messages import ProviderState
from llm.problems import ProviderAnswerUnreadable
from llm.providers.http_client import TOO_LARGE
from llm.providers.openai_requests import REASONING_FIELDS
from llm.providers.wire_watches import ChatWatch
from unitools.calls import to_json
from unitools.dialects import ResponseTooLarge
from unitools.dialects.streams.base import CollectedText, get_chunk, get_chunks, get_index, get_word
from unitools.dialects.streams.openai import CallPlaces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unitools.dialects.streams.base import Chunk

NO_PIECES = "The provider sent several answers, or a whole one in the place of a piece."
OLD_CALL = "The provider sent a call in the form that came before tools, which was not asked for."


class ChatReader(ChatWatch):
    """One answer. ``names``: those that the provider knows the tools by, and ours; ``provider``: whose the state is."""

    def __init__(self, names: Mapping[str, str], *, provider: str, needs_mark: bool = True) -> None:
        super().__init__(needs_mark=needs_mark)
        self._names = names
        self._provider = provider
        self._pieces: list[ChatDelta] = []
        self._places = CallPlaces()
        self._begun: dict[int, tuple[str, str]] = {}  # id and name of each call, as far as they came
        self._reasoning: dict[str, CollectedText] = {}

    def take_pieces(self) -> list[ChatDelta]:
        """What has come since this was asked last."""
        taken, self._pieces = self._pieces, []
        return taken

    def read_event(self, document: dict[str, Any]) -> None:
        super().read_event(document)
        try:
            for choice in get_chunks(document, "choices")[:1]:
                if get_index(choice) or (choice.get("message") and not choice.get("delta")):
                    raise ProviderAnswerUnreadable(NO_PIECES)
                self._read_delta(get_chunk(choice, "delta"))
        except ResponseTooLarge:
            raise ProviderAnswerUnreadable(TOO_LARGE) from None

    def _read_delta(self, delta: Chunk) -> None:
        if delta.get("function_call"):
            raise ProviderAnswerUnreadable(OLD_CALL)
        self._read_reasoning(delta)
        if text := read_text(delta.get("content")):
            self._pieces.append(ChatDelta(text=text))
        calls = get_chunks(delta, "tool_calls")
        for place, piece in zip(self._places.find(calls), calls, strict=True):
            self._pieces.append(ChatDelta(tool_call=self._read_call(place, piece)))

    def _read_reasoning(self, delta: Chunk) -> None:
        """Servers that say it under both names say the same."""
        for name in REASONING_FIELDS:
            if text := get_word(delta, name):
                self._reasoning.setdefault(name, CollectedText()).add(text)
                return

    def _read_call(self, place: int, piece: Chunk) -> ToolCallDelta:
        said, (id, name) = get_chunk(piece, "function"), self._begun.get(place, ("", ""))
        new_id = "" if id else get_word(piece, "id")
        new_name = get_word(said, "name")
        if new_name == name:  # some servers say it in each chunk
            new_name = ""
        self._begun[place] = (id or new_id, name + new_name)
        given = said.get("arguments")
        # What is no text goes on as JSON: whoever reads arguments says what is wrong with a list.
        arguments = given if isinstance(given, str) else "" if given is None else to_json(given)
        return ToolCallDelta(place, new_id, new_name if name else self._names.get(new_name, new_name), arguments)

    def build_end(self) -> ChatDelta:
        """The last piece, once the stream is at its end."""
        thought = {name: str(text) for name, text in self._reasoning.items()}
        state = ProviderState(self._provider, thought) if thought else None
        return ChatDelta(model=self.model, usage=self.usage, provider_state=state, finish_reason=self.finish_reason)


def read_text(content: object) -> str:
    """A text; some servers send it as a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(
        each if isinstance(each, str) else get_word(each, "text") for each in parts if isinstance(each, str | dict)
    )
