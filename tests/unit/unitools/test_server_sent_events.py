"""Server-sent events: the same ones wherever the text was cut, and none without end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitools.server_sent_events import EventReader, EventTooLong, ServerSentEvent

TEXT = (
    ': good day\n\nid: 7\nevent: state\ndata: {"a":\ndata: 1}\nretry: 5\n\ndata:x\r\n\r\nid\r\revent: empty\n\n'
    "\ufeffdata: é 😀 \u2028\n\ndata: over"
)
EVENTS = [
    ServerSentEvent("state", '{"a":\n1}', "7"),
    ServerSentEvent("message", "x", "7"),
    ServerSentEvent("message", "é 😀 \u2028", ""),
]


def read(data: str | bytes, size: int, *, last: bool = False) -> list[ServerSentEvent]:
    reader = EventReader(max_chars=1000)
    found = [each for at in range(0, len(data), size) for each in reader.read(data[at : at + size])]
    return found + (reader.read(b"", last=True) if last else [])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_wherever_the_text_was_cut(size: int) -> None:
    assert read(TEXT, size) == EVENTS
    assert read(TEXT.encode(), size) == EVENTS
    assert read(TEXT.encode(), size, last=True) == [*EVENTS, ServerSentEvent("message", "over", "")]


@given(st.binary(max_size=200), st.integers(1, 9))
def test_cuts_change_nothing_in_any_bytes(data: bytes, size: int) -> None:
    def outcome(step: int) -> list[ServerSentEvent] | None:
        try:
            return read(data, step, last=True)
        except UnicodeDecodeError:
            return None

    assert outcome(size) == outcome(len(data) or 1)


@pytest.mark.parametrize("text", ["data: " + "x" * 2000, "data: x\n" * 2000, "y" * 2000])
def test_an_event_without_end_is_refused_before_it_is_held(text: str) -> None:
    with pytest.raises(EventTooLong, match="too long"):
        read(text, 100)
