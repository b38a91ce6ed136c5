"""Events: what a stream of server-sent events says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_EVENT_CHARS = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event; ``id`` is what a reader comes back with."""

    kind: str
    data: str
    id: str = ""


class EventReader:
    """Takes the text in pieces of any length. ``ValueError`` when one event is longer than any that a hub sends."""

    def __init__(self) -> None:
        self._rest = ""
        self._kind = self._id = ""
        self._data: list[str] = []

    def read(self, text: str) -> Iterator[StreamEvent]:
        self._rest += text
        if len(self._rest) > MAX_EVENT_CHARS or sum(map(len, self._data)) > MAX_EVENT_CHARS:
            raise ValueError("An event of the stream is too long.")
        lines = self._rest.replace("\r\n", "\n").split("\n")
        self._rest = lines.pop()
        for line in lines:
            if line:
                self._take(line)
            elif event := self._whole():
                yield event

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._kind = value
            case "data":
                self._data.append(value)
            case "id":
                self._id = value

    def _whole(self) -> StreamEvent | None:
        event = StreamEvent(self._kind or "message", "\n".join(self._data), self._id) if self._data else None
        self._kind, self._data = "", []
        return event
