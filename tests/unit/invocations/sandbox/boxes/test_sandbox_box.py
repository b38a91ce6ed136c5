"""Sandbox box: what does the hub make of a box that takes no load, or is late with it?"""

from __future__ import annotations

import pytest

from invocations.sandbox.boxes.attach_stream import ChannelLost, ChannelTimeout
from invocations.sandbox.boxes.box import Box, BoxConversation, NothingRan, NotLoaded
from invocations.sandbox.pool.loads import LoadTimeout
from sandbox import protocol

FINE = {"ok": True, "late": False, "why": "", "said_no": False}


class Stream:
    """Takes frames up to one whose writing fails, and has one answer, or why there is none."""

    def __init__(self, fails_at: int, answer: dict[str, object] | Exception) -> None:
        self.written, self.allowed = 0, 0.0
        self.patience: list[float] = []
        self._fails_at, self._answer = fails_at, answer
        self._box = protocol.FrameChannel(lambda _: b"", self._take)
        self._answered = b""

    def _take(self, data: bytes) -> None:
        self._answered += data

    def allow(self, seconds: float) -> None:
        self.allowed = seconds

    def write(self, _: bytes) -> None:
        self.written += 1
        self.patience.append(self.allowed)
        if self.written == self._fails_at:
            raise ChannelTimeout("The box takes no data.")

    def read(self, size: int) -> bytes:
        if isinstance(self._answer, Exception):
            raise self._answer
        if not self._answered:
            self._box.send(protocol.LOADED, protocol.pack(self._answer))
        data, self._answered = self._answered[:size], self._answered[size:]
        return data

    def is_quiet(self) -> bool:
        return True

    def break_off(self) -> None: ...

    def close(self) -> None: ...


def box_on(stream: Stream) -> Box:
    return Box("box", None, stream, protocol.FrameChannel(stream.read, stream.write))  # type: ignore[arg-type]


def test_a_load_that_was_not_taken_did_not_time_out() -> None:
    with pytest.raises(NothingRan, match="takes no data"):
        box_on(Stream(1, ChannelTimeout("The box says nothing."))).load(b"code", seconds=60)


def test_a_box_that_takes_no_more_may_say_why() -> None:
    with pytest.raises(NotLoaded, match="no room"):
        box_on(Stream(1, FINE | {"ok": False, "why": "no room", "said_no": True})).load(b"code", seconds=60)
    with pytest.raises(NotLoaded, match="ended"):
        box_on(Stream(1, ChannelLost("The box ended."))).load(b"code", seconds=60)


def test_a_load_that_was_taken_and_not_answered_has_timed_out() -> None:
    with pytest.raises(LoadTimeout, match="within 60 s"):
        box_on(Stream(0, ChannelTimeout("The box says nothing."))).load(b"code", seconds=60)


def test_a_box_that_is_slow_to_make_a_process_has_not_said_no() -> None:
    with pytest.raises(NotLoaded) as told:
        box_on(Stream(0, FINE | {"ok": False, "why": "not in time"})).load(b"code", seconds=60)

    assert not told.value.said_no


def test_a_call_that_comes_with_its_load_waits_until_the_box_is_loaded() -> None:
    stream = Stream(2, ChannelTimeout("The box says nothing."))

    with pytest.raises(NothingRan):
        BoxConversation(box_on(stream)).run(b"code", b"call", 60.0, 1.0, on_event=None)

    assert stream.patience[0] < 60 < stream.patience[1]
