from __future__ import annotations

import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invocations.sandbox.wire.messages import (
    EVENT,
    MAX_CHUNK_BYTES,
    MAX_HEAD_BYTES,
    MIB,
    PING,
    REQUEST,
    MessageChannel,
    OversizedHead,
    RequestMemory,
    WireError,
)
from invocations.sandbox.wire.streams import PeerLost, PeerStream

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
HEADS = st.dictionaries(st.text().filter(lambda name: name != "parts"), JSON, max_size=5)
HEADER = struct.Struct("!2sBBII")


class ChannelPair:
    """Both ends of a connection, and the bare socket of one of them."""

    def __init__(self, most: int = 8 * MIB) -> None:
        self.raw, other = socket.socketpair()
        self.sender = MessageChannel(PeerStream(self.raw), most=most)
        self.receiver = MessageChannel(PeerStream(other), most=most)

    def close(self) -> None:
        self.sender.stream.close()
        self.receiver.stream.close()


@pytest.fixture
def pair() -> Iterator[ChannelPair]:
    found = ChannelPair()
    yield found
    found.close()


@pytest.mark.req("OPS-1")
@given(head=HEADS, parts=st.lists(st.binary(max_size=2000), max_size=4))
def test_what_is_sent_is_received(head: dict[str, Any], parts: list[bytes]) -> None:
    pair = ChannelPair()
    try:
        pair.sender.send(EVENT, head, *parts)
        received = pair.receiver.receive(5)
    finally:
        pair.close()

    assert (received.kind, received.head, received.parts) == (EVENT, head, tuple(parts))


def test_parts_larger_than_a_frame_come_in_chunks_with_pings_between_them(pair: ChannelPair) -> None:
    parts = (b"a" * (MAX_CHUNK_BYTES + 5), b"b" * (2 * MAX_CHUNK_BYTES), b"")

    def send() -> None:
        pair.sender.ping_when_due()
        pair.sender.send(REQUEST, {"op": "x"}, *parts)

    thread = threading.Thread(target=send)
    thread.start()
    received = pair.receiver.receive(10)
    thread.join()

    assert received.parts == parts


@given(data=st.binary(max_size=200))
def test_whatever_comes_is_a_message_or_an_error_of_the_wire(data: bytes) -> None:
    pair = ChannelPair()
    try:
        pair.raw.sendall(data)
        pair.raw.shutdown(socket.SHUT_WR)
        with pytest.raises((WireError, PeerLost)):
            while True:
                pair.receiver.receive(5)
    finally:
        pair.close()


@given(
    kind=st.integers(1, 5), head=st.integers(0, 2**32 - 1), tail=st.integers(0, 2**32 - 1), rest=st.binary(max_size=99)
)
def test_a_frame_of_any_lengths_is_refused_before_it_is_read(kind: int, head: int, tail: int, rest: bytes) -> None:
    pair = ChannelPair()
    try:
        pair.raw.sendall(HEADER.pack(b"TH", 1, kind, head, tail) + rest)
        pair.raw.shutdown(socket.SHUT_WR)
        with pytest.raises((WireError, PeerLost)):
            while True:
                pair.receiver.receive(5)
    finally:
        pair.close()


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ((b"TH", 1, REQUEST, MAX_HEAD_BYTES + 1, 0), "head holds 262144 bytes at most"),
        ((b"TH", 1, REQUEST, 2, MAX_CHUNK_BYTES + 1), "frame holds 1048576 bytes at most"),
        ((b"TH", 9, REQUEST, 2, 0), "speaks version 9"),
        ((b"GE", 1, REQUEST, 2, 0), "not how a worker"),
        ((b"TH", 1, 77, 2, 0), "no kind 77"),
    ],
)
def test_what_a_frame_may_not_be_is_said(pair: ChannelPair, header: tuple[Any, ...], sentence: str) -> None:
    pair.raw.sendall(HEADER.pack(*header))

    with pytest.raises(WireError, match=sentence):
        pair.receiver.receive(5)


@pytest.mark.parametrize("sizes", ["[9999999999]", "[-1]", "[1.5]", "[true]", "{}", "[[]]"])
def test_parts_of_impossible_sizes_are_refused(pair: ChannelPair, sizes: str) -> None:
    head = f'{{"parts": {sizes}}}'.encode()
    pair.raw.sendall(HEADER.pack(b"TH", 1, REQUEST, len(head), 0) + head)

    with pytest.raises(WireError, match="parts of a message"):
        pair.receiver.receive(5)


def test_a_head_that_is_too_large_is_not_sent(pair: ChannelPair) -> None:
    with pytest.raises(OversizedHead):
        pair.sender.send(REQUEST, {"text": "x" * MAX_HEAD_BYTES})

    pair.sender.send(REQUEST, {"op": "next"})
    assert pair.receiver.receive(5).head == {"op": "next"}


def test_who_has_said_nothing_for_long_says_that_it_is_there(
    pair: ChannelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invocations.sandbox.wire.messages.PING_EVERY_S", 0.0)

    pair.sender.ping_when_due()

    message = pair.receiver.receive_until(time.monotonic() + 5)
    assert message is not None
    assert message.kind == PING


@pytest.mark.req("OPS-1")
def test_who_waits_for_memory_says_that_it_is_there_and_reads_on_once_there_is_some(
    pair: ChannelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invocations.sandbox.wire.messages.PING_EVERY_S", 0.0)
    monkeypatch.setattr("invocations.sandbox.wire.messages.ROOM_SLICE_S", 0.01)
    memory, found = RequestMemory(3), []
    assert memory.exchange(0, 2)
    receiver = MessageChannel(pair.receiver.stream, most=MIB, memory=memory, admit=lambda _: 60.0)
    thread = threading.Thread(target=lambda: found.append(receiver.receive(60)))
    thread.start()

    pair.sender.send(REQUEST, {"op": "run"}, b"xy")
    message = pair.sender.receive_until(time.monotonic() + 60)
    memory.exchange(2, 0)
    thread.join(60)

    assert message is not None
    assert message.kind == PING
    assert [(each.parts, each.fits) for each in found] == [((b"xy",), True)]
    receiver.release_request()
    assert memory.exchange(0, 3)


@pytest.mark.req("OPS-1")
def test_of_a_request_that_is_not_admitted_nothing_is_kept_and_all_is_read(pair: ChannelPair) -> None:
    def refuse(_: dict[str, Any]) -> float:
        raise WireError("Not now.")

    memory = RequestMemory(8 * MIB)
    receiver = MessageChannel(pair.receiver.stream, most=8 * MIB, memory=memory, admit=refuse)
    sending = threading.Thread(target=lambda: pair.sender.send(REQUEST, {}, b"x" * (2 * MAX_CHUNK_BYTES)))
    sending.start()
    with pytest.raises(WireError, match="Not now"):
        receiver.receive(60)
    sending.join(60)

    assert memory.exchange(0, 8 * MIB)
    assert receiver.stream.is_quiet()
