"""Server-sent events: the data in a text that arrives in pieces of any size.

After the WHATWG's specification of `text/event-stream`, which says what a line, a comment and an event are. Only the data matter here:
each provider repeats in them what the field `event` says.
"""

from __future__ import annotations

import codecs
import re

from unitools.dialects.errors import NotJson, ResponseTooLarge
from unitools.dialects.parsers.responses import MAX_RESPONSE

_LINE = re.compile(r"\r\n|\n|\r")
_FIELD = re.compile(r"[\s\ufeff]*+(?:(?:data|event|id|retry):|:)")
_DATA = re.compile(r"(?:^|[\r\n])data: ?[{\[]")  # what a person calls "data: 7 samples" is text


def is_event_stream(text: str) -> bool:
    """Whether a text is one of events whose data are JSON."""
    return _FIELD.match(text) is not None and _DATA.search(text) is not None


class EventDataReader:
    """Text or bytes in, the data of whole events out."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest: list[str] = []  # of a line that has not ended
        self._ended_by_return = False
        self._data: list[str] = []
        self._size = 0

    def read(self, piece: str | bytes, *, last: bool = False) -> list[str]:
        """The data of the events that end in this piece. ``last``: what is left is an event too, even without an empty line.

        Raises:
            NotJson: the bytes are no UTF-8.
            ResponseTooLarge: the stream is larger than is read.
        """
        try:
            text = piece if isinstance(piece, str) else self._decoder.decode(piece, final=last)
        except UnicodeDecodeError:
            raise NotJson("The stream is no text in UTF-8.") from None
        self._size += len(piece)
        if self._size > MAX_RESPONSE:
            raise ResponseTooLarge(f"The stream cannot be read: it is larger than {MAX_RESPONSE} bytes.")
        lines = self._split(text) + ([self._end_line(), ""] if last else [])
        return [data for line in lines if (data := self._take(line)) is not None]

    def _split(self, text: str) -> list[str]:
        """The lines that end in this text."""
        if not text:
            return []
        if self._ended_by_return:  # a line feed that follows belongs to it
            text = text.removeprefix("\n")
        self._ended_by_return = text.endswith("\r")
        first, *others = _LINE.split(text)
        self._rest.append(first)
        if not others:
            return []
        *whole, rest = self._end_line(), *others
        self._rest.append(rest)
        return whole

    def _end_line(self) -> str:
        line = "".join(self._rest)
        self._rest.clear()
        return line

    def _take(self, line: str) -> str | None:
        """The data of the event that this line ends; an empty line does."""
        if not line:
            data, self._data = "\n".join(self._data), []
            return data or None
        name, _, value = line.lstrip("\ufeff").partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return None
