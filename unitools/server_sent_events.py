"""Server-sent events: what a text says that arrives in pieces of any size.

After the WHATWG's specification of ``text/event-stream``, which says what a line, a field, a comment and an event are.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_LINE = re.compile(r"\r\n|\n|\r")


class EventTooLong(ValueError):
    """An event is longer than whoever reads the stream takes."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event; ``id`` is what a reader comes back with."""

    kind: str
    data: str
    id: str = ""


class EventReader:
    """Text or UTF-8 in, whole events out; what it costs grows with the text, however it was cut.

    Args:
        max_chars: of one event.
    """

    def __init__(self, *, max_chars: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._max_chars = max_chars
        self._rest: list[str] = []  # of a line that has not ended
        self._ended_by_return = False
        self._kind = self._id = ""
        self._data: list[str] = []
        self._size = self._held = 0  # characters of the event that has not ended, and of its line that has not

    def read(self, piece: str | bytes, *, last: bool = False) -> list[ServerSentEvent]:
        """The events that end in this piece. ``last``: what is left is an event too, even without an empty line behind it.

        Raises:
            UnicodeDecodeError: the bytes are no UTF-8.
            EventTooLong: an event has more than `max_chars`.
        """
        text = piece if isinstance(piece, str) else self._decoder.decode(piece, final=last)
        lines = self._split(text) + ([self._end_line(), ""] if last else [])
        return [event for line in lines if (event := self._take(line)) is not None]

    def _split(self, text: str) -> list[str]:
        """The lines that end in this text."""
        if not text:
            return []
        if self._ended_by_return:  # a line feed that follows belongs to it
            text = text.removeprefix("\n")
        self._ended_by_return = text.endswith("\r")
        first, *others = _LINE.split(text)
        self._hold(first)
        if not others:
            return []
        *whole, rest = self._end_line(), *others
        self._hold(rest)
        return whole

    def _hold(self, text: str) -> None:
        self._rest.append(text)
        self._held += len(text)
        self._check_size()

    def _check_size(self) -> None:
        if self._size + self._held > self._max_chars:
            raise EventTooLong(f"An event of the stream is too long: it has more than {self._max_chars} characters.")

    def _end_line(self) -> str:
        line = "".join(self._rest)
        self._rest.clear()
        self._held = 0
        return line

    def _take(self, line: str) -> ServerSentEvent | None:
        """The event that this line ends; an empty line does."""
        if not line:
            event = ServerSentEvent(self._kind or "message", "\n".join(self._data), self._id) if self._data else None
            self._kind, self._data, self._size = "", [], 0
            return event
        name, _, value = line.lstrip("\ufeff").partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
                self._size += len(value)
                self._check_size()
            case "event":
                self._kind = value
            case "id":
                self._id = value
        return None
